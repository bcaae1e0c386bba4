"""Let other programs play the environments. Trainers connect to `server` through `clients`; `outside` evaluates
agents."""
