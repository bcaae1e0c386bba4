"""Agents: the messages that a model reads at each turn, and the reading of its reply. Pure state machines."""
