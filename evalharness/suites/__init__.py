"""Draw tasks from suites, build open suites, and exclude evaluated tasks from training."""
