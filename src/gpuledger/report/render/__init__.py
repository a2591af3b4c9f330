"""How is a document drawn? As a page, as Markdown, on a terminal; charts as pictures."""
