"""Tables as a person reads them, and how they are written to a terminal, Markdown and LaTeX."""
