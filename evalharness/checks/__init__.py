"""Check a run's numbers against its actions (`verify`), and this machine against the requirements (`doctor`)."""
