"""Numbers from records: scores, tables, comparisons, behaviour. No process, no network."""
