"""Write tables to a terminal, as Markdown and as LaTeX."""
