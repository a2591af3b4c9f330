"""Is every kind of file answered by each command, with the right figures, or refused with a way out that works?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuledger.cli.app import run
from gpuledger.telemetry.formats import recognize

HERE = Path(__file__).parent
CASES = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in sorted(HERE.glob("*.expect"))}
ANSWERED = [name for name, case in CASES.items() if "refused" not in case]
REFUSED = [name for name, case in CASES.items() if "refused" in case]
COMMANDS = {"analyze": ("analyze",), "audit": ("audit",), "import": ("import", "--lake", "lake"), "bare": ()}
# Where a figure stands in the answers: the command asked first, and its keys.
FIGURES = {
    "gpus": ("gpus",),
    "gpu_util_pct": ("gpu_util_pct", "util_pct"),
    "power_w": ("power_w", "mean_power_w"),
    "energy_kwh": ("energy_kwh", "gpu_energy_kwh"),
    "gpu_hours": ("gpu_hours", "run_hours", "observed_h"),
    "duration_s": ("wall_h",),
}
LEAST = {"gpus": 0.0, "gpu_util_pct": 0.6, "power_w": 0.05, "energy_kwh": 1e-6, "gpu_hours": 5e-4, "duration_s": 2.1}


def data_file(name: str) -> Path:
    """The file next to an `.expect`."""
    (found,) = (f for f in HERE.glob(f"{name}.*") if f.stem == name and f.suffix != ".expect")
    return found


@pytest.fixture
def answers(tmp_path, monkeypatch, capsys):
    """What the four commands answer for a file: exit code, JSON, and all that was written."""
    monkeypatch.chdir(tmp_path)

    def ask(file: Path) -> dict[str, tuple[int, dict, str]]:
        made = {}
        for command, words in COMMANDS.items():
            code = run([*words[:1], str(file), *words[1:], "--json"])
            out, err = capsys.readouterr()
            made[command] = code, json.loads(out if code == 0 else err), (out + err).replace(str(file), "FILE")
        return made

    return ask


def numbers(tree: object, key: str) -> Iterator[float]:
    """Every number under a key, outermost first."""
    level = [tree]
    while level:
        found = [node[key] for node in level if isinstance(node, dict) and key in node]
        yield from (float(n) for n in found if isinstance(n, int | float) and not isinstance(n, bool))
        below = [list(node.values()) if isinstance(node, dict) else node for node in level]
        level = [one for nodes in below if isinstance(nodes, list) for one in nodes]


def figure(made: dict, name: str) -> float | None:
    """A figure of the answers; None where no command gives it."""
    commands = ("audit",) if name == "duration_s" else ("analyze", "bare")
    found = (n for command in commands for key in FIGURES[name] for n in numbers(made[command][1], key))
    number = next(found, None)
    return number * 3600 if number is not None and name == "duration_s" else number


def test_every_file_has_its_expectations():
    names = {f.stem for f in HERE.iterdir() if f.is_file() and f.suffix not in (".py", ".md")}
    assert names == set(CASES)


@pytest.mark.parametrize("name", ANSWERED)
def test_answered(name, answers):
    case, file = CASES[name], data_file(name)
    if "format" in case:
        assert recognize(file).key == case["format"]
    made = answers(file)
    assert {command: code for command, (code, _, _) in made.items()} == dict.fromkeys(COMMANDS, 0), made
    for key in FIGURES.keys() & case.keys():
        assert figure(made, key) == pytest.approx(case[key], rel=0.03, abs=LEAST[key]), key
    for key in case.get("unknown", []):
        assert figure(made, key) is None, key
    for pattern in case.get("says", []):
        assert {c for c, (_, _, text) in made.items() if not re.search(pattern, text, re.IGNORECASE)} == set(), pattern


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, answers):
    case, file = CASES[name], data_file(name)
    if "format" in case:
        assert recognize(file).key == case["format"]
    for command, (code, made, _) in answers(file).items():
        assert code == 2, command
        assert re.search(case["refused"], made["error"], re.IGNORECASE), made["error"]
        if "way_out" in case:
            assert case["way_out"].replace("FILE", str(file)) in made["next"]


@pytest.mark.parametrize("name", [name for name in REFUSED if "way_out" in CASES[name]])
def test_the_way_out_works(name, answers, tmp_path):
    case, file = CASES[name], data_file(name)
    tools = tmp_path / "tools"
    tools.mkdir()
    if "way_out_file" in case:
        stand_in(tools, case["way_out"], HERE / case["way_out_file"])
    path = os.pathsep.join((str(tools), str(Path(sys.executable).parent), os.environ["PATH"]))
    words = case["way_out"].replace("FILE", str(file))
    subprocess.run(["bash", "-ec", words], cwd=tmp_path, check=True, timeout=60, env={**os.environ, "PATH": path})
    (written,) = (f for f in tmp_path.iterdir() if f.is_file())
    made = answers(written)
    assert {command: code for command, (code, _, _) in made.items()} == dict.fromkeys(COMMANDS, 0), made


def stand_in(folder: Path, command: str, file: Path) -> None:
    """A tool that is not on this machine: it prints the file, whose columns are those that the command names."""
    if fields := re.search(r"--query-gpu=(\S+)", command):
        header = file.read_text("utf-8").splitlines()[0]
        assert [re.sub(r" \[.*", "", cell.strip()) for cell in header.split(",")] == fields[1].split(",")
    tool = folder / next(word for word in command.split() if "=" not in word)
    tool.write_text(f"#!/bin/sh\ncat '{file}'\n", "utf-8")
    tool.chmod(0o755)
