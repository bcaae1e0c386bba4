"""Agents of other groups' evaluation protocols (`prompts/protocols/`), and the import of these groups' prompts."""
