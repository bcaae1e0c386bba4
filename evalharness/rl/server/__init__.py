"""Serve the environments to trainers with the protocol of OpenEnv."""
