"""Do the examples of the documentation run, and do its commands and links exist?"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import gpuledger
from gpuledger.cli.app import root

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = {"", "bash"}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_python_page_runs_top_to_bottom_in_an_empty_folder(tmp_path):
    blocks = PYTHON.findall((DOCS / "python.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 8
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (folder / "report" / "audit.html").exists()


PLUGGED_IN = """
import gpuledger
from gpuledger.cli.app import run

gpuledger.write_fleet(gpuledger.FleetSpec(gpus=4, days=1, step_s=300), "fleet.parquet")
lake = gpuledger.open("books")
lake.ingest("fleet.parquet")
audit = lake.audit(prices=2)
assert "rack-fans" in {r.id for r in audit.recommendations}
assert "charts/dollars_by_team.svg" in audit.save("report")
assert run(["plan", "racks", "--gpus", "100", "--json"]) == 0
assert "ours" in DEVICES.names()
"""


@pytest.mark.scale
def test_the_plugins_of_the_page_work(tmp_path):
    """The rule, the chart, the planner and the device; the source needs a format of its own."""
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    parts = [page.split(f"\n## A {kind}\n")[1] for kind in ("rule", "chart", "planner", "device")]
    script = tmp_path / "plugged_in.py"
    script.write_text("\n".join([*(PYTHON.search(part)[1] for part in parts), PLUGGED_IN]), encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert '"racks": 4' in done.stdout


def commands_of(text: str) -> list[list[str]]:
    """The gpuledger commands of the fenced blocks, without comments and what they are piped or chained to."""
    found = []
    for block in (block for kind, block in FENCED.findall(text) if kind in SHELL):
        for line in re.sub(r"\$\(.*?\)", "", block.replace("\\\n", " ")).splitlines():
            for part in re.split(r"&&|\|\s", line):
                words = shlex.split(part, comments=True) if part.strip().startswith("gpuledger ") else []
                if words:
                    found.append(words[1:])
    return found


def spellings(command: click.Command) -> set[str]:
    return {s for p in command.params for s in (*p.opts, *p.secondary_opts)} | {"-h", "--help"}


def problem(words: list[str]) -> str | None:
    """What is wrong with a written command: a name or an option that does not exist."""
    command: click.Command = root
    while isinstance(command, click.Group) and words:
        if words[0].startswith("-"):
            break
        if command is root and re.search(r"\w\.\w+$", words[0]):  # a file alone is audited
            words = ["audit", *words]
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            return None if words[0].isupper() else f"no command {words[0]!r}"
        command, words = inner, words[1:]
    own = words[: words.index("--")] if "--" in words else words
    for word in own:
        option = word.split("=")[0]
        if option.startswith("-") and option not in spellings(command) | spellings(root):
            return f"no option {option}"
    return None


@pytest.mark.parametrize("page", [p for p in PAGES if p != DOCS / "reference" / "cli.md"], ids=name)
def test_written_commands_and_options_exist(page):
    wrong = [(words, why) for words in commands_of(page.read_text(encoding="utf-8")) if (why := problem(words))]
    assert wrong == []


def test_commands_are_found_between_other_blocks():
    assert commands_of("```csv\na,b\n```\ngpuledger is prose\n```\ngpuledger demo && gpuledger tidy\n```\n") == [
        ["demo"],
        ["tidy"],
    ]


def test_a_wrong_command_is_noticed():
    (words,) = commands_of("```\ngpuledger audit --prize 3 -- python x.py --any  # why\n```\n")
    assert words[0] == "audit"
    assert problem(words) == "no option --prize"
    assert problem(["audti"]) == "no command 'audti'"
    assert problem(["audit", "--price", "3", "--", "python", "--any"]) is None
    assert problem(["plan", "fit", "--model", "m"]) is None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in LINK.findall(text):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.split("#")[0]).exists(), target


TERMS = {
    "RFU": "realized FLOPS utilization",
    "PIF": "power intensity factor",
    "MFU": "odel FLOPs utilization",
    "HFU": "ardware FLOPs utilization",
    "MIG": "ulti-instance GPU",
}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_terms_are_expanded_on_every_page(page):
    text = " ".join(re.sub(r"`[^`]*`", "", re.sub(FENCED, "", page.read_text(encoding="utf-8"))).split())
    for term, words in TERMS.items():
        assert not re.search(rf"\b{term}\b", text) or words in text, term


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    gpuledger.write_fleet(gpuledger.FleetSpec(gpus=4, days=1, step_s=300), folder / "fleet.parquet")
    made = gpuledger.open(folder / "books")
    made.ingest(folder / "fleet.parquet")
    return made


@pytest.mark.parametrize("kind", ["analyze", "audit"])
def test_the_json_page_names_keys_that_are_there(lake, kind):
    part = (DOCS / "reference" / "json.md").read_text(encoding="utf-8").split(f"\n## {kind}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    keys = {key for cell in rows for key in re.findall(r"`(\w+)`", cell)}
    made = set(lake.analyze().to_dict() if kind == "analyze" else lake.audit(prices=2).to_dict())
    assert len(keys) > 15
    assert keys - made <= {"failed", "exit_code", "run_id", "recorded"}  # those of the command line


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/-]+\.md)$", config, re.MULTILINE))
    assert listed == {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")}
