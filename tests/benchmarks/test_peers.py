"""Does the comparison with other tools name what is missing, refuse wrong figures, and keep what was not run again?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEERS = BENCHMARKS / "peers"


@pytest.fixture
def found(monkeypatch):
    """Import the benchmarks as their command does."""
    for folder in (BENCHMARKS, PEERS):
        monkeypatch.syspath_prepend(folder)


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PEERS / "run.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("found")
def test_a_tool_that_is_not_installed_is_none():
    from installed import command_of, version_of

    assert version_of("no-such-package-at-all", sys.executable) == ""
    assert command_of("no-such-package-at-all", "it", sys.executable) is None


@pytest.mark.usefixtures("found")
def test_an_installed_command_starts():
    from installed import command_of

    command = command_of("pytest", "pytest", sys.executable)
    assert command is not None
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert pytest.__version__ in done.stdout + done.stderr


@pytest.mark.usefixtures("found")
def test_start_up_names_what_is_missing_and_what_is_quicker():
    from startup import lines

    rows = {name: {"cpu_s": cpu, "seconds": cpu} for name, cpu in (("gpuledger --help", 0.2), ("gpustat --help", 0.1))}
    text = "\n".join(lines({"rows": rows, "versions": {"gpustat": "1"}, "missing": ["nvitop"], "rounds": 7}))
    assert "Not installed, so not compared: nvitop." in text
    assert "Quicker than `gpuledger --help`: `gpustat --help`." in text


@pytest.mark.usefixtures("found")
def test_scripts_that_find_other_figures_are_not_compared():
    from files import SAME, _agree

    ours = dict.fromkeys(SAME, 10.0)
    _agree({"analyze": ours, "spark": {**ours, "pif": 10.0 * (1 + 1e-7)}})
    with pytest.raises(SystemExit, match="pif: spark finds"):
        _agree({"analyze": ours, "spark": {**ours, "pif": 10.0 * (1 + 1e-5)}})


@pytest.mark.torch
@pytest.mark.usefixtures("found")
def test_estimates_use_the_functions_of_accelerate(tmp_path):
    """Adam in fp32 takes 16 bytes per parameter of the base model; its mixed row prints the optimizer's 8."""
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    from estimates import theirs

    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64, n_positions=16)
    params = sum(w.numel() for w in transformers.GPT2Model(config).parameters())
    (tmp_path / "config.json").write_text(config.to_json_string(), encoding="utf-8")
    assert theirs(tmp_path) == {"float32": 16 * params, "float16": 8 * params}


def test_a_part_run_again_leaves_the_others_of_the_page(tmp_path):
    page = tmp_path / "peers.md"
    assert run("--only", "recorders", "--update", page).returncode == 0
    first = page.read_text(encoding="utf-8")
    assert run("--only", "growth", "--update", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "504,000,000" in text
    assert "504,000,000" not in first
    assert set(first.splitlines()) <= set(text.splitlines())
    assert set(json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))) == {"recorders", "growth"}


def test_a_part_that_does_not_exist_exits_with_2(tmp_path):
    done = run("--only", "nothing", "--update", tmp_path / "page.md")
    assert done.returncode == 2
    assert "analysis" in done.stderr
    assert not (tmp_path / "page.md").exists()
