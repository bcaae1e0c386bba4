"""The records of a run: episodes, the store, the manifest. All other rooms read them."""
