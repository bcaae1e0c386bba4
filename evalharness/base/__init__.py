"""The foundation of all rooms: errors, folders, the machine, settings, the terminal."""
