"""Trajectories made in the simulators themselves."""
