"""What does an answer about speed show? The rate with its range, where the time goes, and what was assumed."""

from __future__ import annotations

from gpuledger.encode import encode
from gpuledger.plan.speed.ranges import Rate
from gpuledger.plan.speed.throughput import DecodeRate, ImageRate, Throughput, TrainRate
from gpuledger.report.document import Block, Bullets, Document, Prose
from gpuledger.report.documents import document_for
from gpuledger.report.documents.fit import range_note
from gpuledger.report.tables import Row, Table, cell, make_table
from gpuledger.report.written import number, percent
from gpuledger.units import Unknown

NO_ROOM = "It does not fit: see gpuledger plan fit. The rates are what it would give if it did."


@document_for(Throughput)
def throughput_document(answer: Throughput) -> Document:
    """The document of an answer about speed."""
    blocks: list[Block] = []
    if isinstance(answer.train, TrainRate):
        blocks += [_step(answer.train), *range_note(answer.train.rate.range_from)]
    if isinstance(answer.decode, tuple):
        blocks.append(_decode(answer.decode))
    if isinstance(answer.images, ImageRate):
        blocks += [_images(answer.images), *range_note(answer.images.rate.range_from)]
    if isinstance(answer.prefill, Rate):
        blocks.append(Prose(f"Prefill (reading prompts): {_range(answer.prefill)} tokens/s."))
    return Document(
        name="throughput",
        kind="Throughput",
        title=f"Throughput of {answer.model}",
        headline=_headline(answer),
        notes=[] if answer.fits else [Prose(NO_ROOM, "warning")],
        summary=[*blocks, Bullets(answer.assumptions, "Assumptions")],
        data=lambda: encode("throughput", answer),
    )


def _headline(answer: Throughput) -> str:
    what = f"{answer.model} to {answer.setup.mode} on {answer.setup.count} x {answer.gpu}"
    if isinstance(answer.train, TrainRate):
        return f"{_range(answer.train.rate)} {answer.train.unit}s/s: {what}"
    if isinstance(answer.decode, tuple):
        last = answer.decode[-1]
        return f"{_range(last.rate)} tokens/s written: {what}, batch {last.batch}"
    if isinstance(answer.images, ImageRate):
        return f"{_range(answer.images.rate)} images/s: {what}, batch {answer.setup.batch}, {answer.images.steps} steps"
    why = next((one for one in (answer.train, answer.images) if isinstance(one, Unknown)), answer.decode)
    return f"Unknown: {what}: {why.why if isinstance(why, Unknown) else ''}"


def _range(rate: Rate) -> str:
    return f"{_rate(rate.per_s)} ({_rate(rate.low_per_s)} to {_rate(rate.high_per_s)})"


def _rate(per_s: float) -> str:
    """A rate is never written as 0: a slow one gets two digits."""
    return number(per_s) if per_s >= 10 else f"{per_s:.2g}"


def _step(train: TrainRate) -> Table:
    rows: list[Row] = [[name, cell(number(seconds, 3), seconds)] for name, seconds in train.step_parts_s.items()]
    mfu = "unknown" if isinstance(train.mfu_pct, Unknown) else percent(train.mfu_pct)
    note = (
        f"{number(train.per_step)} {train.unit}s per step on all GPUs. "
        f"MFU (model FLOPS utilization, of the dense peak): {mfu}."
    )
    total = (cell("step"), cell(number(train.step_s, 3), train.step_s))
    return make_table("step", "One optimizer step", ("Part", "Seconds"), "wn", rows, total=total, note=note)


def _images(made: ImageRate) -> Table:
    rows: list[Row] = [[f"{made.steps} denoising steps of {number(1000 * made.step_s)} ms",
                        cell(number(made.steps * made.step_s, 2), made.steps * made.step_s)]]  # fmt: skip
    if made.pixels_s:
        rows.append(["from latents to pixels", cell(number(made.pixels_s, 2), made.pixels_s)])
    total = (cell("batch"), cell(number(made.batch_s, 2), made.batch_s))
    return make_table("images", "One batch of images", ("Part", "Seconds"), "wn", rows, total=total)


def _decode(rates: tuple[DecodeRate, ...]) -> Table:
    heads = ("Batch per copy", "Tokens/s", "Low", "High", "ms per token", "Fits")
    rows: list[Row] = []
    for row in rates:
        speeds = (row.rate.per_s, row.rate.low_per_s, row.rate.high_per_s)
        fits = "yes" if row.fits else "no"
        rows.append([str(row.batch), *(cell(_rate(v), v) for v in speeds), cell(number(row.step_ms, 1)), fits])
    return make_table("decode", "Decode (writing tokens), all copies together", heads, "nnnnnn", rows)
