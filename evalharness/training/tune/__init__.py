"""Refinement tuning: from a data set and a base model to checkpoints that `run` and `checkpoints` take.

`data` turns conversations into token ids and labels, `settings` says how it is trained, `training` runs the training in
an environment of its own (`install`) and follows it. What that environment's Python runs is in `trainer/`.
"""
