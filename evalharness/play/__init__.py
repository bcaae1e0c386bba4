"""Play the episodes of an evaluation; an interrupted evaluation can be resumed."""
