"""`headstart serve` under load: throughput and latency beside another server, and a soak with bad requests."""
