"""Have a model write scripts of text games and play them, as training data (AgentRefine's method)."""
