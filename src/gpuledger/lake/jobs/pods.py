"""Which GPUs did a pod hold, by what kubectl writes of it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GPU = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915")
_MIG = "nvidia.com/mig-"
# Labels under which jobs, runs, teams and users are known; the first one a pod has is used.
_LABELS = {
    "run_id": ("execution-id", "ray.io/submission-id", "batch.kubernetes.io/job-name", "job-name", "run-id", "run_id"),
    "workload": ("workload", "app.kubernetes.io/name", "ray.io/cluster", "app"),
    "team": ("team", "app.kubernetes.io/team"),
    "user": ("user", "owner"),
    "account": ("account",),
}


def row_of(pod: Mapping[str, Any]) -> dict[str, str]:
    """A pod as a row of jobs. `mig` is filled where it holds MIG slices, which cannot be distinguished."""
    meta, spec, status = (_part(pod, name) for name in ("metadata", "spec", "status"))
    labels = _part(meta, "labels")
    wanted = _wanted(spec)
    row = {name: next((str(labels[k]) for k in keys if labels.get(k)), "") for name, keys in _LABELS.items()}
    owners = _list(meta, "ownerReferences")
    row["workload"] = row["workload"] or (str(owners[0].get("name") or "") if owners else "")
    return row | {
        "pod": str(meta.get("name", "")),
        "namespace": str(meta.get("namespace", "")),
        "host": str(spec.get("nodeName") or ""),
        "gpus": str(sum(int(n) for k, n in wanted.items() if k in _GPU)),
        "mig": "yes" if any(k.startswith(_MIG) for k in wanted) else "",
        "start": str(status.get("startTime") or ""),
        "end": _end(status),
    }


def _wanted(spec: Mapping[str, Any]) -> dict[str, int]:
    """The devices all containers of a pod ask for together."""
    out: dict[str, int] = {}
    for container in _list(spec, "containers"):
        resources = _part(container, "resources")
        asked = {**_part(resources, "requests"), **_part(resources, "limits")}
        for name, count in asked.items():
            if (name in _GPU or name.startswith(_MIG)) and str(count).isdecimal():
                out[name] = out.get(name, 0) + int(count)
    return out


def _end(status: Mapping[str, Any]) -> str:
    """When the last container ended; empty while one runs. Of a pod without containers, its last change."""
    ended = []
    for container in _list(status, "containerStatuses"):
        finished = _part(_part(container, "state"), "terminated").get("finishedAt")
        if not finished:
            return ""
        ended.append(str(finished))
    if not ended and status.get("phase") in ("Succeeded", "Failed"):
        ended = [str(c.get("lastTransitionTime") or "") for c in _list(status, "conditions")]
        ended = ended or [str(status.get("startTime") or "")]  # evicted: when is not said, so it holds no time
    return max(ended, default="")


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}


def _list(of: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = of.get(name)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []
