"""Policies: models behind a server, and scripted policies."""
