"""What do all tables on a terminal look like?"""

from __future__ import annotations

from rich import box
from rich.table import Table


def plain_table(title: str = "") -> Table:
    """A table with one rule below its header, its title on the left."""
    return Table(
        title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, header_style="dim",
        pad_edge=False, show_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip


def pairs() -> Table:
    """Names next to values, without lines."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table
