"""Do our environments behave as recorded ones did? Transcripts are replayed and compared step by step."""
