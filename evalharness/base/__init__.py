"""Modules that all other packages use: errors, folders, the machine, settings, the terminal."""
