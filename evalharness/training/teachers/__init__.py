"""Teachers: for each family the thoughts, ways to err and players that grounded training data is made of."""
