"""How do the GPU models compare?"""

from __future__ import annotations

from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.means import by_label
from gpuledger.efficiency.statement import GroupRow

NO_MODEL = "no model name"


def model_rows(accounts: Accounts) -> tuple[GroupRow, ...]:
    """Analysis 5: means and classes of each model, by name."""
    names, groups = by_label(accounts, "gpu_model", lambda model: model or NO_MODEL)
    return tuple(
        GroupRow(name, groups.means[i], groups.bottlenecked_pct[i], groups.classes_pct(i))
        for i, name in enumerate(names)
    )
