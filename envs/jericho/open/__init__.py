"""Generate the open suite, and find plans that prove that its tasks can be solved."""
