"""Wing: other people's programs play our environments. Trainers use `clients` of the `server`; `outside` runs
agents."""
