"""Where playing meets results: evaluation, studies, the dry run, the live view, the list of runs."""
