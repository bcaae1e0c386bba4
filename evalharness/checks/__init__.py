"""What is checked against what: `conform`, `verify`, `doctor`, `audit`."""
