"""Write the report: an HTML page of runs in one file.

`records` selects the data of an episode, `bundle` reads run folders, `prompts` finds the prompt of a run, and `page`
writes the file. The page's scripts are the files in `assets/`, joined in the order of their names.
"""
