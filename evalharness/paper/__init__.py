"""The tables and figures of the AgentRefine paper (ICLR 2025), with the published rows and rows of the user's runs."""
