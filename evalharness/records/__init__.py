"""What a run keeps: episodes, the store, the manifest. Everything else reads these."""
