"""Whatever answers: a model behind a server, or a scripted policy."""
