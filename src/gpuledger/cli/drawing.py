"""Can charts be drawn here, and what is said where they cannot?"""

from __future__ import annotations

import click

from gpuledger.report.charts import can_draw


def with_charts() -> bool:
    """Whether the documents get charts; without the extra they are written without, and it is said how to get it."""
    if not can_draw():
        click.echo('written without charts; for charts: pip install "gpuledger[charts]"', err=True)
        return False
    return True
