"""What our HTTP servers share: who may come in, how many, and how messages and errors look."""
