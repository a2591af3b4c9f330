"""Can everything be installed that a hint, a page of the documentation or a notebook says to install?"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from core_install import WITHOUT_PANDAS
from gpuledger.errors import Extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
SOURCES = [path for kind in ("*.py", "*.toml", "*.j2", "*.html") for path in (ROOT / "src").rglob(kind)]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]

IN_BRACKETS = re.compile(r"gpuledger\[([\w ,-]+)\]")
# What follows up to the end of the command; a name in braces is put in when the hint is made.
COMMAND = re.compile(r"pip install((?: +(?:-U|\w[\w.-]*|\"[^\"{]+\"))+)")


def requirement_names(lines: Iterator[str]) -> set[str]:
    return {re.split(r"[^\w.-]", line)[0].lower() for line in lines if line and line[0].isalnum()}


def known_packages() -> set[str]:
    """What pyproject.toml asks for, and what the tests of training install; Lightning under both of its names."""
    asked = [*PROJECT["dependencies"], *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)]
    training = (ROOT / "requirements" / "train.txt").read_text(encoding="utf-8").splitlines()
    return requirement_names(iter([*asked, *training])) | {"gpuledger", "lightning"}


def extras_named(text: str) -> set[str]:
    return {name.strip() for names in IN_BRACKETS.findall(text) for name in names.split(",")}


def packages_named(text: str) -> set[str]:
    text = text.replace('\\"', '"')  # as a notebook writes it
    words = (word.strip('"') for found in COMMAND.findall(text) for word in found.split())
    return {re.split(r"[^\w.-]", word)[0].lower() for word in words if word != "-U"}


def installs_handed_on() -> set[str]:
    """What callers of `need_class` say to install: its third argument, or the second of a tuple they spread."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        tuples = {ast.unparse(n.targets[0]): n.value.elts for n in nodes if is_tuple_named(n)}
        for call in nodes:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "need_class":
                spread = [
                    (tuples.get(ast.unparse(a.value)) if isinstance(a, ast.Starred) else None) or [a] for a in call.args
                ]
                found |= set(ast.literal_eval([a for part in spread for a in part][2]).split())
    return found


def is_tuple_named(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)


def test_extras_of_the_hints_are_those_of_the_project() -> None:
    """mypy holds every `MissingExtra` to these names."""
    assert set(get_args(Extra)) == EXTRAS - {"all"}


@pytest.mark.parametrize("paths", [SOURCES, PAGES], ids=["sources", "pages"])
def test_extras_that_are_named_exist(paths: list[Path]) -> None:
    named = {path.name: extras_named(path.read_text(encoding="utf-8")) - EXTRAS for path in paths}
    assert {name: found for name, found in named.items() if found} == {}


@pytest.mark.parametrize("paths", [SOURCES, PAGES], ids=["sources", "pages"])
def test_packages_that_are_named_are_known(paths: list[Path]) -> None:
    named = {path.name: packages_named(path.read_text(encoding="utf-8")) - known_packages() for path in paths}
    assert {name: found for name, found in named.items() if found} == {}
    assert installs_handed_on() <= known_packages()
    assert installs_handed_on(), "no caller was found"


def test_the_rules_can_fail() -> None:
    assert extras_named('pip install "gpuledger[web, frames]"') == {"web", "frames"}
    assert packages_named("install it (pip install torch no-such-package), then") == {"torch", "no-such-package"}
    assert packages_named("pip install --no-deps -r requirements.txt") == set()
    assert packages_named('!pip install -U \\"ray[client]\\"') == {"ray"}


FRAME = """
import gpuledger, json, pyarrow as pa
from gpuledger.answers import Rows
rows = Rows("by_gpu", pa.table({"gpu": ["a"]}))
try:
    rows.df()
except gpuledger.errors.MissingExtra as error:
    print(json.dumps([error.hint, rows._repr_html_(), len(repr(rows)) > 0]))
"""


def test_a_data_frame_without_pandas_names_what_to_install() -> None:
    run = [sys.executable, "-c", WITHOUT_PANDAS + FRAME]
    hint, html, shown = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert extras_named(hint) == {"pandas"} <= EXTRAS
    assert html is None
    assert shown
