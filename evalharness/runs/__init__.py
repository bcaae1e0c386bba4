"""Playing and results together: evaluation, studies, the dry run, the live view, the list of runs."""
