"""Google Cloud detailed billing export: what did each virtual machine cost, over all of its SKUs, after credits?

Google bills cores, memory and GPUs of a machine apart; they are added up, as list prices here include the host. The
credit of a committed-use discount cancels the usage, and the fee of the commitment names no machine: usage counts
before that credit, so that a machine under a commitment does not look free.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation

from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import MOST_USD, USD, Fields, PassedOver, rows_of
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Spent
from gpuledger.errors import FactError

_NEEDED = {"sku_description", "cost", "usage_start_time"}
_GPU = re.compile(r"\bGPUs?\b|\bNvidia\b", re.IGNORECASE)
_MACHINE = re.compile(r"\b(GPU|core|ram|cpu|memory|instance|local ssd)s?\b", re.IGNORECASE)
_APART = re.compile(r"egress|ingress|network|PD capacity|snapshot|\bIP\b|licens|image", re.IGNORECASE)
_COMMITMENT = "COMMITTED_USAGE"
_SPOT = re.compile(r"\b(spot|preemptible)\b", re.IGNORECASE)


class Gcp:
    """BigQuery rows as JSON, CSV or Parquet."""

    def read(self, content: Content) -> Found:
        """The rows of machines that have at least one GPU SKU."""
        passed, found, count = PassedOver(_cost), list[tuple[Spent, bool]](), 0
        skipped, dollars = passed.rows, passed.dollars
        for row in rows_of(content, _NEEDED):
            count += 1
            made = self._row(row)
            if isinstance(made, Skipped):
                passed.add(row, made)
            else:
                skipped[Skipped.COMMITMENT_CREDIT] += _credits(row)[1]
                found.append((made, bool(_GPU.search(row.text("sku_description")))))
        machines = {spent.names for spent, of_gpu in found if of_gpu}
        kept = tuple(spent for spent, _ in found if spent.names in machines)
        skipped[Skipped.NO_GPU] += len(found) - len(kept)
        if without := sum((spent.usd for spent, _ in found if spent.names not in machines), Decimal(0)):
            dollars[Skipped.NO_GPU] = without
        return Found(
            content.path, "gcp", count, spent=kept, skipped=+skipped, skipped_usd=dollars, skipped_unread=passed.unread
        )

    def _row(self, row: Fields) -> Spent | Skipped:
        sku, service = row.text("sku_description"), row.text("service_description")
        if (service and service != "Compute Engine") or _APART.search(sku) or not _MACHINE.search(sku):
            return Skipped.NOT_COMPUTE
        ids = (row.text("resource_name"), row.text("resource_global_name").rpartition("/")[2])
        names = tuple(dict.fromkeys(name.rpartition("/")[2] for name in ids if name))
        if not names:
            return Skipped.NO_MACHINE
        cost = _cost(row)
        if cost is None:
            return Skipped.NO_COST
        start, end = row.period(["usage_start_time"], ["usage_end_time"])
        return Spent(
            row.path, row.number, names, start, end, cost,
            instance=_machine_type(row), region=row.text("location_region"),
            purchase_option="spot" if _SPOT.search(sku) else "on_demand",
        )  # fmt: skip


def _cost(row: Fields) -> Decimal | None:
    """In dollars, after its credits."""
    amount = row.number_of("cost")
    return None if amount is None else _dollars(row, amount + _credits(row)[0])


def _credits(row: Fields) -> tuple[Decimal, bool]:
    """Discounts and credits of the row, below zero, and whether it has one of a commitment, which is not among them."""
    text = row.text("credits")
    if not text:
        return row.number_of("credits_amount") or Decimal(0), False
    try:
        given = json.loads(text)
        of_commitment = [str(c.get("type", "")).startswith(_COMMITMENT) for c in given]
        rest = (c for c, committed in zip(given, of_commitment, strict=True) if not committed)
        found = sum((Decimal(str(c["amount"])) for c in rest), Decimal(0))
        if not abs(found) <= MOST_USD:
            raise ValueError("not an amount of money")
        return found, any(of_commitment)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation) as error:
        hint = 'write the credits as JSON: [{"amount": -1.25}]'
        raise FactError(row.path, f"row {row.number}, credits", f"found {text[:60]!r}", hint=hint) from error


def _dollars(row: Fields, amount: Decimal) -> Decimal:
    """In dollars, at the rate that Google states in the row: local currency per dollar."""
    rate = row.number_of("currency_conversion_rate")
    if row.text("currency").upper() not in {"", USD} and rate:
        return amount / rate
    return row.dollars(amount, row.text("currency"))


def _machine_type(row: Fields) -> str:
    """The system label compute.googleapis.com/machine_spec."""
    try:
        labels = json.loads(row.text("system_labels") or "[]")
        found = {pair.get("key"): pair.get("value") for pair in labels}
    except (ValueError, AttributeError, TypeError):
        return ""
    return str(found.get("compute.googleapis.com/machine_spec") or "")


KINDS.register("gcp")(Gcp())
