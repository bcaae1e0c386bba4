"""The exhibits of the paper (AgentRefine, ICLR 2025): its rows, with rows of ours beside them."""
