"""Make training trajectories in the real simulators, with rule-based agents and injected errors."""
