"""Agents write the messages that a model reads at each turn, and read its replies. They do no I/O."""
