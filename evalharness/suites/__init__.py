"""Select the tasks of a run, generate open suites, and exclude evaluated tasks from training."""
