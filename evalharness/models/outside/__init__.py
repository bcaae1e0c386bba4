"""Agents from outside: a process for each episode, which plays it over HTTP."""
