"""What the benches measure against, and how it is installed."""
