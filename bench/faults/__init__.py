"""Faults on purpose: damaged input, damaged files, full disks, kills. `python -m bench.faults` prints one table.

One module for each kind of fault; its `run` yields the outcome of every case.
"""

ROWS = ("mutated", "odd", "flipped", "powerless", "pairs", "refused", "starved", "killed")
"""Kinds in the order they run."""
