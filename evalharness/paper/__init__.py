"""The exhibits of the paper (AgentRefine, ICLR 2025), each with rows of ours beside its own."""
