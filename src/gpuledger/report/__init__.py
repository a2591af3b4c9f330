"""How does a statement become something people read? Charts and documents.

    theme.py      colours and type, light and dark
    written.py    how a figure is written, known or not
    charts/       one chart a file; they register themselves
    render.py     a chart as PNG, SVG or HTML
    tables.py     the tables of a statement, from tables.toml
    outline.py    the order of the document, from outline.toml
    page.py       what all pages share: frame, tables, figures, cards
    html.py       report.html, one file that opens offline
    markdown.py   its Markdown twin
    write.py      all of them into a folder

Charts need the extra `charts`. Nothing here computes a figure: every one is in the statement.
"""
