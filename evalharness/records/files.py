"""The names of a run folder's files; `evalharness.records.store` describes their content."""

EPISODES = "episodes.jsonl"
ERRORS = "errors.jsonl"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
LOCK = ".lock"
STUDY = "study.json"
"""File of a folder with several runs: the kind of study, and the runs' folders."""
