"""Write the report: an HTML page of runs in one file.

`records` selects the data of an episode, `bundle` reads run folders, `prompts` finds the prompt of a run, and `page`
writes the file. The scripts of the page are plain files without a build step (`assets/`, joined in the order of their
names), so anybody can change them with a text editor.
"""
