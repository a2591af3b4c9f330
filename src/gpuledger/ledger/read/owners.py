"""By what can time and dollars be broken down, and what is a part called that has no such label?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np

from gpuledger.errors import UnknownName
from gpuledger.ledger.read.columns import Rows
from gpuledger.ledger.read.scope import NO_NAMESPACE, namespace_name

# The labels that name an owner where no namespace does.
OWNED = ("team", "user", "account", "workload", "run_id", "pod")
Labels = Mapping[str, str | None]
TeamOf = Callable[[str | None, str | None], str | None]


class By(StrEnum):
    """A dimension of ownership."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"
    TEAM = "team"
    USER = "user"
    ACCOUNT = "account"
    JOB = "job"
    POD = "pod"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of a line that it rests on."""
        return _LABELS.get(self, (self.value,))


_LABELS = {By.JOB: ("workload", "run_id"), By.POD: ("namespace", "pod"), By.TEAM: ("cluster", "namespace", "team")}


def dimension(name: str) -> By:
    """The dimension of that name, or an error that lists them."""
    try:
        return By(name)
    except ValueError:
        raise UnknownName("dimension of ownership", str(name), [by.value for by in By]) from None


def labelled(rows: Rows) -> np.ndarray:
    """The lines that name an owner in some way other than a namespace."""
    out = np.zeros(len(rows["hour_ms"]), dtype=bool)
    for name in OWNED:
        out |= rows[name] >= 0
    return out


def named_by(by: By, labels: Labels, *, owned: bool, team_of: TeamOf = lambda _cluster, _namespace: None) -> str:
    """What a part of the time is called. `owned`: whether some label names its owner; `team_of`: teams as set."""
    if by is By.NAMESPACE:
        return space_name(labels.get("namespace"), owned=owned)
    if by is By.JOB:
        job, name = labels.get("run_id"), labels.get("workload")
        found = f"{job} ({name})" if job and name else job or name
    elif by is By.POD:
        pod, space = labels.get("pod"), labels.get("namespace")
        found = f"{space}/{pod}" if pod and space else pod
    elif by is By.TEAM:
        found = labels.get("team") or team_of(labels.get("cluster"), labels.get("namespace"))
    else:
        found = labels.get(by.value)
    return found or f"no {by.value} recorded"


def space_name(namespace: str | None, *, owned: bool) -> str:
    """A namespace as statements name it; time without one is unallocated only if nothing else names an owner."""
    return NO_NAMESPACE if namespace is None and owned else namespace_name(namespace)
