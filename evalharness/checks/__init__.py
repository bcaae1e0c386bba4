"""`verify`: check a run's numbers against its actions. `doctor`: check this machine against the requirements."""
