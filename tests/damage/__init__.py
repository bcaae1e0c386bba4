"""Every command that reads a file, on files that were damaged by chance or by an enemy."""
