"""The teacher of sciworld."""
