"""Evaluations and studies, and what combines playing with results: the dry run, the live view, the list of runs."""
