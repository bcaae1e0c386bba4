"""Training data: one format, error marks, the loss mask, mixing, readers and exports."""
