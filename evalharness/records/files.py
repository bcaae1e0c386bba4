"""The names of a run folder's files; what each holds stands in `evalharness.records.store`."""

EPISODES = "episodes.jsonl"
ERRORS = "errors.jsonl"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
LOCK = ".lock"
STUDY = "study.json"
"""Of a folder of several runs: which kind of study, and where they are."""
