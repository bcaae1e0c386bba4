"""The teacher of jericho."""
