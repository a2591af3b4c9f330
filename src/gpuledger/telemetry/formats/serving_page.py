"""What does the page of metrics of a model server say: vLLM, Ray Serve, SGLang, TGI, Triton without GPUs, NIM?

vllm:request_success_total{engine="0",finished_reason="stop",model_name="M"} 3.0
sglang:prompt_tokens_total{model_name="M"} 5
tgi_request_success 109
nv_inference_request_success{model="M",version="1"} 3

A page that has readings of GPUs too is telemetry, and its requests are a note there. What each server calls its metrics
is a table in telemetry/requests.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Format, Head, Kind, Seen, sure
from gpuledger.telemetry.formats.metric_text import is_metric_text, sample, series_labels, server_of
from gpuledger.telemetry.requests import Requests, is_of_requests, requests_of
from gpuledger.telemetry.series.exporters import NAME, readings
from gpuledger.telemetry.unpacking import text_lines
from gpuledger.units import count, some, utc


def _score(head: Head) -> Seen:
    """Metrics of a model server, and none of a GPU."""
    if not is_metric_text(head) or not (server := server_of(head)):
        return NOT_SEEN
    return sure(f"metrics of {server}, none of a GPU")


class _Page:
    """A page being read: the last value of each series, and what is odd about it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last: dict[str, tuple[int, float]] = {}
        self.labels: dict[str, Mapping[str, str]] = {}
        self.wrong = self.again = 0

    def take(self, line: str) -> None:
        """One line: the latest value of its series, the later line where lines have no times."""
        found = sample(line)
        labels = self.labels.get(found.series) or series_labels(found.series) if found else None
        if found is None or labels is None:
            self.wrong += bool(line) and not line.startswith("#")
            return
        self.labels[found.series] = labels
        before = self.last.get(found.series)
        self.again += before is not None and is_of_requests(labels.get(NAME, ""))
        at_ms = found.at_ms or 0
        if before is None or at_ms >= before[0]:
            self.last[found.series] = at_ms, found.value

    def notes(self) -> list[str]:
        """What the reader of the figures should know of the page."""
        found = []
        if self.again:
            at_ms = max(at_ms for at_ms, _ in self.last.values())
            last = f"the last one of each series counts{f', of {utc(at_ms):%Y-%m-%d %H:%M} UTC' if at_ms else ''}"
            found.append(f"several pages in one file: {self.again:,} values came before others; {last}")
        if self.wrong:
            found.append(f"{count(self.wrong, 'line')} not read: no metric with a value")
        gpus = sorted({labels[NAME] for labels in self.labels.values() if labels.get(NAME) in readings()})
        if gpus:
            found.append(f"readings of GPUs further down are not read: {some(gpus)}; save them as a page of their own")
        return found


def _read(path: Path) -> Requests:
    page = _Page(path)
    for line in text_lines(path, ends=True):
        page.take(line.strip())
    found = requests_of(((labels, page.last[series][1]) for series, labels in page.labels.items()), page.notes())
    if not found:
        raise FileFault(path, "its metrics of requests have no value", hint="save the page again: curl .../metrics")
    first, *others = found
    also = tuple(f"{other.server} is on the page too; its requests are not added" for other in others)
    return replace(first, notes=(*also, *first.notes))


FORMATS.register("serving_page")(Format("page of a model server", Kind.REQUESTS, _score, _read))
