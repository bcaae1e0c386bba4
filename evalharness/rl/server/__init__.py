"""The environments for other people's trainers: an OpenEnv server over our workers."""
