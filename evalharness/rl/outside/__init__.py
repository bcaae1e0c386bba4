"""External agents: another program plays, in a process for each episode, over HTTP."""
