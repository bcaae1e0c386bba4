"""Suites of tasks: selection of tasks, open suites."""
