"""Agents from outside: each episode is served as a session to whatever acts."""
