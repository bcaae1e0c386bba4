"""Refinement tuning: train checkpoints for `run` and `checkpoints` from a data set and a base model.

`data` converts conversations to token ids and labels. `settings` has the options of a training. `training` runs the
training in its own environment (`install`) and follows it. That environment's Python runs the files in `trainer/`.
"""
