"""What did a model server do? Its requests and tokens since it started, what it does now, and of each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gpuledger.encode import encode
from gpuledger.report.document import Block, Bullets, Code, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Table, cell, figure, make_table
from gpuledger.report.written import amount, capital, instant, loose, percent, whole
from gpuledger.telemetry.requests import NO_GPUS, RECORD, EngineRequests, Requests
from gpuledger.units import Unknown, some

NAME = "requests"
HEADS = (
    "Model", "Engine", "Finished", "Prompt tokens", "Generated tokens", "Running", "Waiting", "Cache", "First token",
    "Per token",
)  # fmt: skip
LONG = 20
NOT_ADDED = "A page of requests is answered by itself: nothing of it is added to a lake."
ASSUMPTIONS = (
    "Requests and tokens are counted since the server started: a rate needs two pages and the time between them.",
    "A finished request is one that the server counted as finished, whatever the reason.",
    "Running, waiting and cache are of the instant of the page; the cache of all engines is that of the fullest one.",
    "First token and per token are means since the start, in seconds; TGI gives that of requests, not of tokens.",
)


@document_for(Requests)
def requests_document(found: Requests) -> Document:
    """The document of a page of requests."""
    return Document(
        name=NAME,
        kind="Requests",
        title=f"Requests of {found.server}",
        headline=headline(found),
        facts=list(_facts(found)),
        notes=[*(Prose(f"{capital(note)}.", "warning") for note in found.notes), Prose(NOT_ADDED, "dim")],
        figures=list(_figures(found)),
        summary=[table := _table(found), *_next()],
        sections=[Section("assumptions", "Assumptions", [Bullets(ASSUMPTIONS)])],
        screen=[table, *_next()],
        data=lambda: encode("requests", found),
        main_table="by_engine",
    )


def headline(found: Requests) -> str:
    """How many requests the server finished, and how many tokens."""
    shown = (
        (found.requests_finished, "finished request"),
        (found.prompt_tokens, "prompt token"),
        (found.generated_tokens, "generated token"),
    )
    parts = [f"{what}s unknown" if isinstance(n, Unknown) else amount(whole(n), what) for n, what in shown]
    return f"{found.server} ({some(found.models) or 'no model name'}) since it started: {', '.join(parts)}."


def _facts(found: Requests) -> Iterator[str]:
    if found.engines > 1:
        yield f"{whole(found.engines)} {'models' if found.engines == len(found.models) else 'engines'}"
    if not isinstance(found.since_ms, Unknown):
        yield f"started {instant(found.since_ms)} UTC"
    if not isinstance(found.first_token_s, Unknown):
        yield f"first token after {_seconds(found.first_token_s)}"
    if not isinstance(found.per_token_s, Unknown):
        yield f"{_seconds(found.per_token_s)} per token"
    if reasons := [f"{reason} {whole(number)}" for reason, number in found.finished_by_reason.items() if number]:
        yield f"finished by reason: {', '.join(reasons)}"
    yield "counts since the start: no rate from one page"


def _next() -> list[Block]:
    """What is not on the page, and how to get it."""
    words = f"{capital(NO_GPUS)}. Record those of the server, then gpuledger audit gpus.csv:"
    return [Prose(words), Code(RECORD, "sh")]


def _seconds(value: float) -> str:
    return f"{loose(value)} s"


_SHOWN: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("Finished", "requests_finished", whole),
    ("Prompt tokens", "prompt_tokens", whole),
    ("Generated tokens", "generated_tokens", whole),
    ("Running", "running", whole),
    ("Waiting", "waiting", whole),
    ("Cache in use", "cache_used_pct", percent),
    ("First token", "first_token_s", _seconds),
    ("Per token", "per_token_s", _seconds),
)


def _figures(found: Requests) -> Iterator[KeyFigure]:
    for label, name, form in _SHOWN:
        value = getattr(found, name)
        if isinstance(value, Unknown):
            yield KeyFigure(label, "unknown", "", value.why, unknown=True)
        else:
            yield KeyFigure(label, form(value))


def _table(found: Requests) -> Table:
    """A line for each engine, and one for all; no column that is unknown, or that says the same, for all of them."""
    rows = [[_model(e), _engine(e), *_cells(e)] for e in found.by_engine]
    total = [Cell("All", None), Cell("", None), *_cells(found)]
    kept = [n for n in range(len(HEADS)) if n == 0 or any(not row[n].unknown for row in rows)]
    kept = [n for n in kept if n != 1 or len({row[n].full for row in rows}) > 1]
    return make_table(
        "engines", f"Requests of {found.server} since it started", [HEADS[n] for n in kept],
        "".join("wwnnnnnnNN"[n] for n in kept), [[row[n] for n in kept] for row in rows],
        total=tuple(total[n] for n in kept) if len(rows) > 1 else None,
    )  # fmt: skip


def _model(engine: EngineRequests) -> Cell:
    return cell("no model name" if isinstance(engine.model, Unknown) else engine.model, engine.model)


def _engine(engine: EngineRequests) -> Cell:
    """Its number alone, and only the beginning of a long name."""
    name = engine.engine or ""
    short = " ".join(word if len(word) <= LONG else f"{word[:8]}..." for word in name.split(" "))
    return Cell(short.removeprefix("engine "), name, full=name)


def _cells(holder: EngineRequests | Requests) -> list[Cell]:
    return [figure(getattr(holder, name), form) for _, name, form in _SHOWN]
