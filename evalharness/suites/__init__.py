"""Which tasks there are: selection, open suites."""
