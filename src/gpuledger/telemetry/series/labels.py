"""Whose labels are these: the workload's, or those of the exporter that was scraped?

Prometheus adds the labels of the scraped target to every series. Where the exporter itself names a pod, the target's
own pod either yields to it (honor_labels: true) or renames it to exported_pod (honor_labels: false). A GPU without a
workload names no pod, so it gets the exporter's own, with either setting: it must not become the owner. The metric `up`
carries exactly the labels of the target, which separates the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuledger.telemetry import schema
from gpuledger.telemetry.series.exporters import NAME, Exporter, infos, is_own_pod, label_names
from gpuledger.telemetry.series.workloads import Workloads

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

    @classmethod
    def of(cls, series: list[dict[str, str]]) -> Naming:
        """What can be learned from all series together: targets, and how info metrics describe devices."""
        naming = cls(Targets.of(series), Workloads.of(series))
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
            text = next((own[n] for n in names if own.get(n)), "")
            if text and column in schema.columns():
                out[column] = text
        if profile := own.get("GPU_I_PROFILE") or own.get("profile"):
            out["gpu_profile"] = profile
        part = exporter.partition
        if part and own.get(part.id) and own.get(part.kind, part.whole).lower() != part.whole:
            out["gpu_instance_id"] = own[part.id]
        if exporter.uuid_prefix and "gpu_uuid" in out and not out["gpu_uuid"].startswith(("GPU-", "MIG-")):
            out["gpu_uuid"] = exporter.uuid_prefix + out["gpu_uuid"]
        if "gpu_uuid" not in out and "gpu_index" in out:
            out["gpu_uuid"] = out["gpu_index"]
        known = self.workloads.labels(out["namespace"], out["pod"]) if {"namespace", "pod"} <= out.keys() else {}
        return {name: text for name, text in known.items() if name in schema.columns()} | out

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
