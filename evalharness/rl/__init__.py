"""Wing: our environments for other people's trainers. `server` plays the episodes that `clients` ask for."""
