"""How do the facts get from a data file into memory, checked whole?"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gpuledger.errors import FactError, FileFault
from gpuledger.settings import NESTED, convert, parse_toml, read_toml

__all__ = ["Fact", "convert", "data_dir", "load_toml", "parse_json", "parse_toml"]

T = TypeVar("T")


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure with its source and date; `verified` is false where the source is second-hand."""

    value: float
    source: str
    as_of: str
    verified: bool = True
    note: str = ""


def data_dir(package: str, *parts: str) -> Traversable:
    """A folder of data files shipped inside `package`."""
    return resources.files(package).joinpath(*parts)


def load_toml(file: Traversable | Path, kind: type[T]) -> T:
    """The file as a validated struct; an error names the file, the field and the value."""
    return convert(read_toml(file), kind, str(file))


def parse_json(text: str, path: str, parse_float: Callable[[str], Any] = float) -> Any:
    """JSON text as plain data."""
    try:
        return json.loads(text, parse_float=parse_float)
    except json.JSONDecodeError as error:
        problem = f"broken JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise FileFault(path, problem, hint="fix that line, or fetch the file again") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise FileFault(path, f"broken JSON: {error}", hint="write a smaller number") from error
    except RecursionError as error:
        raise FactError(path, "syntax", NESTED, hint="remove the brackets that only hold brackets") from error
