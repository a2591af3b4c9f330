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
    adding.py     dollars rounded so that columns add up
    buckets.py    the seven buckets in words and colors
    audit_view.py, audit_rows.py     what all documents show of an audit
    audit_charts/, audit_html.py, audit_markdown.py, write_audit.py     the audit as charts, page, twin and files

Charts need the extra `charts`. Nothing here computes a figure: every one is in the statement.
"""
