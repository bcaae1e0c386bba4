"""The teacher of babyai."""
