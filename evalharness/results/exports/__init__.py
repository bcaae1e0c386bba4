"""Runs in the formats of other tools. Each format is a module; none needs the other tool to be installed."""
