"""Which bills, node lists and price tables are known, and by which columns or marks?

Each is a format of its own kind; their rows are read in cost/inventories, by the module of the same name.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Seen
from gpuledger.telemetry.formats.columns import is_json, names

# The columns of our own tables of prices, next to `device`.
OWN = ("from", "to", "instance", "region", "purchase_option", "usd_per_h")
# An item of a list is followed by what it is about; a reference to one, which other items may have, by its name.
_NODE = r'"kind"\s*:\s*"Node"(?!\s*,\s*"name")'


class Bill(NamedTuple):
    """What shows a kind of file: it has `every` of some columns and one of `some`. `fit`: how sure that is.

    `alone`: it has no columns but these.
    """

    every: tuple[str, ...] = ()
    some: tuple[str, ...] = ()
    fit: Fit = Fit.SURE
    alone: bool = False

    def shown_by(self, head: Head) -> str:
        """The columns that a file has of it, empty where one is missing."""
        found = names(head)
        if not found.issuperset(self.every) or (self.some and not found.intersection(self.some)):
            return ""
        if self.alone and found.difference(self.every, self.some):
            return ""
        return f"the columns {', '.join([*self.every, *sorted(found.intersection(self.some))][:3])}"


class Marks(NamedTuple):
    """What shows a kind of file: all of these patterns stand in its first part. `json`: it is JSON."""

    patterns: tuple[str, ...]
    json: bool = True
    fit: Fit = Fit.SURE

    def shown_by(self, head: Head) -> str:
        """The first mark, empty where one is missing."""
        if is_json(head) is not self.json:
            return ""
        text = head.page if self.json else "\n".join(head.lines)
        found = [re.search(pattern, text, re.MULTILINE) for pattern in self.patterns]
        return " ".join(found[0][0].split())[:60] if found[0] and all(found) else ""


BILLS: dict[str, tuple[str, tuple[Bill | Marks, ...]]] = {
    "aws": (
        "AWS Cost and Usage Report", (Bill(("line_item_unblended_cost", "line_item_usage_start_date")),),
    ),
    "azure": (
        "Azure cost and usage details",
        (Bill(("meter_category",), ("cost_in_billing_currency", "cost_in_usd", "pre_tax_cost", "cost")),),
    ),
    "focus": ("FOCUS bill", (Bill(("billed_cost", "charge_period_start")),)),
    "gcp": ("Google Cloud detailed billing export", (Bill(("sku_description", "cost", "usage_start_time")),)),
    "opencost": (
        "OpenCost or Kubecost allocations",
        (
            Marks((r'"gpuCost"\s*:', r'"data"\s*:\s*\[')),
            Bill(("gpu_cost",), ("node", "properties_node", "cpu_cost", "ram_cost", "total_cost")),
            Bill(("gpu_cost",), fit=Fit.LIKELY),
        ),
    ),
    "kubernetes": ("kubectl get nodes -o json", (Marks((_NODE,)),)),
    "slurm": (
        "scontrol show node or sinfo -N",
        (
            Marks((r"^NodeName=\S+",), json=False),
            Marks((r"\A\s*(?=.*\bGRES\b).*\b(NODELIST|HOSTNAMES)\b.*",), json=False),
            Marks((r'\A[^\[]*"nodes"\s*:\s*\[|^\s*"nodes"\s*:\s*\[', r'"gres"\s*:')),
        ),
    ),
    "own": (
        "table of prices",
        (
            Bill(("device",), ("usd_per_h", "purchase_option")),
            Bill(("device",), OWN, Fit.LIKELY, alone=True),
            Bill((), ("device", *OWN), Fit.POSSIBLE),
        ),
    ),
}  # fmt: skip


def _score(ways: tuple[Bill | Marks, ...], head: Head) -> Seen:
    return next((Seen(way.fit, why) for way in ways if (why := way.shown_by(head))), NOT_SEEN)


for _key, (_name, _ways) in BILLS.items():
    FORMATS.register(_key)(Format(_name, Kind.INVENTORY, partial(_score, _ways)))
