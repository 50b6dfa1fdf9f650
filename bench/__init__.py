"""Speed, as ratios against the peer in the same run. `python -m bench --data FOLDER` prints one table."""
