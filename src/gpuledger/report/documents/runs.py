"""What do runs show whose energy a tool summed up? GPU-hours, energy and mean power, and each run."""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.encode import encode
from gpuledger.report.document import Document, KeyFigure, Prose
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, gpus, loose, model, number, whole
from gpuledger.telemetry.runs import Run, Runs
from gpuledger.units import Unknown, known

NAME = "runs"
NOT_SAMPLES = "Runs are not samples: nothing is added to a lake, and how busy the GPUs were is not in the file."


@document_for(Runs)
def runs_document(found: Runs) -> Document:
    """The document of the runs of a file."""
    table = _table(found)
    return Document(
        name=NAME,
        kind="Runs",
        title=f"Runs of {found.tool}",
        headline=f"{', '.join(_headline(found))}.",
        facts=list(_facts(found)),
        notes=[Prose(NOT_SAMPLES, "note"), *(Prose(text, "warning") for text in _warnings(found))],
        figures=list(_figures(found)),
        summary=[table],
        sections=[],
        screen=[table],
        data=lambda: encode(NAME, found),
        main_table="by_run",
    )


def _headline(found: Runs) -> Iterator[str]:
    yield f"{amount(whole(found.runs), 'run')} {_gpus(found)}"
    yield _written(found.gpu_hours, "GPU-hour", "GPU-hours unknown")
    yield _energy(found.energy_kwh)


def _gpus(found: Runs) -> str:
    """What the runs had, after their number."""
    if isinstance(found.gpus, Unknown):
        return "with an unknown number of GPUs"
    if not found.runs_with_gpus:
        return "without a GPU"
    with_gpus = f"with {'up to ' if found.runs_with_gpus > 1 and found.gpus > 1 else ''}{gpus(found.gpus)}"
    return with_gpus if found.runs_with_gpus == found.runs else f"({whole(found.runs_with_gpus)} {with_gpus})"


def _written(value: float | Unknown, unit: str, unknown: str) -> str:
    return unknown if isinstance(value, Unknown) else amount(_small(value), unit)


def _energy(value: float | Unknown) -> str:
    return "GPU energy unknown" if isinstance(value, Unknown) else f"{_small(value)} kWh of GPU energy"


def _small(value: float) -> str:
    """A figure of any size: runs may take milliseconds."""
    return loose(value) if value >= 0.01 or not value else f"{value:.2g}"


def _facts(found: Runs) -> Iterator[str]:
    yield from (model(name) for name in found.gpu_models)
    ends = sorted(run.ended for run in found.by_run if run.ended)
    if ends:
        yield f"ended {ends[0]} to {ends[-1]}, local time" if ends[0] != ends[-1] else f"ended {ends[0]}, local time"
    if found.versions:
        yield f"{found.tool} {', '.join(found.versions)}"


def _warnings(found: Runs) -> Iterator[str]:
    """What the figures leave out or may count twice."""
    repeats = found.rows - found.runs
    if repeats:
        yield f"{amount(whole(repeats), 'row')} with sums of a run that goes on: only the last row of a run counts."
    if found.rows_not_read:
        yield f"{amount(whole(found.rows_not_read), 'row')} not read: cells are missing, or the duration is."
    no_count = found.runs - found.runs_with_gpus - found.runs_without_gpus
    if no_count and not isinstance(found.gpu_hours, Unknown):
        yield f"{amount(whole(no_count), 'run')} without a number of GPUs: not in the GPU-hours."
    measured = [run for run in found.by_run if run.gpus and isinstance(run.energy_kwh, Unknown)]
    if measured and not isinstance(found.energy_kwh, Unknown):
        yield f"{amount(whole(len(measured)), 'run')} with GPUs but without their energy: not in the sum."
    if found.overlapping and found.gpus:
        runs = amount(whole(found.overlapping), "run")
        yield f"{runs} began before another had ended: GPUs that both measured are counted twice."
    if any(name.startswith("Apple") for name in found.gpu_models):
        yield "Apple: the graphics of a Mac's chip, counted because gpu_count says so."


def _figures(found: Runs) -> Iterator[KeyFigure]:
    shown = (
        ("GPU-hours", found.gpu_hours, "", f"in {_small(found.run_hours)} h of runs with GPUs"),
        ("GPU energy", found.energy_kwh, " kWh", "as summed up by the tool"),
        ("Power", found.power_w, " W", "mean of a GPU: energy over GPU-hours"),
    )
    for label, value, unit, note in shown:
        if isinstance(value, Unknown):
            yield KeyFigure(label, "unknown", "", value.why, unknown=True)
        else:
            yield KeyFigure(label, f"{_small(value)}{unit}", "", note)


def _table(found: Runs) -> Table:
    """A line for each run, the one with the most GPU-hours first."""
    order = sorted(found.by_run, key=lambda run: (-(known(run.gpu_hours) or 0.0), -run.run_hours))
    heads = ("Run", "Ended", "GPUs", "Hours", "GPU-hours", "kWh", "W/GPU")
    caption = f"By run, times local; {amount(whole(found.runs), 'run')}"
    named = len(found.gpu_models) > 1
    return make_table("by-run", caption, heads, "wwnnnnn", (_row(run, named) for run in order))


def _row(run: Run, with_model: bool) -> Row:
    words = (run.project or run.run_id, model(run.gpu_model) if with_model and run.gpu_model else "")
    return [
        " ".join(word for word in words if word), cell(run.ended[:16].replace("T", " "), run.ended),
        figure(run.gpus, number), figure(run.run_hours, _small), figure(run.gpu_hours, _small),
        figure(run.energy_kwh, _small), figure(run.power_w, _small),
    ]  # fmt: skip
