"""The teacher of pddl."""
