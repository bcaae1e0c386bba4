"""What a policy reads and writes: prompt, reply, action surface, perturbation. Pure."""
