"""Raters that decide whether a turn was wrong (a model, a person, the simulator), and their agreement. docs/judges.md.

`judging` asks a served model, `label_server` a person; `truth` is the simulator's rule; `agreement` compares two
raters. `mtbench` grades answers to two-turn questions. All questions are sent by `evalharness.models.asking`.
"""
