"""Are the rules of the house kept: small modules, plain names, plain words, light imports?"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "gpuledger"
MODULES = sorted(SRC.rglob("*.py"))
MAX_MODULE_LINES = 600
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


def broken_rules(path: Path, root: Path = SRC) -> list[str]:
    """What is wrong with a module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    parts = path.relative_to(root).with_suffix("").parts
    found = [f"the name {part} says nothing" for part in parts if part in BANNED_NAMES]
    if len(text.splitlines()) > MAX_MODULE_LINES:
        found.append(f"more than {MAX_MODULE_LINES} lines")
    if not ast.get_docstring(tree):
        found.append("a module opens with the question it answers")
    return found + [f"{function} has more than {MAX_FUNCTION_LINES} lines" for function in too_long(tree)]


def test_modules():  # one test for all: a test for each takes pytest longer than the look at the module
    assert {name(path): found for path in MODULES if (found := broken_rules(path))} == {}


WRITTEN = [
    *MODULES, *sorted(SRC.rglob("*.toml")), *sorted(SRC.rglob("*.html")), *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
]  # fmt: skip


def test_plain_words():
    found = {name(path): INFLATED.findall(path.read_text(encoding="utf-8")) for path in WRITTEN}
    assert {path: words for path, words in found.items() if words} == {}


def test_the_rules_can_fail(tmp_path):
    """Each rule finds what it forbids."""
    bad = tmp_path / "utils.py"
    bad.write_text("def f():\n" + "    x = 1\n" * 61 + "y = 2\n" * MAX_MODULE_LINES)
    assert len(broken_rules(bad, tmp_path)) == 4
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


def layers() -> list[str]:
    """The rooms as import-linter holds them, from the bottom up."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    names = [re.findall(r"gpuledger\.(\w+)", layer) for layer in contract[0]["layers"]]
    return [room for layer in reversed(names) for room in layer if (SRC / room).is_dir()]


def test_every_room_has_its_place_among_the_layers():
    assert sorted(layers()) == sorted(p.parent.name for p in SRC.glob("*/__init__.py"))


def test_the_documents_list_the_rooms_in_their_order():
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE) == layers()
    docstring = ast.get_docstring(ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert [word for word in re.findall(r"^    (\w+)  +\w", docstring, re.MULTILINE) if word in layers()] == layers()


def test_physics_is_pure():
    """It judges arrays: no files of samples or lines, no lake, no ledger."""
    for path in (SRC / "physics").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(pyarrow|duckdb|open\(|gpuledger\.(lake|ledger))", text), path


LEDGER_FILES = re.compile(r"\.lines\.parquet|\.days\.parquet|\bfiles_of\(|\.files\(\"lines\"|read_parquet\(")


def test_ledger_lines_have_one_reader():
    """Other rooms ask `ledger/read`; none opens the files of a ledger day or queries them with SQL."""
    assert LEDGER_FILES.search("select sum(idle_ms) from read_parquet(?)")
    for path in MODULES:
        if path.relative_to(SRC).parts[0] != "ledger":
            assert not LEDGER_FILES.search(path.read_text(encoding="utf-8")), path


NEEDS_PANDAS = re.compile(r"^ *(import|from) pandas|\.(to|from)_pandas\w*\(", re.MULTILINE)


def test_only_data_frames_that_are_asked_for_need_pandas():
    """It is not a dependency: some versions of Arrow need it even to name the numpy type of a column."""
    assert NEEDS_PANDAS.search("kind.to_pandas_dtype()")
    found = [name(path) for path in MODULES if NEEDS_PANDAS.search(path.read_text(encoding="utf-8"))]
    assert found == ["src/gpuledger/answers.py"]
