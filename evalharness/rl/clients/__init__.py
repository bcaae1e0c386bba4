"""Clients of `evalharness env serve` for trainers: sessions, and adapters for TRL, verifiers, SkyRL and others.

They can be installed beside a trainer without the harness's own dependencies: `pip install --no-deps evalharness`, and
`websockets`. Each module imports only its own trainer.
"""
