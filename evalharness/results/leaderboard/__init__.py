"""Published results and runs in one table."""
