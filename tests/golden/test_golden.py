"""Do the commands and calls answer what they answered before, and is every change of an answer on the list?

Each scenario runs in a process of its own: it needs the catalog of the goldens, and the clock stands still in it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

import gpuledger
from golden import golden
from gpuledger.api import OpenLake
from gpuledger.cli.app import root
from gpuledger.plan.planners import PLANNERS

LIVE = "what it answers depends on the machine and the clock"
WITHOUT_CASE = {
    "agent": LIVE, "agent status": LIVE, "bench": LIVE, "calibrate": LIVE, "record": LIVE, "train tune": LIVE,
    "config init": "writes a file to fill in", "demo": "its fleet is made anew", "synth": "its fleet is made anew",
    "export otel": "sends what export metrics prints to a server", "serve": "answers what audit and analyze do",
}  # fmt: skip


@pytest.mark.parametrize("name", golden.scenarios())
def test_no_figure_moves(name):
    ended = subprocess.run([sys.executable, golden.__file__, name], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}\nlist it: tests/golden/README.md"


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group) and not command.invoke_without_command:
            yield from commands(command, (*names, name))
        else:
            yield " ".join((*names, name))
            if isinstance(command, click.Group):
                yield from commands(command, (*names, name))


def test_every_command_has_a_case_or_a_reason():
    lines = [line.partition(": ")[2] or line for s in golden.scenarios().values() for line in s["run"].values()]
    run = {name for name in commands(root) if any(f"{line} ".startswith(f"{name} ") for line in lines)}
    assert set(commands(root)) - run == set(WITHOUT_CASE)


def calls() -> Iterator[str]:
    """Every call in Python that answers with a statement, as it is written in a case."""
    yield from (
        f"open().{name}(" for name in vars(OpenLake) if not name.startswith("_") and name not in ("record", "posted")
    )
    yield from (
        f"gpuledger.plan.{name.replace('-', '_')}(" for name in ("fit", "throughput", "migrate", *PLANNERS.names())
    )
    yield from (f"gpuledger.{name}(" for name in gpuledger.__all__ if name.endswith(("_statement", "cost_report")))
    yield from ("gpuledger.scaling.judge(", "gpuledger.train.mfu(", "gpuledger.read(")


def test_every_statement_in_python_has_a_case():
    asked = [line for s in golden.scenarios().values() for line in s.get("python", {}).values()]
    assert [call for call in calls() if not any(line.startswith(call) for line in asked)] == []


def test_goldens_are_changed_by_their_command_alone():
    assert golden.SUMS.read_text(encoding="utf-8") == golden.sums(), "python tests/golden/golden.py --accept"


def test_every_row_of_the_list_has_its_reason():
    assert [c for c in golden.listed() if not c.why.strip() or c.old == c.new] == []


OLD, NEW = b'{"paid": "12", "rows": [{"usd": 1.5}, {"usd": 2}]}', b'{"paid": "13", "rows": [{"usd": 1.5}, {"usd": 7}]}'
MOVED = [("a.json", "/paid", "12", "13"), ("a.json", "/rows/1/usd", "2", "7")]


def test_a_moved_figure_is_found_by_its_key():
    assert list(golden.differences("a.json", OLD, NEW)) == MOVED
    assert list(golden.differences("a.csv", b"gpu,usd\na,1\n", b"gpu,usd\na,2\n")) == [("a.csv", "1/usd", "1", "2")]
    assert list(golden.differences("a.prom", b'x{a="1"} 4\n', b'x{a="1"} 5\n')) == [("a.prom", 'x{a="1"}', "4", "5")]
    assert list(golden.differences("a.json", OLD, OLD.replace(b" ", b""))) != []


def test_other_libraries_may_differ_in_the_last_digits_alone():
    old = b'{"a": 0.1, "b": "12.000000000001", "c": "x"}'
    close, far = old.replace(b"0.1,", b"0.10000000000000003,"), old.replace(b"0.1,", b"0.1000000001,")
    assert list(golden.differences("a.json", old, close, figures=True)) == []
    assert [d[1] for d in golden.differences("a.json", old, far, figures=True)] == ["/a"]
    assert [d[1] for d in golden.differences("a.json", old, old.replace(b"x", b"y"), figures=True)] == ["/c"]


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([], MOVED),
        ([("a.json", "/paid", "12", "13", "the price rose")], MOVED[1:]),
        ([("*", "*", "12", "13", "the price rose")], []),
        ([("*", "*", "12", "14", "the price rose")], MOVED),  # an old row, of another change
        ([("*", "*", "12", "13", " ")], MOVED),
    ],
)
def test_a_row_holds_for_what_moved_as_it_says(rows, left):
    assert golden.not_listed(MOVED, [golden.Change(*row) for row in rows]) == left


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of goldens with one case, accepted."""
    for name, place in {"EXPECTED": "expected", "CHANGES": "changes.csv", "SUMS": "sums.csv"}.items():
        monkeypatch.setattr(golden, name, tmp_path / place)
    golden.CHANGES.write_text("case,key,old,new,why\n", encoding="utf-8")
    golden.SUMS.write_text("case,sha256\n", encoding="utf-8")
    assert golden.accept({"s/a.json": OLD}, ["s"]) == []
    return golden.EXPECTED / "s" / "a.json"


def test_a_golden_that_was_deleted_is_no_new_case(kept):
    kept.unlink()
    assert [(d[0], d[3][:15]) for d in golden.accept({"s/a.json": NEW}, ["s"])] == [("s/a.json", "changed by hand")]
    assert not kept.exists()


def test_a_golden_written_by_hand_is_not_taken_over(kept):
    kept.write_bytes(NEW)
    assert golden.accept({"s/a.json": NEW}, ["s"]) != []
    assert golden.accept({"t/b.json": OLD}, ["t"]) != []  # nor by accepting another scenario


def test_a_case_that_failed_is_accepted_by_no_row(kept):
    golden.CHANGES.write_text("case,key,old,new,why\n*,*,none,new,anything\n", encoding="utf-8")
    made = {"s/a.json": OLD, "s/b.failed": b"exit code 70"}
    assert golden.accept(made, ["s"]) == [("s/b.failed", "(file)", "none", "new")]


def test_a_call_in_python_answers_all_that_its_command_prints():
    printed = b'{"paid": 1, "rows": [], "files": {"csv": "a.csv"}}'
    assert golden._holds(printed, b'{"paid": 1, "rows": []}')
    assert not golden._holds(printed, b'{"paid": 1}')
    assert not golden._holds(printed, b'{"paid": 1, "rows": [], "more": 2}')
    assert not golden._holds(printed, b"[]")
