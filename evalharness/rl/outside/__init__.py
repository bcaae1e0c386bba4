"""Evaluate external agents: for each episode, start the user's program, which plays the episode over HTTP."""
