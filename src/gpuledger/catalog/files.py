"""How do the facts get from a data file into memory, checked whole?"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gpuledger.errors import FactError, FileFault, map_os_error

T = TypeVar("T")
NESTED = "lists or tables are nested too deeply"


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
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise map_os_error(error, str(file), "read facts") from error
    except UnicodeDecodeError as error:
        raise FileFault(str(file), f"not UTF-8 text: {error.reason}", hint="save the file as UTF-8") from error
    return convert(parse_toml(text, str(file)), kind, str(file))


def parse_toml(text: str, path: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """TOML text as plain data."""
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except ValueError as error:  # bad TOML, or a whole number of thousands of digits
        raise FactError(path, "syntax", f"broken TOML: {error}", hint="fix the TOML at the line named above") from error
    except RecursionError as error:
        raise FactError(path, "syntax", NESTED, hint="remove the brackets that only hold brackets") from error


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


def convert(raw: object, kind: type[T], path: str) -> T:
    """Plain data as a validated struct."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `")
        field = where.rstrip("`") or "$"
        raise FactError(
            path, field, f"{problem} (found {_found(raw, field)})", hint="edit that field of the file"
        ) from error


def _found(raw: object, field: str) -> str:
    """The offending value, as far as the path can be followed."""
    value = raw
    for step in field.removeprefix("$").replace("[", ".").replace("]", "").split("."):
        if not step:
            continue
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            break
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
