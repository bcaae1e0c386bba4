"""Write runs in the formats of other tools. Each format is a module."""
