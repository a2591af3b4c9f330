"""Where do the runs of a report come from? Files to runs: which one is judged, which is its baseline."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from gpuledger.bench.records import Run
from gpuledger.bench.results import read_results
from gpuledger.cost.pricing import PriceChoice
from gpuledger.errors import InputError
from gpuledger.scaling.analysis.baseline import Baseline, size_of, unit_of
from gpuledger.scaling.analysis.telemetry import telemetry_of
from gpuledger.scaling.build import PREDICT, Given
from gpuledger.scaling.claims.reading import read_claims
from gpuledger.units import Unknown


def read_runs(files: Sequence[Path]) -> list[Run]:
    """Every run of every file, in order."""
    return [run for file in files for run in read_results(file)]


def gather(
    files: Sequence[Path],
    *,
    baseline: Path | None = None,
    claims: Path | None = None,
    before: Path | None = None,
    price: PriceChoice | None = None,
    predict: Sequence[int] = PREDICT,
) -> Given:
    """Everything named on a command line, read. The largest run is judged, of equal ones the last."""
    if not files:
        raise InputError("no results were given", hint="name one or more files of gpuledger bench")
    runs = read_runs(files)
    unit = unit_of(runs)
    place = max(range(len(runs)), key=lambda i: (size_of(runs[i], unit), i))
    run, others = runs[place], [r for i, r in enumerate(runs) if i != place]
    used = {r.file for r in runs}
    base = _baseline(run, others, baseline)
    used |= {base.run.file} if base.run else set()
    return Given(
        run=run,
        others=tuple(others),
        baseline=base,
        before=None if before is None else _largest(before),
        telemetry=telemetry_of(run),
        claims=() if claims is None else read_claims(claims),
        price=price or PriceChoice(),
        predict=tuple(predict),
        digests={file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in sorted(used)},
    )


def _largest(file: Path) -> Run:
    runs = read_results(file)
    unit = unit_of(runs)
    return max(enumerate(runs), key=lambda pair: (size_of(pair[1], unit), pair[0]))[1]


def _smallest(runs: Sequence[Run]) -> Run:
    unit = unit_of(runs)
    return min(runs, key=lambda r: size_of(r, unit))


def _baseline(run: Run, others: Sequence[Run], given: Path | None) -> Baseline:
    """The file given, else the one the header names, else the smallest of the other runs."""
    if given is not None:
        return Baseline(_smallest(read_results(given)), "")
    if run.baseline is not None:
        for path in (Path(run.file).parent / run.baseline, Path(run.baseline)):
            if path.is_file():
                return Baseline(_smallest(read_results(path)), "")
        return Baseline(None, f"the header names {run.baseline} as baseline, and there is no such file")
    if others:
        unit = unit_of([run, *others])
        smaller = [r for r in others if size_of(r, unit) < size_of(run, unit)]
        if smaller:
            return Baseline(_smallest(smaller), "")
    return Baseline(None, _no_baseline(run, others))


def _no_baseline(run: Run, others: Sequence[Run]) -> str:
    if len(run.names) < 2 and not others:
        return "one node only: scaling needs a larger run, and this one as its baseline"
    if (typed := run.more.get("baseline_typed_in")) is not None:
        return f"no measured baseline: {typed!r} in the header is typed in, not a file of results"
    return "no measured baseline: neither --baseline nor the header names a file of results"


def has_telemetry(run: Run) -> bool:
    """Whether the header names samples beside the run."""
    return not isinstance(run.telemetry, Unknown)
