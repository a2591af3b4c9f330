"""How do the logs of an MLPerf LoadGen run become results?

    mlperf_log_detail.txt    lines ":::MLLOG {json}": scenario, mode, sample counts, validity, errors
    mlperf_log_trace.json    one event "Sample" (ph b, then e) for each sample, in microseconds, with tracing on;
                             "Token" to its first token where token latencies are measured (not in the Server scenario)
    mlperf_log_accuracy.json {"seq_id", "qsl_idx", "data", "token_data", "token_count"} for each sample whose answer was
                             kept; the last two where tokens are counted (LogAccuracy in LoadGen's logging.cc)
    mlperf_log_summary.txt   figures in words; read where the detail is missing

Only the trace has the time of each sample: without it there is nothing to analyze, and quantiles printed by LoadGen are
kept in the header as reported, not as samples. The trace is not always valid JSON, so it is read line by line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuledger.bench.records import Request
from gpuledger.bench.results import ResultWriter
from gpuledger.bounds import read_whole
from gpuledger.errors import FileFault, InputError, map_os_error
from gpuledger.units import Unknown

DETAIL, TRACE, SUMMARY = "mlperf_log_detail.txt", "mlperf_log_trace.json", "mlperf_log_summary.txt"
ACCURACY = "mlperf_log_accuracy.json"
MARK = ":::MLLOG"
US_PER_S = 1_000_000
_EVENT = re.compile(
    r'"name"\s*:\s*"(Sample|Token)".*?"ph"\s*:\s*"([be])".*?"id"\s*:\s*(\d{1,18})\b'
    r'.*?"ts"\s*:\s*(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)'
)
_KEPT_ANSWER = re.compile(r'"seq_id"\s*:\s*(\d{1,18})\b.*?"token_count"\s*:\s*(\d{1,18})\b')
_PAIR = re.compile(r"^\s*([A-Za-z0-9 /.()%_]+?)\s*:\s*(.+?)\s*$")
KEPT = ("loadgen_version", "test_datetime", "sut_name", "qsl_name", "effective_scenario", "effective_test_mode")
OPEN = {"Server": "poisson"}
MOST_NUMBER = 1e15
NO_TTFT = Unknown("the trace has no event of the first token")
NO_TOKENS = Unknown("the accuracy log has no token count for it")
HINT = "set log_settings.enable_trace = True in the run's settings and run LoadGen again"


@dataclass(frozen=True)
class LoadgenLog:
    """One LoadGen run: the header of our results, and its requests."""

    header: Mapping[str, Any]
    requests: tuple[Request, ...]
    wall_s: float
    notes: tuple[str, ...] = field(default=())


def read_loadgen(folder: Path | str, *, node: str = "", gpu: str | None = None, gpus: int | None = None) -> LoadgenLog:
    """The logs of one run, from their folder. `node`, `gpu`, `gpus`: what LoadGen does not know about the machine."""
    where = Path(folder)
    if not where.is_dir():
        raise FileFault(where, "is not a folder", hint=f"name the folder that holds {DETAIL} and {TRACE}")
    detail, errors = _detail(where / DETAIL)
    summary = _summary(where / SUMMARY)
    if not detail and not summary:
        raise FileFault(
            where, f"has neither {DETAIL} nor {SUMMARY}", hint="name the folder LoadGen wrote its logs into"
        )
    spans, firsts, open_samples = _spans(where / TRACE)
    if not spans:
        raise InputError(f"{where / TRACE}: no sample has its time, which only the trace can give", hint=HINT)
    name = node or str(detail.get("sut_name") or summary.get("SUT name") or "sut")
    first = min(start for start, _ in spans.values())
    tokens = _tokens(where / ACCURACY)
    requests = [
        Request(
            name, i, ok=True, start_s=(start - first) / US_PER_S, latency_s=(end - start) / US_PER_S,
            ttft_s=firsts[i] / US_PER_S if firsts.get(i, math.inf) <= end - start else NO_TTFT,
            output_tokens=tokens.get(i, NO_TOKENS),
        )
        for i, (start, end) in sorted(spans.items())
    ]  # fmt: skip
    lost = [i for i in open_samples if i not in spans]
    requests += [Request(name, i, ok=False, error="issued, never completed", lost=True) for i in sorted(lost)]
    planned = max(len(requests), _issued(detail))
    wall = (max(end for _, end in spans.values()) - first) / US_PER_S
    notes = _notes(detail, summary, errors)
    return LoadgenLog(_header(detail, summary, name, planned, gpu, gpus, notes), tuple(requests), wall, notes)


def _issued(detail: Mapping[str, Any]) -> int:
    """How many samples LoadGen issued: a query of the MultiStream scenario holds several."""
    queries = _number(detail.get("result_query_count")) or 0
    together = _number(detail.get("effective_samples_per_query")) or 1
    return int(queries * (together if detail.get("effective_scenario") == "MultiStream" else 1))


def _text(path: Path) -> str:
    try:
        return read_whole(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise map_os_error(error, path, "read LoadGen's log") from error


def _detail(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Keys and values of the detail log, and its errors."""
    found: dict[str, Any] = {}
    errors = []
    for line in _text(path).splitlines():
        if not line.startswith(MARK):
            continue
        try:
            entry = json.loads(line[len(MARK) :])
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or "key" not in entry:
            continue
        found[str(entry["key"])] = entry.get("value")
        if isinstance(entry.get("metadata"), dict) and entry["metadata"].get("is_error"):
            errors.append(f"{entry['key']}: {entry.get('value')}")
    return found, errors


def _summary(path: Path) -> dict[str, str]:
    pairs = (_PAIR.match(line) for line in _text(path).splitlines())
    return {m[1].strip(): m[2] for m in pairs if m}


def _spans(path: Path) -> tuple[dict[int, tuple[float, float]], dict[int, float], set[int]]:
    """Begin and end of every sample in microseconds, how long its first token took, and every sample that began."""
    begun: dict[tuple[str, int], float] = {}
    spans: dict[int, tuple[float, float]] = {}
    firsts: dict[int, float] = {}
    for line in _text(path).splitlines():
        if (found := _EVENT.search(line)) is None:
            continue
        name, number, at = found[1], int(found[3]), float(found[4])
        if not math.isfinite(at):
            continue
        if found[2] == "b":
            begun[name, number] = at
        elif (start := begun.get((name, number))) is not None and at >= start:
            if name == "Sample":
                spans[number] = (start, at)
            else:
                firsts.setdefault(number, at - start)
    return spans, firsts, {number for name, number in begun if name == "Sample"}


def _tokens(path: Path) -> dict[int, int]:
    """How many tokens each kept answer has; answers may hold megabytes, so only the counts are read."""
    found = (_KEPT_ANSWER.search(line) for line in _text(path).splitlines())
    return {int(m[1]): int(m[2]) for m in found if m}


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_NUMBER
    return float(value) if good else None


def _notes(detail: Mapping[str, Any], summary: Mapping[str, str], errors: list[str]) -> tuple[str, ...]:
    said = [f"LoadGen: {e}" for e in errors[:10]]
    valid = str(detail.get("result_validity") or summary.get("Result is") or "")
    if valid and valid != "VALID":
        said.append(f"LoadGen calls the result {valid}")
    return tuple(said)


def _header(
    detail: Mapping[str, Any], summary: Mapping[str, str], node: str, planned: int, gpu: str | None, gpus: int | None,
    notes: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    scenario = str(detail.get("effective_scenario") or summary.get("Scenario") or "")
    reported = {k: v for k, v in detail.items() if k.startswith("result_")} or {
        k: v for k, v in summary.items() if "latency" in k or "per second" in k
    }
    unknown = "LoadGen does not record it; name the GPU"
    own: dict[str, Any] = {"gpu": gpu, "gpus": gpus if gpus is not None else (1 if gpu else None)}
    if gpu is None:
        own["unknown"] = {"gpu": unknown, "gpus": unknown}
    return {
        "planned": {node: planned},
        "nodes": {node: own},
        "baseline": None,
        "source": "MLPerf LoadGen",
        "load": {"kind": OPEN.get(scenario, "closed"), "scenario": scenario},
        "started": detail.get("test_datetime"),
        "loadgen": {k: detail[k] for k in KEPT if detail.get(k) not in (None, "")},
        "reported": reported,
        "problems": {node: list(notes)} if notes else {},
    }


def write_loadgen(log: LoadgenLog, out: Path | str) -> Path:
    """The log as a file of results."""
    with ResultWriter(out, log.header) as writer:
        for request in log.requests:
            writer.write(request)
        writer.finish(log.wall_s)
    return writer.path
