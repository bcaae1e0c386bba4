"""What people look at. Reads only the store."""
