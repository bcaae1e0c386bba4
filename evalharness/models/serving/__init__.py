"""Install a vLLM server in a private environment, find it, and start and stop it."""
