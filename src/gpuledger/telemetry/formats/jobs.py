"""Which tables and lists of jobs are known, and by what? Their rows are read in lake/jobs.

sacct        what sacct prints with bars between the cells (--parsable2, -p)
slurm_json   what sacct, squeue and the REST API give as JSON
pods         kubectl get pods -o json
job_table    any table of jobs: CSV, tabs or bars between its cells, or a JSON list of objects
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Seen, sure
from gpuledger.telemetry.formats.columns import header, is_json, objects

# The names a column may have, written in small letters without spaces, dashes and underscores. The first one that a
# file has is used.
NAMES: Mapping[str, tuple[str, ...]] = {
    "run_id": (
        "runid", "jobidraw", "jobid", "submissionid", "executionid", "rayjobid", "rayid", "flyteexecutionid",
        "slurmjobid", "job", "id",
    ),
    "workload": ("jobname", "workload", "name", "taskname", "experiment"),
    "cluster": ("cluster", "clustername"),
    "namespace": ("namespace", "ns", "project"),
    "team": ("team", "teamname"),
    "user": ("user", "username", "owner", "submittedby"),
    "account": ("account", "accountname"),
    "pod": ("pod", "podname"),
    "host": ("host", "hostname", "node", "nodename", "nodes", "nodelist", "hosts"),
    "gpu": (
        "gpu", "gpuindex", "gpuindices", "gpuid", "gpuids", "gpuuuid", "gpuuuids", "uuid", "uuids", "device", "devices",
        "idx", "gresidx", "gresdetail", "gresused", "gres", "allocgres",
    ),
    "gpus": ("gpus", "numgpus", "ngpus", "gpucount", "alloctres", "tresalloc"),
    "start": ("start", "starttime", "startedat", "started", "begin", "starts", "submitstart"),
    "end": (
        "end", "endtime", "endedat", "ended", "finishedat", "finished", "finish", "stop", "stoptime", "completedat",
    ),
    "state": ("state", "status", "phase"),
    "elapsed": ("elapsed", "elapsedraw"),
    "usage": ("admincomment",),
}  # fmt: skip
OWNERS = (*schema.OWNER, "pod")
_OF_SLURM = frozenset({"nodelist", "alloctres", "reqtres", "account", "state", "elapsed", "jobname", "partition"})
_POD = re.compile(r'"kind"\s*:\s*"Pod(List)?"(?!\s*,\s*"name")')
_EMPTY_LIST = re.compile(r'"kind"\s*:\s*"List"')
_NO_ITEMS = re.compile(r'"items"\s*:\s*\[\s*\]')
_JOBS, _JOB_ID = re.compile(r'"jobs"\s*:\s*\['), re.compile(r'"job_id"\s*:')
# Words in the name of a column that holds readings: no scheduler measures these.
_READING = re.compile(r"util|power|watt|temp|clock|mhz|used|free|smact|fan", re.IGNORECASE)


def plain(name: str) -> str:
    """The name of a column without what spellings differ in."""
    return "".join(c for c in name.casefold() if c.isalnum())


def places_of(cells: Sequence[str]) -> dict[str, int]:
    """By our name of a column its place among the cells of a header."""
    written = [plain(cell) for cell in cells]
    found: dict[str, int] = {}
    for name, spellings in NAMES.items():
        place = next((written.index(s) for s in spellings if s in written), None)
        if place is not None and place not in found.values():
            found[name] = place
    return found


def _sacct(head: Head) -> Seen:
    """By the job's number next to other columns of sacct, with bars between them; or next to its nodes."""
    if is_json(head):
        return NOT_SEEN
    cells = header(head)
    known = {plain(cell) for cell in cells}
    bars = any(line.count("|") >= len(cells) - 1 for line in head.lines[:1]) and len(cells) > 1
    others = known & (_OF_SLURM if bars else {"nodelist"})
    number = known & {"jobid", "jobidraw"}
    return sure(number and others and f"the columns {', '.join(sorted([*number, *others])[:4])}")


def _slurm_json(head: Head) -> Seen:
    """By a list of jobs with their numbers."""
    found = _JOBS.search(head.page) if is_json(head) else None
    return sure(found and _JOB_ID.search(head.page) and "jobs with a job_id")


def _pods(head: Head) -> Seen:
    """By the kind of an item, or by what a pod has where items have no kind."""
    if not is_json(head):
        return NOT_SEEN
    if found := _POD.search(head.page):
        return sure(" ".join(found[0].split()))
    if _EMPTY_LIST.search(head.page) and _NO_ITEMS.search(head.page):
        return Seen(Fit.LIKELY, "an empty list of Kubernetes")
    listed = (one.get("items", [one]) for one in objects(head))
    items = (item for items in listed if isinstance(items, list) for item in items if isinstance(item, dict))
    found_pods = any({"metadata", "spec"} <= item.keys() and "kind" not in item for item in items)
    return sure(found_pods and "objects with metadata and spec")


def _job_table(head: Head) -> Seen:
    """By when a job started and ended, on what, and whose it is; where it has readings too, it is rather telemetry."""
    cells = header(head)
    known = places_of(cells)
    owner = next((name for name in OWNERS if name in known), "")
    if not {"start", "end"} <= known.keys() or not known.keys() & {"host", "gpu", "gpus"} or not owner:
        return NOT_SEEN
    reading = any(_READING.search(cell) for place, cell in enumerate(cells) if place not in known.values())
    named = ", ".join(cells[known[name]] for name in (owner, "start", "end"))
    return Seen(Fit.POSSIBLE if reading else Fit.LIKELY, f"the columns {named}")


for _key, _name, _score in (
    ("sacct", "sacct", _sacct),
    ("slurm_json", "jobs of Slurm as JSON", _slurm_json),
    ("pods", "kubectl get pods -o json", _pods),
    ("job_table", "table of jobs", _job_table),
):
    FORMATS.register(_key)(Format(_name, Kind.JOBS, _score))
