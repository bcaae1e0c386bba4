"""Make training data and train models on it."""
