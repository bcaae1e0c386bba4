"""`verify`: a run's numbers against its actions. `doctor`:
this machine against what is needed. `audit`: labels against simulators. `agents`: your agent against the contract."""
