"""Control the access to our HTTP servers: authentication, number of connections, addresses."""
