"""Is every public name there, where it says it is, and does a wrong one say so?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gpuledger


def names_for_type_checkers() -> dict[str, tuple[str, ...]]:
    tree = ast.parse(Path(gpuledger.__file__).read_text(encoding="utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If))
    imports = (n for n in block.body if isinstance(n, ast.ImportFrom))
    found: dict[str, list[str]] = {}
    for n in imports:
        names = [a.name for a in n.names if a.asname not in ("open", "read")]
        found.setdefault(str(n.module).removeprefix("gpuledger."), []).extend(names)
    return {home: tuple(sorted(names)) for home, names in found.items()}


def test_type_checkers_see_what_is_loaded():
    homes = {home: tuple(sorted(names)) for home, names in gpuledger._HOMES.items()} | {"gpuledger": gpuledger._ROOMS}
    assert homes == names_for_type_checkers()


def test_all_lists_every_name_once():
    names = [n for names in gpuledger._HOMES.values() for n in names]
    assert sorted([*names, "__version__", "open", "read"]) == sorted(gpuledger.__all__)
    assert set(gpuledger.__all__) <= set(dir(gpuledger))


@pytest.mark.parametrize("name", [*gpuledger.__all__, *gpuledger._ROOMS])
def test_every_name_loads(name):
    assert getattr(gpuledger, name) is not None


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = gpuledger.frobnicate
