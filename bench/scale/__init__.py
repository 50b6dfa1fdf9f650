"""Training on several processes: what happens to a run when its processes die or lose each other."""
