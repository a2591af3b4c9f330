"""How does a statement become something people read? Charts and documents.

document has what a document is made of; outline and tables fill one from a statement and its TOML file; documents/ has
one file per statement, charts/ one per chart (theme and marks are their look), render/ draws any document, write puts
it in a folder. written says how a figure is written, adding how columns are rounded to add up.

Charts need the extra `charts`. Nothing here computes a figure: every one is in the statement.
"""
