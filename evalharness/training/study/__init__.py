"""Studies of training: a file says axes and options; every cell is data -> training -> runs. docs/training-studies.md.

`file` reads it, `plan` makes it jobs, each a command of this package; `jobs` works them off.
"""
