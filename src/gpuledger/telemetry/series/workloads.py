"""Which workload does a pod belong to, by kube-state-metrics?

kube_pod_owner{namespace, pod, owner_kind, owner_name}, kube_replicaset_owner{namespace, replicaset, owner_kind,
owner_name}, kube_job_owner{namespace, job_name, ...} and kube_pod_labels{namespace, pod, label_team} name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuledger.telemetry.series.exporters import NAME

POD_OWNER, POD_LABELS = "kube_pod_owner", "kube_pod_labels"
SET_OWNER, JOB_OWNER = "kube_replicaset_owner", "kube_job_owner"
METRICS = (POD_OWNER, POD_LABELS, SET_OWNER, JOB_OWNER)
TEAM = "label_team"
_NO_OWNER = "<none>"
_EXPORTED = "exported_"

Pod = tuple[str, str]


@dataclass
class Workloads:
    """Owners by namespace and name. `unclear`: pods with several owners in the same time, left without one."""

    owners: dict[Pod, set[tuple[str, str]]] = field(default_factory=dict)
    sets: dict[Pod, set[str]] = field(default_factory=dict)
    jobs: dict[Pod, set[str]] = field(default_factory=dict)
    teams: dict[Pod, set[str]] = field(default_factory=dict)
    unclear: set[Pod] = field(default_factory=set)

    @classmethod
    def of(cls, series: Iterable[Mapping[str, str]]) -> Workloads:
        """What the series of kube-state-metrics say."""
        found = cls()
        for labels in series:
            if labels.get(NAME) in METRICS:
                found._take(labels[NAME], _own(labels))
        return found

    def _take(self, name: str, labels: Mapping[str, str]) -> None:
        space, kind, owner = labels.get("namespace", ""), labels.get("owner_kind", ""), labels.get("owner_name", "")
        owned = owner not in ("", _NO_OWNER) and labels.get("owner_is_controller", "true") != "false"
        if name == POD_OWNER and owned:
            self.owners.setdefault((space, labels.get("pod", "")), set()).add((kind, owner))
        elif name == SET_OWNER and owned:
            self.sets.setdefault((space, labels.get("replicaset", "")), set()).add(owner)
        elif name == JOB_OWNER and owned:
            self.jobs.setdefault((space, labels.get("job_name", "")), set()).add(owner)
        elif name == POD_LABELS and labels.get(TEAM):
            self.teams.setdefault((space, labels.get("pod", "")), set()).add(labels[TEAM])

    def labels(self, namespace: str, pod: str) -> dict[str, str]:
        """The workload, the run and the team of a pod, as far as they are known and clear."""
        out: dict[str, str] = {}
        key = namespace, pod
        owners, teams = self.owners.get(key, set()), self.teams.get(key, set())
        if len(owners) > 1 or len(teams) > 1:
            self.unclear.add(key)
        if len(owners) == 1:
            kind, name = next(iter(owners))
            above = {"ReplicaSet": self.sets, "Job": self.jobs}.get(kind, {}).get((namespace, name), set())
            out["workload"] = next(iter(above)) if len(above) == 1 else name
            if kind == "Job":
                out["run_id"] = name
        if len(teams) == 1:
            out["team"] = next(iter(teams))
        return out

    def notes(self) -> list[str]:
        """What is unclear, for the summary of the import."""
        if not self.unclear:
            return []
        names = ", ".join("/".join(pod) for pod in sorted(self.unclear)[:3])
        return [f"kube-state-metrics names several owners at a time for {names}: no workload is booked for them"]


def _own(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of the object, which a scrape may have renamed."""
    renamed = {name.removeprefix(_EXPORTED): text for name, text in labels.items() if name.startswith(_EXPORTED)}
    return {**labels, **renamed}
