"""Compute scores, comparisons and behaviour from stored runs, and draw tables and pages. No process, no network."""
