"""The report: runs as one page to look at, in a file.

`records` says what the page knows of an episode, `bundle` reads run folders, `prompts` finds the prompt of a run,
`page` makes the file. The page itself is plain script files without a build step
(`assets/`, joined in the order of their names): what is committed is what ships, and a reader with a text editor can
change it.
"""
