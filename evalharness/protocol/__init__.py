"""Write prompts, parse replies, and apply perturbations to the words of an environment."""
