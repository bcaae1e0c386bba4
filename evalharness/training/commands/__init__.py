"""The commands `refine` and `tune`."""
