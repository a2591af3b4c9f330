"""Which jobs does `sacct --json` list? Its times are epoch numbers, so that they need no time zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOTHING = frozenset(("", "None", "None assigned", "none"))


def sacct_jobs(document: Any) -> list[Mapping[str, Any]] | None:
    """The jobs of a document that sacct wrote; None where it is another one."""
    jobs = document.get("jobs") if isinstance(document, Mapping) else None
    if not isinstance(jobs, list) or not all(isinstance(job, Mapping) for job in jobs):
        return None
    return jobs if jobs and all("job_id" in job and isinstance(job.get("time"), Mapping) for job in jobs) else None


def sacct_row(job: Mapping[str, Any]) -> dict[str, str]:
    """A job by our names of the columns; its steps are left out, as they are part of it.

    So is Slurm's name of the cluster, which is in every document: samples may know the cluster under another one, and
    would contradict each of its jobs.
    """
    who, time = _part(job, "association"), _part(job, "time")
    allocated = _part(job, "tres").get("allocated")
    return {
        "run_id": str(job["job_id"]),
        "workload": _text(job.get("name")),
        "user": _text(job.get("user")) or _text(who.get("user")),
        "account": _text(job.get("account")) or _text(who.get("account")),
        "host": _text(job.get("nodes")),
        "gpus": _gpus(allocated if isinstance(allocated, list) else []),
        "start": _instant(time.get("start")),
        "end": _instant(time.get("end")),
    }


def _gpus(allocated: list[Any]) -> str:
    """The GPUs as AllocTRES writes them; other resources too, as a job that lists those only holds none."""
    found = [tres for tres in allocated if isinstance(tres, Mapping)]
    named = ((_text(t.get("type")), _text(t.get("name")), _text(t.get("count"))) for t in found)
    return ",".join(f"{kind}/{name}={count}" if name else f"{kind}={count}" for kind, name, count in named)


def _instant(value: object) -> str:
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
