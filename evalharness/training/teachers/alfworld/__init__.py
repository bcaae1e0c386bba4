"""The teacher of alfworld."""
