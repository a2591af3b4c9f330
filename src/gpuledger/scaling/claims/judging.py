"""Which claims were made, what is the run's verdict on each, and which mistakes were made?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuledger.errors import FactError, FileFault, map_os_error, nearest
from gpuledger.scaling.claims.rule import CHECKS, CLAIMS, Case, Claim, Finding, cannot_tell
from gpuledger.scaling.statement import Check, Verdict
from gpuledger.units import Unknown

HINT = 'write a list of {"claim": id, "value": value}; docs/scaling.md lists the ids'


def read_claims(path: Path | str) -> tuple[Claim, ...]:
    """The claims of a file; a value of the wrong kind is an error, an id without a rule is not."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise map_os_error(error, path, "read claims") from error
    except (ValueError, RecursionError) as error:
        raise FileFault(path, f"it is not JSON: {error}", hint=HINT) from error
    if not isinstance(raw, list):
        raise FactError(path, "$", f"a list of claims is expected, found {type(raw).__name__}", hint=HINT)
    return tuple(_claim(item, f"[{i}]", path) for i, item in enumerate(raw))


def _claim(item: Any, where: str, path: Path | str) -> Claim:
    if not isinstance(item, dict):
        raise FactError(path, where, f"an object is expected, found {item!r}", hint=HINT)
    name, node = item.get("claim"), item.get("node")
    if not isinstance(name, str) or not name:
        raise FactError(path, f"{where}.claim", f"a name is expected, found {name!r}", hint=HINT)
    if "value" not in item:
        raise FactError(path, f"{where}.value", f"claim {name!r} has none", hint=HINT)
    if node is not None and not isinstance(node, str):
        raise FactError(path, f"{where}.node", f"the name of a node is expected, found {node!r}", hint=HINT)
    _check_kind(name, item["value"], f"{where}.value", path)
    more = {k: v for k, v in item.items() if k not in {"claim", "value", "node"}}
    return Claim(name, item["value"], node, more)


def _check_kind(name: str, value: Any, where: str, path: Path | str) -> None:
    if name not in CLAIMS.names():
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits, allowed = {
        "number": (is_number, "a number"),
        "yes or no": (isinstance(value, bool), "true or false"),
        "text": (isinstance(value, str) or is_number, "words in quotes"),
    }[CLAIMS.get(name).kind]
    if not fits or (is_number and not abs(value) < float("inf")):
        raise FactError(path, where, f"{name} expects {allowed}, found {value!r}", hint="give the value in that form")


def verdicts(case: Case) -> tuple[Verdict, ...]:
    """One per claim, in the order of the file."""
    judged = ((claim, _judged(case, claim)) for claim in case.claims)
    return tuple(Verdict(c.claim, c.value, c.node, found.verdict, found.why) for c, found in judged)


def _judged(case: Case, claim: Claim) -> Finding:
    if claim.claim not in CLAIMS.names():
        near = nearest(claim.claim, CLAIMS.names())
        hint = f"did they mean {' or '.join(near)}?" if near else f"known ids: {', '.join(CLAIMS.names())}"
        return cannot_tell(f"no rule judges claims of this id; {hint}")
    if claim.node is not None and isinstance(found := case.named(claim.node), Unknown):
        return cannot_tell(found.why)
    return CLAIMS.get(claim.claim).judge(case, claim)


def checks(case: Case) -> tuple[Check, ...]:
    """Every mistake that is looked for, found or not."""
    ordered = sorted((sought for _, sought in CHECKS), key=lambda s: (s.order, s.id))
    looked = ((sought, sought.look(case)) for sought in ordered)
    return tuple(Check(s.id, s.title, why is not None, why or "not found in this run") for s, why in looked)
