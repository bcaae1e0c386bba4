"""Teachers: one for each family, with the rule-based agent, thoughts and wrong actions of `refine grounded`."""
