"""The held-out curve of a training by others: the policy that it serves, evaluated while it goes on."""
