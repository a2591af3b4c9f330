"""Does every reader answer hostile files with rows or with an error that names a next step? A share of `make fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from child import Inputs, judge
from targets import FAMILIES, HERE, Seed, Target, targets_of

from gpuledger.errors import InputError

SEED = 7
COSTLY = {"statements": 1, "lakes": 12, "servers": 6}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_traceback_and_bounded_memory(family, tmp_path, monkeypatch):
    monkeypatch.setenv("GPULEDGER_CONFIG", "")
    for target in targets_of(family).values():
        inputs = Inputs(target, SEED)
        judge(target, inputs[0], tmp_path)  # imports and caches
        for number in range(1, COSTLY.get(family, 24)):
            what, _, _, words = judge(target, inputs[number * 3], tmp_path)
            assert what in ("accepted", "refused"), f"{target.name}, input {number * 3}: {what}\n{words}"


def _fails(error: BaseException):
    def run(_path: Path) -> None:
        raise error

    return Target("planted", run, lambda: [Seed("x", b"1")])


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (ValueError("x"), "traceback"),
        (MemoryError(), "memory"),
        (InputError("x"), "traceback"),  # without a next step
        (InputError("x", hint="y"), "refused"),
    ],
)
def test_what_escapes_is_judged(error, what, tmp_path):
    assert judge(_fails(error), Seed("x", b"1"), tmp_path)[0] == what


def test_memory_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("child.MOST_KIB", 10 << 10)
    target = Target("planted", lambda _path: len(bytearray(64 << 20)), lambda: [Seed("x", b"1")])
    assert judge(target, Seed("x", b"1"), tmp_path)[0] == "memory"


def test_the_same_seed_gives_the_same_inputs():
    target = targets_of("money")["own prices"]
    first, again, other = Inputs(target, 1), Inputs(target, 1), Inputs(target, 2)
    assert [first[n] for n in range(40)] == [again[n] for n in range(40)]
    assert [first[n] for n in range(40)] != [other[n] for n in range(40)]


def test_the_command_prints_a_row_per_target(tmp_path):
    asked = ["--inputs", "30", "--target", "claims", "--target", "carbon intensity", "--found", str(tmp_path)]
    done = subprocess.run([sys.executable, str(HERE / "run.py"), *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == ["| carbon intensity", "| claims", "| all"]
    assert int(rows[-1][1]) == sum(int(cell) for cell in rows[-1][2:7])
