"""Ways of acting: what a model reads at each turn, and how its reply is read. Pure state machines."""
