"""Wing: other people's programs play our environments. Trainers' `clients` ask the `server`; `outside` runs agents."""
