"""Generate the open suite, and prove its tasks with an oracle."""
