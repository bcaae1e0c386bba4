"""For trainers: sessions of `evalharness env serve`, and what TRL, verifiers and SkyRL plug in.

Installed beside a trainer without the harness's own dependencies: `pip install --no-deps evalharness`, and
`websockets`. Each module imports only the trainer that it is for.
"""
