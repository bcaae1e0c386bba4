"""Other groups' protocols: their agents, and the import of their prompt texts. The files: `prompts/protocols/`."""
