"""Compute scores, comparisons and behaviour from stored runs, and write tables and pages, without other processes."""
