"""What is special about the tables of Slurm's sacct?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Row = Mapping[str, str]
_MARKS = {"jobid", "nodelist"}


def is_sacct(header: Sequence[str]) -> bool:
    """Whether these are columns of sacct."""
    return {h.casefold() for h in header} >= _MARKS


def folded(rows: Sequence[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """One row for each job: its steps (.batch, .extern, .0) only fill in what the row of the job leaves open.

    A job that was requeued has a row for each time it started; its steps belong to the one that started last before
    them.
    """
    jobs: list[tuple[int, dict[str, str]]] = []
    of: dict[str, dict[str, str]] = {}
    for number, row in rows:
        name, dot, _step = row.get("run_id", "").partition(".")
        if not dot:
            of[name] = dict(row)
            jobs.append((number, of[name]))
        elif name not in of:  # a table of steps alone
            of[name] = {**row, "run_id": name, "workload": ""}
            jobs.append((number, of[name]))
        else:
            job = of[name]
            for column in ("host", "gpus", "user", "account"):
                job[column] = job.get(column) or row.get(column, "")
    return [(n, job) for n, job in jobs]
