"""Training on several processes: how fast it is, what it would cost elsewhere, and what happens when processes die."""
