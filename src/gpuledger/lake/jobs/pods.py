"""What does `kubectl get pods -o json` show: the pods, and when and of which namespaces was it printed?

The list has no time of its own. It was printed no earlier than the newest time in it, and no later than its file was
last written. Whoever knows better writes `taken_at` next to `items`.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from gpuledger.errors import FileFault, InputError
from gpuledger.lake.jobs.lists import PodList
from gpuledger.telemetry import schema
from gpuledger.telemetry.stamps import StampReader
from gpuledger.times import instant_ms
from gpuledger.units import MS_PER_S, utc

TAKEN = "taken_at"
# A list of all namespaces has this one, with a pod on every node.
_SYSTEM = "kube-system"
_GPU = ("nvidia.com/gpu", "amd.com/gpu", "amd.com/spx_nps1", "gpu.intel.com/i915")
# Parts of a GPU: which one a pod has is not in its description.
_PARTS = {
    "mig_slices": re.compile(r"nvidia\.com/mig-.+"),
    "gpu_shares": re.compile(r"nvidia\.com/gpu\.shared|amd\.com/[dtqc]px_nps\d"),
}
# Labels under which jobs, runs, teams and users are known; the first one a pod has is used.
_LABELS = {
    "run_id": ("execution-id", "ray.io/submission-id", "batch.kubernetes.io/job-name", "job-name", "run-id", "run_id"),
    "workload": ("workload", "app.kubernetes.io/name", "ray.io/cluster", "app"),
    "team": ("team", "app.kubernetes.io/team"),
    "user": ("user", "owner"),
    "account": ("account",),
}


def pod_row(pod: Mapping[str, Any]) -> dict[str, str]:
    """A pod as a row of jobs. `part` is filled where it holds parts of GPUs, which cannot be distinguished.

    A pod that is being deleted ends when its grace period does, even if a container still runs.
    """
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
        "part": next((why for why, part in _PARTS.items() if any(map(part.fullmatch, wanted))), ""),
        "start": str(status.get("startTime") or ""),
        "end": _end(status) or str(meta.get("deletionTimestamp") or ""),
    }


def _wanted(spec: Mapping[str, Any]) -> dict[str, int]:
    """The devices all containers of a pod ask for together."""
    out: dict[str, int] = {}
    for container in _list(spec, "containers"):
        resources = _part(container, "resources")
        asked = {**_part(resources, "requests"), **_part(resources, "limits")}
        for name, count in asked.items():
            known = name in _GPU or any(part.fullmatch(name) for part in _PARTS.values())
            if known and str(count).isdecimal() and len(str(count)) < 10:
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


def list_of(document: Any, pods: Sequence[Mapping[str, Any]]) -> PodList | None:
    """What a document shows about pods that it does not list; None where it shows single pods or no time."""
    at_ms = newest_ms(pods)
    spaces = {str(_part(pod, "metadata").get("namespace") or "") for pod in pods}
    if at_ms is None or "" in spaces or (isinstance(document, Mapping) and "items" not in document):
        return None
    content = hashlib.blake2b(digest_size=16)
    for text in sorted(msgspec.json.encode(pod, order="deterministic") for pod in pods):
        content.update(text)
    nodes = {str(_part(pod, "spec").get("nodeName") or "") for pod in pods} - {""} if _SYSTEM in spaces else set()
    return PodList(
        id=content.hexdigest(),
        at_ms=at_ms,
        namespace=spaces.pop() if len(spaces) == 1 else None,
        nodes=tuple(sorted(nodes)),
    )


def common_labels(pods: Sequence[Mapping[str, Any]]) -> list[str]:
    """The labels that all pods of a list have, as kubectl -l writes them: what it may have been narrowed by."""
    found = [{f"{k}={v}" for k, v in _part(_part(pod, "metadata"), "labels").items()} for pod in pods]
    return sorted(set.intersection(*found)) if found else []


def timed(path: Path, listed: PodList, taken: str | int) -> PodList:
    """The list with what is known of when it was taken."""
    file = path.stat()
    written_ms = -(-file.st_mtime_ns // 1_000_000) if stat.S_ISREG(file.st_mode) else None
    if taken == "":
        by_ms = None if written_ms is None or written_ms < listed.at_ms else written_ms
        return msgspec.structs.replace(listed, by_ms=by_ms, written_ms=written_ms)
    try:
        at_ms = instant_ms(taken)
    except InputError as error:
        raise FileFault(path, f"its {TAKEN}: {error}", hint=error.hint) from error
    if at_ms // MS_PER_S < listed.at_ms // MS_PER_S:
        newest, then = (f"{utc(ms):%Y-%m-%dT%H:%M:%SZ}" for ms in (listed.at_ms, at_ms))
        words = f"it shows something of {newest}, which is after the time it was taken ({then})"
        raise FileFault(path, words, hint="write the time at which kubectl printed it, with its zone")
    at_ms = max(at_ms, listed.at_ms)
    return msgspec.structs.replace(listed, at_ms=at_ms, by_ms=at_ms, exact=True, written_ms=written_ms)


def newest_ms(pods: Sequence[Mapping[str, Any]]) -> int | None:
    """The newest time at which something happened to one of the pods."""
    limits = schema.columns()[schema.TIME]
    times = list(dict.fromkeys(text for pod in pods for text, _ in _times(pod)))
    at, fault = StampReader((), "UTC").read(pa.array(times, pa.string()))
    known = {t: ms for t, ms, f in zip(times, at.tolist(), fault.tolist(), strict=True) if not f}
    found = (known[text] - early for pod in pods for text, early in _times(pod) if text in known)
    return max((ms for ms in found if limits.min <= ms <= limits.max), default=None)


def _times(pod: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Texts of instants, each with the ms by which what it shows was known before."""
    meta, status = _part(pod, "metadata"), _part(pod, "status")
    grace = meta.get("deletionGracePeriodSeconds")
    texts: list[tuple[object, int]] = [(meta.get("creationTimestamp"), 0), (status.get("startTime"), 0)]
    if isinstance(grace, int) and 0 <= grace < 1_000_000:  # the time of deletion lies ahead by the grace period
        texts.append((meta.get("deletionTimestamp"), grace * MS_PER_S))
    texts += [(entry.get("time"), 0) for entry in _list(meta, "managedFields")]
    texts += [(entry.get("lastTransitionTime"), 0) for entry in _list(status, "conditions")]
    for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for container in _list(status, kind):
            for state in (_part(container, "state"), _part(container, "lastState")):
                for part, name in (("running", "startedAt"), ("terminated", "startedAt"), ("terminated", "finishedAt")):
                    texts.append((_part(state, part).get(name), 0))
    return ((text, early) for text, early in texts if isinstance(text, str) and text)
