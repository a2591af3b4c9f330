"""Are the rules of the house kept: small modules, plain names, plain words, light imports?"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "gpuledger"
MODULES = sorted(SRC.rglob("*.py"))
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 60
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "base"}
INFLATED = re.compile(
    r"\b(comprehensive\w*|robust\w*|powerful\w*|seamless\w*|leverag\w+|cutting-edge|state-of-the-art|"
    r"best-in-class|world-class|blazing\w*|effortless\w*)\b",
    re.IGNORECASE,
)
HEAVY = (
    "duckdb", "pyarrow", "numpy", "altair", "vl_convert", "rich", "pandas", "torch", "fastapi", "textual", "pynvml",
)  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def too_long(tree: ast.AST) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = (n for n in ast.walk(tree) if isinstance(n, kinds))
    return [f.name for f in found if (f.end_lineno or 0) - f.lineno + 1 > MAX_FUNCTION_LINES]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert path.stem not in BANNED_NAMES
    assert not any(part in BANNED_NAMES for part in path.relative_to(SRC).parts)
    assert len(text.splitlines()) <= MAX_MODULE_LINES
    assert ast.get_docstring(tree), "a module opens with the question it answers"
    assert too_long(tree) == []


WRITTEN = [
    *MODULES, *sorted(SRC.rglob("*.toml")), *sorted(SRC.rglob("*.html")), *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
]  # fmt: skip


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_plain_words(path):
    assert INFLATED.findall(path.read_text(encoding="utf-8")) == []


def test_the_rules_can_fail():
    """Each rule finds what it forbids."""
    assert INFLATED.findall("a robust and Seamless tool") == ["robust", "Seamless"]
    assert too_long(ast.parse("def f():\n" + "    x = 1\n" * 61)) == ["f"]
    assert too_long(ast.parse("def f():\n" + "    x = 1\n" * 59)) == []


def loaded_by(code: str) -> set[str]:
    """The top-level modules loaded after running some code in a fresh Python."""
    code += "\nimport sys\nprint('\\n'.join(sorted({m.split('.')[0] for m in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import gpuledger",
        "import gpuledger; dir(gpuledger); gpuledger.__version__",
        "from gpuledger.cli.app import run; import os; assert run(['--help']) == 0",
        "from gpuledger.cli.app import run; assert run(['import', '--help']) == 0",
        "from gpuledger.cli.app import run; assert run(['catalog', 'gpus', '--json', '--help']) == 0",
    ],
)
def test_import_and_help_load_nothing_heavy(code):
    assert loaded_by(code).isdisjoint(HEAVY)


def test_help_imports_no_command():
    code = "from gpuledger.cli.app import run; assert run(['--help']) == 0; import sys;"
    code += "assert not [m for m in sys.modules if m.startswith('gpuledger.cli.commands.')]"
    assert "click" in loaded_by(code)


def test_the_light_import_rule_can_fail():
    assert "pyarrow" in loaded_by("import gpuledger; gpuledger.Lake; gpuledger.import_files")
