"""Clients of `evalharness env serve` for trainers: sessions, and adapters for TRL, verifiers, SkyRL and others.

In a trainer's environment, install the clients without the harness's dependencies: `pip install --no-deps evalharness`,
and `pip install websockets`. Each module imports only the trainer that it adapts to.
"""
