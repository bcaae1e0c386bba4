"""What a policy sees and says: prompt, reply, action surface, perturbation. Pure."""
