"""What is on each page, and which figures can a program fetch? Made here, as bytes, once per edition of the lake."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuledger.errors import GpuledgerError, LakeError, NothingFound
from gpuledger.live.figures import Seen
from gpuledger.live.metrics import LAST, metrics_text
from gpuledger.live.traffic import read_traffic
from gpuledger.plain_text import json_text
from gpuledger.report.document import Document
from gpuledger.report.documents import document_of
from gpuledger.report.documents.audit import has_teams
from gpuledger.report.documents.audit_rows import price_fact
from gpuledger.report.written import period
from gpuledger.web import gpu_table, pages
from gpuledger.web.contract import OWNERS, SORTS, Ask, Filters, NotReady, Status, View
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.shell import PAGES as TITLED
from gpuledger.web.shell import Asked, page

TITLES = dict(TITLED)
NAMES = 200  # of a filter's choices
Params = Mapping[str, Any]
Made = tuple[Document, dict[str, Any]]


def _data(live: LiveLake, given: Filters) -> Document:
    return pages.data_page(live.lake, live.audit(given), int(time.time() * 1000))


def _owners(live: LiveLake, given: Filters, params: Params) -> Made:
    by = params.get("by") or ("team" if has_teams(live.audit(given).cost) else "namespace")
    return pages.owners(live.audit(given, by=by)), {"by": by, "owners": OWNERS}


def _lines(live: LiveLake, given: Filters) -> list[gpu_table.GpuLine]:
    """All GPUs of a scope, made once."""

    def make() -> list[gpu_table.GpuLine]:
        around = gpu_table.Around(live.recent(given)[1], live.owners(given))
        return gpu_table.gpu_lines(live.audit(given), live.efficiency(given), around)

    return live.once("lines", given, make)


def _gpus(live: LiveLake, given: Filters, params: Params) -> Made:
    whole, q, sort = _lines(live, given), params.get("q", ""), gpu_table.order_of(params.get("sort", ""))
    found = gpu_table.chosen_lines(whole, q, sort)
    count = max(1, -(-len(found) // gpu_table.PER_PAGE))
    at = min(params.get("page", 1), count)
    shown = found[(at - 1) * gpu_table.PER_PAGE : at * gpu_table.PER_PAGE]
    cost = live.audit(given).cost
    facts = [period(cost.start_ms, cost.end_ms), *filter(None, [price_fact(cost)])]
    document = Document(name="gpus", kind="GPUs", title="GPUs", headline=gpu_table.headline(found), facts=facts)
    more = {"lines": shown, "caption": gpu_table.caption(found, whole), "q": q, "sort": sort, "sorts": SORTS}
    return document, more | {"at_page": at, "pages_in_all": count}


PAGES: dict[str, Callable[[LiveLake, Filters, Params], Made]] = {
    "/": lambda live, given, _: (pages.overview(live.audit(given)), {}),
    "/timeline": lambda live, given, _: (pages.timeline(live.efficiency(given)), {}),
    "/gpus": _gpus,
    "/gpus/one": lambda live, given, params: (pages.one_gpu(live.gpu(given, params["device"])), {}),
    "/owners": _owners,
    "/savings": lambda live, given, _: (pages.savings(live.audit(given)), {}),
    "/energy": lambda live, given, _: (pages.energy(live.energy(given), live.audit(given)), {}),
    "/plans": lambda live, given, _: (pages.plans(live.moves(given)), {}),
    "/data": lambda live, given, _: (_data(live, given), {}),
}


def _gpu_rows(live: LiveLake, given: Filters, params: Params) -> dict[str, Any]:
    found = gpu_table.chosen_lines(_lines(live, given), params.get("q", ""), gpu_table.order_of(params.get("sort", "")))
    return {"v": 1, "statement": "gpus", "gpus": [vars(line) for line in found]}


FIGURES: dict[str, Callable[[LiveLake, Filters, Params], Mapping[str, Any]]] = {
    "audit": lambda live, given, params: document_of(live.audit(given, by=params.get("by") or None)).data(),
    "efficiency": lambda live, given, _: document_of(live.efficiency(given)).data(),
    "gpus": _gpu_rows,
    "gpu": lambda live, given, params: document_of(live.gpu(given, params["device"])).data(),
    "energy": lambda live, given, _: document_of(live.energy(given)).data(),
    "move": lambda live, given, _: document_of(live.moves(given)).data(),
    "data": lambda live, given, _: _data(live, given).data(),
}


class Views:
    """Makes views of a lake in this process."""

    def __init__(self, live: LiveLake) -> None:
        self.live = live

    @property
    def status(self) -> Status:
        """How the lake stood when it was last looked at."""
        return self.live.status

    def refresh(self) -> bool:
        """Look whether the lake changed; whether there is news."""
        return self.live.refresh()

    def close(self) -> None:
        """Nothing is left behind."""

    def view(self, ask: Ask) -> View:
        """What is asked for. A lake that changes underfoot leads to a LakeError."""
        status = self.status
        if status.state != "ready":
            raise NotReady
        try:
            body = self._text(ask, status)
        except GpuledgerError:
            raise
        except Exception as error:
            words = f"the lake cannot be read: {type(error).__name__}: {error}"
            raise LakeError(
                words, hint="look again in a moment; if it stays: gpuledger analyze --lake FOLDER"
            ) from error
        return View(status.edition, body.encode())

    def _text(self, ask: Ask, status: Status) -> str:
        if ask.kind == "page":
            return _page(self.live, ask, status)
        return _figures(self.live, ask) if ask.kind == "json" else _metrics(self.live, ask.filters, status)


def _metrics(live: LiveLake, chosen: Filters, status: Status) -> str:
    """Figures of the last hour, or of the window asked for."""
    given = windowed(live, chosen) if chosen.since or chosen.until or chosen.last else replace(chosen, last=LAST)
    newest = status.newest_ms or 0
    try:
        seen = Seen(live.audit(given), live.efficiency(given), read_traffic(live.lake, live.scope(given)))
    except NothingFound:
        return metrics_text(None, newest)
    return metrics_text(seen, newest)


def _page(live: LiveLake, ask: Ask, status: Status) -> str:
    params = dict(ask.params)
    try:
        document, more = PAGES[ask.name](live, windowed(live, ask.filters), params)
    except NothingFound as error:
        document, more = pages.nothing(TITLES[ask.name.removesuffix("/one")], error), _controls(ask.name, params)
    names = live.once("names", live.default, lambda: _names(live))
    path = ask.name.removesuffix("/one")
    return page(document, Asked(path, ask.filters), status, names, default_last=live.default.last or "all", **more)


def _figures(live: LiveLake, ask: Ask) -> str:
    try:
        return json_text(dict(FIGURES[ask.name](live, windowed(live, ask.filters), dict(ask.params))))
    except NothingFound as error:
        found = {"v": 1, "statement": ask.name, "empty": True, "error": error.message, "hint": error.hint}
        return json_text(found | ({"gpus": []} if ask.name == "gpus" else {}))


def _controls(name: str, params: Params) -> dict[str, Any]:
    """What a page's own controls show where it has no figures."""
    if name == "/owners":
        return {"by": params.get("by", "team"), "owners": OWNERS}
    sort = params.get("sort") or "waste"
    return {"q": params.get("q", ""), "sort": sort, "sorts": SORTS} if name == "/gpus" else {}


def windowed(live: LiveLake, given: Filters) -> Filters:
    """The filters, with the server's own window where the address names none; `all` is all there is."""
    if given.last == "all":
        return replace(given, last="")
    if given.since or given.until or given.last:
        return given
    return replace(given, since=live.default.since, until=live.default.until, last=live.default.last)


def _names(live: LiveLake) -> dict[str, list[str]]:
    """What the filters may choose from."""
    cost = live.audit(live.default).cost
    clusters = sorted({gpu.cluster for gpu in cost.by_gpu if gpu.cluster})
    spaces = sorted(row.name for row in cost.by_namespace)
    return {"cluster": clusters[:NAMES], "namespace": spaces[:NAMES]}
