"""Draw the figures of runs with matplotlib."""
