"""What a model does right after an error: one reply each to many prefixes, judged by the simulators."""

KIND = "probe"
"""What a probe's manifest says that it is."""
