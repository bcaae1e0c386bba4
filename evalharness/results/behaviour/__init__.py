"""Measure the behaviour of a policy: errors, loops, recovery, exploration. Formulas: docs/behaviour.md.

`turns` reads one episode turn by turn. `figures` defines each figure as a ratio of two counts. `rows` computes figures
with intervals from stored runs, and the differences between two runs.
"""
