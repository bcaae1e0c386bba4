"""`evalharness judge` and the commands below it."""
