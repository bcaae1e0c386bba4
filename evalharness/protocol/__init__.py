"""Write prompts, parse a model's replies, and reword environments (perturbations)."""
