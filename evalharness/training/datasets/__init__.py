"""The format of training data, with error marks and a loss mask; readers, mixing and exports."""
