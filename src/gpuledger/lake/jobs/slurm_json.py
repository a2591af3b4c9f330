"""Which jobs do sacct, squeue and the REST API of Slurm list as JSON?

Their times are epoch numbers, so that they need no time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOTHING = frozenset(("", "None", "None assigned", "none"))
# Times of such jobs are plans.
_WAITING = frozenset(("PENDING", "CONFIGURING", "REQUEUED"))
_AT_WORK = frozenset(("RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED"))


def slurm_jobs(document: Any, *, timed: bool = True) -> list[Mapping[str, Any]] | None:
    """The jobs of a document that Slurm wrote; None where it is another one. `timed`: with their times."""
    jobs = document.get("jobs") if isinstance(document, Mapping) else None
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, Mapping) for job in jobs):
        return None
    fine = all("job_id" in job and (not timed or _part(job, "time") or "start_time" in job) for job in jobs)
    return jobs if fine else None


def slurm_row(job: Mapping[str, Any]) -> dict[str, str]:
    """A job by our names of the columns; its steps are left out, as they are part of it.

    So is Slurm's name of the cluster, which is in every document: samples may know the cluster under another one, and
    would contradict each of its jobs.
    """
    who = _part(job, "association")
    held = job.get("gres_detail")
    return {
        "run_id": str(job["job_id"]),
        "workload": _text(job.get("name")),
        "user": _text(job.get("user")) or _text(job.get("user_name")) or _text(who.get("user")),
        "account": _text(job.get("account")) or _text(who.get("account")),
        "host": _text(job.get("nodes")),
        "gpus": _gpus(job),
        "gpu": _text(held[0]) if isinstance(held, list) and len(held) == 1 else "",  # of several nodes, which is whose?
        "usage": _text(job.get("admin_comment")) or _text(_part(job, "comment").get("administrator")),
    } | _times(job)


def _times(job: Mapping[str, Any]) -> dict[str, str]:
    """Start, end and state; of what squeue lists, those of jobs that wait and the ends of jobs at work are plans."""
    states = _states(job)
    known = _part(job, "time")
    if known:
        names = ("start", "end", "elapsed")
        return {name: _number(known.get(name)) for name in names} | {"state": _state(states)}
    start = "" if states & _WAITING else _number(job.get("start_time"))
    end = "" if states & (_WAITING | _AT_WORK) else _number(job.get("end_time"))
    return {"start": start, "end": end, "elapsed": "", "state": _state(states)}


def _states(job: Mapping[str, Any]) -> frozenset[str]:
    """The states of a job, which some versions write as a word, some as a list, and some in an object."""
    found = job.get("job_state", job.get("state"))
    found = found.get("current") if isinstance(found, Mapping) else found
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset([_text(found)])


def _state(states: frozenset[str]) -> str:
    return next((state for state in sorted(states & _WAITING) + sorted(states & _AT_WORK)), "")


def _gpus(job: Mapping[str, Any]) -> str:
    """The GPUs as AllocTRES writes them; other resources too, as a job that lists those only holds none."""
    allocated = _part(job, "tres").get("allocated")
    found = [tres for tres in allocated if isinstance(tres, Mapping)] if isinstance(allocated, list) else []
    named = ((_text(t.get("type")), _text(t.get("name")), _text(t.get("count"))) for t in found)
    listed = ",".join(f"{kind}/{name}={count}" if name else f"{kind}={count}" for kind, name, count in named)
    return listed or _text(job.get("tres_alloc_str"))


def _number(value: object) -> str:
    """Epoch seconds; empty where the job has not come that far. Some versions write {"set": true, "number": 1}."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") else None
    return str(value) if isinstance(value, int) and value > 0 else ""


def _text(value: object) -> str:
    text = "" if value is None else str(value).strip()
    return "" if text in _NOTHING else text


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}
