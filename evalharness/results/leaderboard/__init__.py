"""Show published results and own runs in one table."""
