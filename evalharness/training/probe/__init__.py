"""What a model does right after an error: one reply each to many prefixes, judged by the simulators."""
