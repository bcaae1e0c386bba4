"""Read and write the records of a run: its episodes, manifest and summary."""
