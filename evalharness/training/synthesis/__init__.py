"""Training data: refinement trajectories written by a model or grounded in real worlds, and what trainers take."""
