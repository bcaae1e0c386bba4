"""Print scores and comparisons for people. The input is always a stored run."""
