"""Control the access to the HTTP servers of evalharness: tokens, number of connections, addresses."""
