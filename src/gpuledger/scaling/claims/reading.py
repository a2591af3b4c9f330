"""What was claimed? CLAIMS.json, checked whole before anything is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuledger.errors import FactError, FileFault, map_os_error
from gpuledger.scaling.claims.rule import CLAIMS, Claim

HINT = 'write a list of {"claim": id, "value": value}; docs/scaling.md lists the ids'


def read_claims(path: Path | str) -> tuple[Claim, ...]:
    """The claims of a file; a value of the wrong kind is an error, an id nobody judges is not."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise map_os_error(error, path, "read claims") from error
    except (ValueError, RecursionError) as error:
        raise FileFault(path, f"it is not JSON: {error}", hint=HINT) from error
    if not isinstance(raw, list):
        raise FactError(path, "$", f"a list of claims is wanted, found {type(raw).__name__}", hint=HINT)
    return tuple(_claim(item, f"[{i}]", path) for i, item in enumerate(raw))


def _claim(item: Any, where: str, path: Path | str) -> Claim:
    if not isinstance(item, dict):
        raise FactError(path, where, f"an object is wanted, found {item!r}", hint=HINT)
    name, node = item.get("claim"), item.get("node")
    if not isinstance(name, str) or not name:
        raise FactError(path, f"{where}.claim", f"a name is wanted, found {name!r}", hint=HINT)
    if "value" not in item:
        raise FactError(path, f"{where}.value", f"claim {name!r} has none", hint=HINT)
    if node is not None and not isinstance(node, str):
        raise FactError(path, f"{where}.node", f"a node's name is wanted, found {node!r}", hint=HINT)
    _check_kind(name, item["value"], f"{where}.value", path)
    more = {k: v for k, v in item.items() if k not in {"claim", "value", "node"}}
    return Claim(name, item["value"], node, more)


def _check_kind(name: str, value: Any, where: str, path: Path | str) -> None:
    if name not in CLAIMS.names():
        return
    kind = CLAIMS.get(name).kind
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {"number": is_number, "yes or no": isinstance(value, bool), "text": isinstance(value, str) or is_number}
    if not fits[kind] or (is_number and not abs(value) < float("inf")):
        allowed = {"number": "a number", "yes or no": "true or false", "text": "words in quotes"}[kind]
        raise FactError(path, where, f"{name} wants {allowed}, found {value!r}", hint="give the value in that form")
