"""Whose labels are these: the workload's, or those of the exporter that was scraped?

Prometheus adds the labels of the scraped target to every series. Where the exporter itself names a pod, the target's
own pod either yields to it (honor_labels: true) or renames it to exported_pod (honor_labels: false). A GPU without a
workload names no pod, so it gets the exporter's own, with either setting: it must not become the owner. The metric `up`
carries exactly the labels of the target, which separates the two.

The workload of a pod is named by kube-state-metrics: kube_pod_owner{namespace, pod, owner_kind, owner_name},
kube_replicaset_owner{namespace, replicaset, owner_kind, owner_name}, kube_job_owner{namespace, job_name, ...} and
kube_pod_labels{namespace, pod, label_team}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuledger.telemetry import schema
from gpuledger.telemetry.series.exporters import NAME, Exporter, infos, is_own_pod, label_names, readings

EXPORTED = "exported_"
OWNED = ("namespace", "pod", "container")
TARGET = "up"

Target = tuple[str, str]


@dataclass
class Targets:
    """What the series say about the targets they were scraped from.

    `owned`: the labels of a target that could be taken for an owner's. `renaming`: scrape jobs that rename the
    workload's labels.
    """

    owned: dict[Target, set[tuple[str, str]]] = field(default_factory=dict)
    renaming: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, series: Iterable[Mapping[str, str]]) -> Targets:
        """The targets by the metric `up`, and the scrape jobs by the labels they renamed."""
        found = cls()
        for labels in series:
            if labels.get(NAME) == TARGET:
                own = {(name, labels[name]) for name in OWNED if labels.get(name)}
                found.owned.setdefault(_target(labels), set()).update(own)
            elif EXPORTED + "pod" in labels:
                found.renaming.add(labels.get("job", ""))
        return found


def _target(labels: Mapping[str, str]) -> Target:
    return labels.get("job", ""), labels.get("instance", "")


@dataclass
class Naming:
    """Turns the labels of series into those of the schema, and counts where the owner came from."""

    targets: Targets
    workloads: Workloads
    kinds: Counter[str] = field(default_factory=Counter)
    described: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    shared: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, series: list[dict[str, str]]) -> Naming:
        """What can be learned from all series together: targets, and how info metrics describe devices."""
        naming = cls(Targets.of(series), Workloads.of(series))
        naming.shared = _shared_boards(series)
        for labels in series:
            exporter = infos().get(labels.get(NAME, ""))
            if exporter is not None and labels.get(exporter.device):
                naming.described[exporter.name, labels[exporter.device]] = labels
        return naming

    def owned(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels with those of the workload in place of the target's own."""
        out = {name: text for name, text in labels.items() if name.removeprefix(EXPORTED) not in OWNED or name in OWNED}
        renamed = {name: labels[EXPORTED + name] for name in OWNED if labels.get(EXPORTED + name)}
        named = [name for name in ("pod", "namespace", "container") if out.get(name)]
        own = self.targets.owned.get(_target(labels), set())
        if renamed:
            self.kinds["renamed"] += 1
            left_out = {name for name in named if (name, out[name]) in own}
        elif named and (
            (named[0], out[named[0]]) in own
            or is_own_pod(out.get("pod", ""))
            or (self.targets.renaming and labels.get("job", "") in self.targets.renaming)
        ):
            self.kinds["own"] += 1
            left_out = set(OWNED)
        else:
            self.kinds["plain"] += bool(named)
            left_out = set()
        return {name: text for name, text in out.items() if name not in left_out} | renamed

    def canonical(self, labels: Mapping[str, str], exporter: Exporter) -> dict[str, str]:
        """The labels under the schema's names; `gpu_profile` is the MIG profile."""
        known = self.described.get((exporter.name, labels.get(exporter.device, "")), {})
        own = {**known, **self.owned(labels)}
        if "instance" in own:
            own["instance"] = own["instance"].rsplit(":", 1)[0]  # a host; the port is the exporter's
        out = {}
        for column, names in label_names(exporter.name).items():
            texts = [own[n] for n in names if own.get(n)]
            if column == "host":
                texts.sort(key=lambda text: self._is_exporter(text, labels))
            text = next(iter(texts), "")
            if text and column in schema.columns():
                out[column] = text
        if profile := own.get("GPU_I_PROFILE") or own.get("profile"):
            out["gpu_profile"] = profile
        part = exporter.partition
        if part and own.get(part.id) and own.get(part.kind, "").lower() not in part.whole:
            out["gpu_instance_id"] = own[part.id]
        if exporter.uuid_prefix and "gpu_uuid" in out and not out["gpu_uuid"].startswith(("GPU-", "MIG-")):
            out["gpu_uuid"] = exporter.uuid_prefix + out["gpu_uuid"]
        board = own.get(exporter.board, "")
        if board and out.get("gpu_uuid") == board and (exporter.name, board) in self.shared:
            del out["gpu_uuid"]  # of several dies: their numbers on the host tell them apart
        if "gpu_uuid" not in out and "gpu_index" in out:
            out["gpu_uuid"] = out["gpu_index"]
        known = self.workloads.labels(out["namespace"], out["pod"]) if {"namespace", "pod"} <= out.keys() else {}
        return {name: text for name, text in known.items() if name in schema.columns()} | out

    def _is_exporter(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether this is the pod of the exporter, which is not a host."""
        return is_own_pod(name) or ("pod", name) in self.targets.owned.get(_target(labels), ())

    def notes(self) -> list[str]:
        """Where owners were found, for the summary of the import."""
        found = []
        if self.kinds["renamed"]:
            found.append("owners are read from exported_namespace, exported_pod, ... (honor_labels: false)")
        elif self.kinds["plain"]:
            found.append("owners are read from namespace, pod and container (honor_labels: true)")
        if self.kinds["own"]:
            found.append("GPUs that name only the exporter's own pod had no workload: they have no owner")
        return found + self.workloads.notes()


def _shared_boards(series: Iterable[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Boards with several devices that are not partitions, by exporter and the label of the board."""
    boards: dict[tuple[str, str], set[str]] = {}
    for labels in series:
        exporter = next((r.exporter for r in readings().get(labels.get(NAME, ""), ()) if r.exporter.board), None)
        if exporter is None or not labels.get(exporter.board):
            continue
        part = exporter.partition
        if part is None or labels.get(part.kind, "").lower() in part.whole:
            index = next((labels[n] for n in exporter.labels.get("gpu_index", ()) if labels.get(n)), "")
            boards.setdefault((exporter.name, labels[exporter.board]), set()).add(index)
    return {board for board, indices in boards.items() if len(indices) > 1}


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
