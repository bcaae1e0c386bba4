"""The ground that everything stands on: errors, folders, the machine, settings, the terminal."""
