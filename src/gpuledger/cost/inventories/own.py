"""Your own table: one row per GPU, or per host, with the price you pay (CSV, XLSX, Parquet or JSON rows)."""

from __future__ import annotations

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.kinds import KINDS, Found
from gpuledger.cost.inventory import rows_of_table, rows_of_text


class Own:
    """device,from,to,instance,region,purchase_option,usd_per_h."""

    def read(self, content: Content) -> Found:
        """The rows, as they are."""
        if not content.binary and not content.json_lines and content.document is None:
            rows = rows_of_text(content.path, content.text)
        else:
            rows = rows_of_table(content.path, sorted(content.columns), list(content.table))
        return Found(content.path, "own", len(rows), paid=rows)


KINDS.register("own")(Own())
