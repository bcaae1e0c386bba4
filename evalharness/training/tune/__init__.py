"""Fine-tune a base model on a data set (`evalharness tune`).

`data` converts conversations to token ids and labels. `settings` has the options of a training. `training` runs the
training as a process in the training environment, which `install` creates. This process runs the files in `trainer/`.
"""
