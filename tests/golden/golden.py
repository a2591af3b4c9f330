"""Do the commands answer today what they answered before?

    python tests/golden/golden.py                 run every case and compare; exit 1 where a figure moved
    python tests/golden/golden.py --figures       the same to 12 digits, for other versions of the libraries
    python tests/golden/golden.py --accept        take over what changes.csv lists, and what is new
    python tests/golden/golden.py slurm bills     only these scenarios

A scenario of cases.toml is a row of commands in an empty folder, on copies of inputs/, at a fixed time and with the
catalog in catalog/. What a case prints, and the CSV, JSON and metrics it writes, lie in expected/ byte for byte.
Differences are printed in the form of changes.csv; README.md says how a figure is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime as dt
import hashlib
import io
import json
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPECTED, INPUTS, CHANGES, SUMS = HERE / "expected", HERE / "inputs", HERE / "changes.csv", HERE / "sums.csv"
NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
WRITTEN = (".csv", ".json", ".jsonl", ".prom", ".toml", ".yaml", ".yml")
RANDOM_ID = re.compile(rb"\b[0-9a-f]{32}\b")  # of an alert, made from the place of its lake
DIGITS = 1e-12
# What it wrote, what it could not write, and what reading the files found, which `ingest` gives in Python.
OF_THE_COMMAND = ("files", "failed", "reading")
FAILED = ".failed"  # never accepted
PRINTED = 12  # differences shown per case
Difference = tuple[str, str, str, str]  # case, key, old, new
Outputs = dict[str, bytes]  # SCENARIO/CASE.json and so on to what is in it


def scenarios() -> dict[str, dict[str, Any]]:
    return tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))


# Running


def fix_world() -> None:
    """For this process: the catalog of the goldens, no settings of a user, one width and zone of the terminal."""
    from gpuledger import settings

    shipped = settings.data_dir

    def data_dir(package: str, *parts: str) -> Path:
        if package == "gpuledger.catalog" and parts[:1] == ("data",):
            return HERE.joinpath("catalog", *parts[1:])
        return shipped(package, *parts)

    settings.data_dir = data_dir
    os.environ.update(GPULEDGER_CONFIG="", COLUMNS="100", TZ="UTC", NO_COLOR="1")


def run_scenario(name: str, scenario: Mapping[str, Any], folder: Path) -> Outputs:
    """What every case of a scenario prints and writes."""
    made: Outputs = {}
    for case, line in scenario.get("run", {}).items():
        made |= {f"{name}/{file}": text for file, text in _command(case, line, folder).items()}
    for case, expression in scenario.get("python", {}).items():
        try:
            asked, known = _python(expression, folder), made.get(f"{name}/{case}.json")
        except Exception as error:  # noqa: BLE001 - whatever it is, the case failed
            made[f"{name}/{case}{FAILED}"] = f"{expression}: {type(error).__name__}: {error}\n".encode()
            continue
        if known is None:
            made[f"{name}/{case}.json"] = asked
        elif not _holds(known, asked):
            made[f"{name}/{case}{FAILED}"] = f"{expression} answers otherwise than the command:\n".encode() + asked
    return made


def _holds(known: bytes, asked: bytes) -> bool:
    """Does the call in Python answer all that the command prints, and nothing else?"""
    with contextlib.suppress(ValueError):
        printed, answered = json.loads(known), json.loads(asked)
        if isinstance(printed, dict):
            printed = {name: value for name, value in printed.items() if name not in OF_THE_COMMAND}
        return bool(printed == answered)
    return False


def _command(case: str, line: str, folder: Path) -> Outputs:
    """Run one command line; `2: ` in front of it says which exit code is right."""
    from gpuledger.cli.app import run

    code, found, rest = line.partition(": ")
    want, words = (int(code), rest) if found and code.isdigit() else (0, line)
    args = shlex.split(words)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before = _files(folder)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended = run(args)
    printed, said = (_bytes_of(stream) for stream in (out, err))
    if ended != want:
        return {f"{case}{FAILED}": f"exit code {ended}, not {want}: gpuledger {words}\n".encode() + said + printed}
    made = {f"{case}.json": RANDOM_ID.sub(b"ID", printed)} if "--json" in args else {}
    if ended:
        made[f"{case}.err"] = said
    if "--out" in args:
        written = (path for path, when in _files(folder).items() if before.get(path) != when)
        made |= {f"{case}/{p.name}": p.read_bytes() for p in written if not (printed and p.suffix == ".json")}
    return made


def _bytes_of(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    return stream.buffer.getvalue()  # type: ignore[attr-defined]


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files that are compared, outside inputs and lakes, with what tells a new version of one."""
    inside = {"in", "ledger", "samples", "jobs", "rejects"}
    found = (path for path in folder.rglob("*") if path.suffix in WRITTEN)
    kept = (path for path in found if not inside & set(path.relative_to(folder).parts))
    return {path: (path.stat().st_ino, path.stat().st_size) for path in kept}


def _python(expression: str, folder: Path) -> bytes:
    """The JSON of what a call in Python answers."""
    import gpuledger
    from gpuledger.encode import plain

    names = {"gpuledger": gpuledger, "Path": Path, "open": lambda lake="lake": gpuledger.open(folder / lake)}
    answer = eval(expression, names)
    found = answer.to_dict() if hasattr(answer, "to_dict") else plain(answer)
    return (json.dumps(found, indent=1, ensure_ascii=False, default=str) + "\n").encode()


# Comparing


def differences(case: str, old: bytes, new: bytes, *, figures: bool = False) -> Iterator[Difference]:
    """Where two outputs differ: by key of JSON, by row and column of CSV, else by line."""
    if old == new:
        return
    before, after = (dict(_cells(case, text)) for text in (old, new))
    found = False
    for key in [*before, *(k for k in after if k not in before)]:
        was, now = before.get(key, ""), after.get(key, "")
        if was != now and not (figures and _same_figure(was, now)):
            found = True
            yield case, key, was, now
    if not found and not figures:
        yield case, "(layout)", "bytes", "other bytes, equal values"


def _cells(case: str, text: bytes) -> Iterator[tuple[str, str]]:
    shown = text.decode("utf-8", "replace")
    if case.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(shown)))
        heads = rows[0] if rows else []
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                yield f"{number}/{heads[column] if number and column < len(heads) else column}", cell
        return
    if case.endswith(".json"):
        with contextlib.suppress(ValueError):
            yield from _leaves(json.loads(shown, parse_float=str, parse_int=str))
            return
    for number, line in enumerate(shown.splitlines()):
        name, _, value = line.rpartition(" ")
        yield (name, value) if case.endswith(".prom") and not line.startswith("#") else (f"line {number + 1}", line)


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}/{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{key}/{number}")
    else:
        yield key, value if isinstance(value, str) else json.dumps(value)


def _same_figure(old: str, new: str) -> bool:
    try:
        return math.isclose(float(old), float(new), rel_tol=DIGITS, abs_tol=DIGITS)
    except ValueError:
        return False


def compare(made: Outputs, names: Sequence[str], *, figures: bool = False) -> list[Difference]:
    """All differences between what was made and what is expected of these scenarios."""
    expected = expected_of(names)
    found: list[Difference] = []
    for case in sorted({*expected, *made}):
        if case not in made:
            found.append((case, "(file)", "there", "gone"))
        elif case not in expected:
            found.append((case, "(file)", "none", "new"))
            sys.stderr.write(made[case].decode("utf-8", "replace")[:400] if case.endswith(FAILED) else "")
        else:
            found.extend(differences(case, expected[case], made[case], figures=figures))
    return found


def expected_of(names: Sequence[str]) -> Outputs:
    files = (path for name in names for path in (EXPECTED / name).rglob("*") if path.is_file())
    return {path.relative_to(EXPECTED).as_posix(): path.read_bytes() for path in files}


# The reviewed list


@dataclass(frozen=True)
class Change:
    """A row of changes.csv: a figure that may move, or a pattern with one of the figures that move for that reason."""

    case: str
    key: str
    old: str
    new: str
    why: str

    def matches(self, found: Difference) -> bool:
        return fnmatchcase(found[0], self.case) and fnmatchcase(found[1], self.key)


def listed() -> list[Change]:
    with CHANGES.open(newline="", encoding="utf-8") as file:
        return [Change(**row) for row in csv.DictReader(file)]


def not_listed(found: Sequence[Difference], changes: Sequence[Change]) -> list[Difference]:
    """The differences that no row of the list explains. A row holds only where one of them is exactly its own."""
    holds = [c for c in changes if c.why.strip() and any(c.matches(f) and f[2:] == (c.old, c.new) for f in found)]
    return [f for f in found if not any(c.matches(f) for c in holds)]


def accept(made: Outputs, names: Sequence[str]) -> list[Difference]:
    """Take over what is listed, and cases that are new; returns what is not listed, and then changes nothing."""
    moved = [f for f in compare(made, names) if f[1:] != ("(file)", "none", "new") or f[0].endswith(FAILED)]
    failed = [f for f in moved if f[0].endswith(FAILED)]
    left = [*by_hand(), *failed, *not_listed([f for f in moved if f not in failed], listed())]
    if left:
        return left
    for case in expected_of(names).keys() - made.keys():
        (EXPECTED / case).unlink()
    for case, text in made.items():
        (EXPECTED / case).parent.mkdir(parents=True, exist_ok=True)
        (EXPECTED / case).write_bytes(text)
    SUMS.write_text(sums(), encoding="utf-8")
    return []


def sums() -> str:
    """The SHA-256 of every expected file: one changed by hand no longer fits."""
    files = sorted(path for path in EXPECTED.rglob("*") if path.is_file())
    rows = (f"{p.relative_to(EXPECTED).as_posix()},{hashlib.sha256(p.read_bytes()).hexdigest()}\n" for p in files)
    return "".join(("case,sha256\n", *rows))


def by_hand() -> list[Difference]:
    """Expected files that were changed, deleted or added without this program."""
    noted, found = (
        dict(line.split(",") for line in t.splitlines()) for t in (SUMS.read_text(encoding="utf-8"), sums())
    )
    cases = sorted(c for c in {*noted, *found} if noted.get(c) != found.get(c))
    return [(case, "(file)", "as in sums.csv", "changed by hand: git checkout tests/golden/expected") for case in cases]


def show(found: Sequence[Difference]) -> str:
    """Differences as rows of changes.csv, without the reason; of each case the first ones."""
    text, shown = io.StringIO(), dict.fromkeys((f[0] for f in found), 0)
    out = csv.writer(text, lineterminator="\n")
    for row in found:
        shown[row[0]] += 1
        if shown[row[0]] <= PRINTED:
            out.writerow((*row, ""))
    more = [f"# {case}: {count - PRINTED} more\n" for case, count in shown.items() if count > PRINTED]
    return "".join((text.getvalue(), *more))


def make(names: Sequence[str]) -> Outputs:
    """Run these scenarios, each in an empty folder with copies of the inputs, while the clock stands still."""
    import time_machine

    made: Outputs = {}
    for name in names:
        with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
            shutil.copytree(INPUTS, "in")
            with time_machine.travel(NOW, tick=False):
                made |= run_scenario(name, scenarios()[name], Path(temporary).resolve())
    return made


def main() -> int:
    """The command of the first lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("scenario", nargs="*")
    asked = parser.parse_args()
    names = asked.scenario or list(scenarios())
    fix_world()
    made = make(names)
    found = accept(made, names) if asked.accept else compare(made, names, figures=asked.figures)
    sys.stdout.write(show(found))
    what = "not listed in changes.csv" if asked.accept else "moved"
    sys.stderr.write(f"{len(made)} outputs, {len(found)} figures {what}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
