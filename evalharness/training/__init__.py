"""What makes agents better: data sets, tuning, the environments for other trainers."""
