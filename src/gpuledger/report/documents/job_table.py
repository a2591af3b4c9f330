"""What does a table of jobs show by itself? GPU-hours, whose they are, and what jobstats measured."""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.encode import encode
from gpuledger.lake.jobs.jobstats import GpuUsage
from gpuledger.lake.jobs.summary import OWNERS, Job, JobSummary
from gpuledger.report.document import Document, KeyFigure, Prose
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, capital, gpus, number, percent, period, tenth, whole
from gpuledger.telemetry.stated import stated_words
from gpuledger.units import GIB, Unknown, some

NAME = "job_table"
NOT_SAMPLES = "A job holds its GPUs whether it uses them or not: with samples, the bill of each owner shows what of it"
NEXT = "was waste (gpuledger audit SAMPLES {file})."


@document_for(JobSummary)
def job_table_document(found: JobSummary) -> Document:
    """The document of a table of jobs."""
    tables = [*([_owners(found)] if found.by in OWNERS else []), _jobs(found)] if found.jobs else []
    return Document(
        name=NAME,
        kind="Jobs",
        title=f"Jobs of {found.format}",
        headline=f"{', '.join(_headline(found))}.",
        facts=list(_facts(found)),
        notes=list(_notes(found)),
        figures=list(_figures(found)),
        summary=tables,
        screen=tables,
        data=lambda: encode(NAME, found),
        main_table="by_job",
    )


def _headline(found: JobSummary) -> Iterator[str]:
    hours, util, shown = found.gpu_hours, found.gpu_util_pct, found.jobs - found.jobs_without_gpu_count
    listed = amount(whole(found.jobs_listed), "job")
    if found.jobs and not shown:
        yield f"{listed}, and the table does not show which held GPUs"
    else:
        yield f"{listed} held GPUs" if shown == found.jobs_listed else f"{whole(shown)} of {listed} held GPUs"
    yield "GPU-hours unknown" if isinstance(hours, Unknown) else amount(_hours(hours), "GPU-hour")
    if not isinstance(util, Unknown):
        yield f"GPUs {percent(util)} utilized"


def _hours(value: float) -> str:
    """Three places, as jobs may take seconds."""
    return number(value, 3)


def _facts(found: JobSummary) -> Iterator[str]:
    yield f"read as {found.format}"
    if found.start_ms is not None and found.end_ms is not None:
        yield period(found.start_ms, found.end_ms)
    if found.hosts:
        yield amount(whole(found.hosts), "host")
    if found.jobs_running:
        yield f"{amount(whole(found.jobs_running), 'job')} running on {gpus(found.gpus_running)}"


def _notes(found: JobSummary) -> Iterator[Prose]:
    if found.stated:
        yield Prose(f"stated: {stated_words(found.stated)}", "note")
    yield from (Prose(f"{capital(words)}.", "warning") for words in found.notes)
    if found.jobs:
        yield Prose(f"{NOT_SAMPLES} {NEXT.format(file=found.file)}", "note")


def _figures(found: JobSummary) -> Iterator[KeyFigure]:
    measured = "mean over the GPU-hours of jobs that jobstats measured"
    shown = (("GPU-hours", found.gpu_hours, _hours, ""), ("Utilization", found.gpu_util_pct, percent, measured))
    for label, value, form, note in shown:
        if not isinstance(value, Unknown):
            yield KeyFigure(label, form(value), "", note)
        elif label == "GPU-hours":
            yield KeyFigure(label, "unknown", "", value.why, unknown=True)


def _owners(found: JobSummary) -> Table:
    rows: list[Row] = [
        [one.owner or "-", cell(whole(one.jobs), one.jobs), figure(one.gpu_hours, _hours),
         figure(one.gpu_util_pct, percent)]
        for one in found.by_owner
    ]  # fmt: skip
    heads = (capital(found.by), "Jobs", "GPU-hours", "Util.")
    return _without_unknown("owners", f"By {found.by}", heads, "wnnn", rows)


def _jobs(found: JobSummary) -> Table:
    heads = ("Job", capital(found.by), "Hosts", "GPUs", "Hours", "GPU-hours", "Util.", "Memory GiB", "By GPU")
    rows = [_row(job) for job in found.by_job]
    more = found.jobs - len(rows)
    note = f"The {whole(len(rows))} with the most GPU-hours; {whole(more)} more are not shown." if more else ""
    return _without_unknown("jobs", f"By job; {amount(whole(found.jobs), 'job')}", heads, "wwwnnnnnW", rows, note)


def _row(job: Job) -> Row:
    memory = "unknown"
    if not isinstance(job.memory_used_bytes, Unknown) and not isinstance(job.memory_total_bytes, Unknown):
        memory = f"{tenth(job.memory_used_bytes / GIB)} of {tenth(job.memory_total_bytes / GIB)}"
    return [
        job.job or "-", job.owner or "-", some(job.hosts, 2) or "-", figure(job.gpus, whole), figure(job.hours, _hours),
        figure(job.gpu_hours, _hours), figure(job.gpu_util_pct, percent), cell(memory, job.memory_used_bytes),
        ", ".join(map(_gpu, job.by_gpu[:8])) or "-",
    ]  # fmt: skip


def _gpu(one: GpuUsage) -> str:
    return f"{one.host}/{one.gpu} {'unknown' if one.gpu_util_pct is None else percent(one.gpu_util_pct)}"


def _without_unknown(
    name: str, caption: str, heads: tuple[str, ...], words: str, rows: list[Row], note: str = ""
) -> Table:
    """A table without the columns that say nothing of any job."""
    said = [any(c != "-" and not getattr(c, "unknown", False) for c in column) for column in zip(*rows, strict=True)]
    kept = [i for i, any_said in enumerate(said) if i == 0 or any_said]
    shown = ([row[i] for i in kept] for row in rows)
    return make_table(
        name, caption, [heads[i] for i in kept], "".join(words[i] for i in kept), shown, note=note,
        empty="No job of the table held a GPU.",
    )  # fmt: skip
