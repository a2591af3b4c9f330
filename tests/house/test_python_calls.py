"""Does no public Python call accept a keyword that it does not take, and does it name the one that was meant?"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gpuledger
from gpuledger import answers
from gpuledger.api import ReadFiles
from gpuledger.arguments import names_of
from gpuledger.errors import GpuledgerError, UnknownArgument
from gpuledger.plan.planners import PLANNERS

SRC = Path(gpuledger.__file__).parent
WRONG = "frobnicate"
STATEMENT = gpuledger.plan.fit("llama-3.1-8b", "l4").statement
# What is passed on by name is checked once the call knows whose names they are.
FIRST: dict[str, tuple[Any, ...]] = {
    "write_report": (STATEMENT, "report"),
    "plan.fit": ("llama-3.1-8b", "l4"),
    "plan.throughput": ("llama-3.1-8b", "l4"),
    "plan.asked": ("llama-3.1-8b", "l4"),
    "OpenLake.record": (gpuledger.open(),),
    "ReadFiles.record": (gpuledger.open(),),
    "Segment": (1.0,),
} | {f"plan.run {name}": (name,) for name in PLANNERS.names()}
# Made by calls, not by users, or methods of these: Python refuses the name, before 3.13 without the nearest one.
RESULTS = (
    "Answer", "CommandRun", "EfficiencyStatement", "Gpu", "GpuledgerError", "ImportResult", "Lake", "PostingResult",
    "Scenario", "Thresholds", "Unknown",
)  # fmt: skip
INSIDE = (
    "Gpu.",
    "Lake.",
    "Meter.",
    "Recording.",
    "QuickClock.",
    "Scenario.",
    "Bill.",
    "Lever.",
    "FleetSpec.",
    "Ramp.",
    "Square.",
)


def made_by_users(name: str) -> bool:
    return name not in RESULTS and not name.startswith(INSIDE)


def methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            yield f"{kind.__name__}.{name}", method


def public_calls() -> dict[str, Callable[..., Any]]:
    named = {name: getattr(gpuledger, name) for name in gpuledger.__all__}
    found = {name: value for name, value in named.items() if callable(value)}
    for kind in (*(v for v in found.values() if inspect.isclass(v)), ReadFiles, answers.Rows):
        found |= dict(methods(kind))
    for room in (gpuledger.plan, gpuledger.scaling, gpuledger.train):
        own = {n: getattr(room, n) for n in dir(room) if not n.startswith("_")}
        made = {n: v for n, v in own.items() if inspect.isfunction(v) and v.__module__ == room.__name__}
        found |= {f"{room.__name__.removeprefix('gpuledger.')}.{n}": v for n, v in made.items()}
    found |= {f"train.{n}": getattr(gpuledger.train, n) for n in gpuledger.train.__all__}
    found |= {f"plan.{n}": getattr(gpuledger.plan, n) for n in PLANNERS.names()}
    return found | {f"plan.run {n}": gpuledger.plan.run for n in PLANNERS.names()}


CALLS = {name: call for name, call in public_calls().items() if name != "plan.run"}  # it runs another by name


def test_the_calls_of_an_open_lake_are_among_them() -> None:
    wanted = {"analyze", "audit", "moves", "give_back", "budget", "change", "anomalies", "samples", "lines", "record"}
    assert wanted <= {name.removeprefix("OpenLake.") for name in CALLS}
    assert {"cost_report", "read", "train.mfu", "plan.tco", "plan.migrate", "scaling.judge", "FleetSpec"} <= set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_keyword_is_a_type_error(name: str) -> None:
    with pytest.raises(TypeError, match=WRONG) as raised:
        CALLS[name](*FIRST.get(name, ()), **{WRONG: 1})
    if not isinstance(raised.value, UnknownArgument):  # Python's own
        assert not keywords(name)


def keywords(name: str) -> tuple[str, ...]:
    """What a call that a person writes takes by name."""
    if name == "plan.asked" or not made_by_users(name):
        return ()
    planner = name.rpartition(" ")[2].removeprefix("plan.")
    if planner in PLANNERS.names():
        return tuple(option.name for option in PLANNERS.get(planner).options)
    return names_of(CALLS[name])


@pytest.mark.parametrize("name", [name for name in CALLS if keywords(name)])
def test_a_misspelled_keyword_names_the_one_that_was_meant(name: str) -> None:
    meant = max(keywords(name), key=len)
    with pytest.raises(UnknownArgument) as raised:
        CALLS[name](*FIRST.get(name, ()), **{f"{meant}e": 1})
    assert meant in raised.value.nearest
    assert f"did you mean {raised.value.nearest[0]}" in str(raised.value)
    assert isinstance(raised.value, GpuledgerError)


def typed_keywords() -> Iterator[tuple[str, str, str]]:
    """Functions of any room whose keywords are those of a TypedDict, which Python itself does not look at."""
    for file in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.args.kwarg and node.args.kwarg.annotation:
                words = ast.unparse(node.args.kwarg.annotation)
                if words.startswith("Unpack["):
                    yield str(file.relative_to(SRC)), node.name, words[len("Unpack[") : -1]


@pytest.mark.parametrize(("file", "function", "kind"), list(typed_keywords()))
def test_typed_keywords_are_looked_at(file: str, function: str, kind: str) -> None:
    tree = ast.parse((SRC / file).read_text(encoding="utf-8"))
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function)
    calls = [d for d in node.decorator_list if isinstance(d, ast.Call) and ast.unparse(d.func) == "takes"]
    assert [ast.unparse(d.args[0]) for d in calls if d.args] == [kind]
