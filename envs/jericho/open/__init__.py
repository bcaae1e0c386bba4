"""The open suite: its generator, and the oracle that proves its tasks."""
