"""Raters that decide whether a turn was wrong (a model, a person, the simulator), and their agreement. docs/judges.md.

`judging` asks a model and `label_server` a person. `truth` decides by rules from the simulator's observations.
`agreement` compares two raters. `mtbench` lets a model grade answers to two-turn questions.
"""
