"""Does a type of machine have GPUs, and how many?"""

from __future__ import annotations

import re
from functools import cache

from gpuledger.catalog.prices.offers import load_offers

# Families with GPUs as the clouds name them; types of other families have none.
_WITH = re.compile(r"(p\d|g\d|gr\d)\w*(-\w+)?\.\w+|(standard_)?n[cdgpv]\w*|a\d-\w+-\w+|g\d-\w+-\w+", re.IGNORECASE)
_TYPE = re.compile(r"[a-z][\w-]*\.[\w-]+|(standard|basic)_\w+|[a-z]\d\w*-\w+(-\w+)?", re.IGNORECASE)


@cache
def _counts() -> dict[str, int | None]:
    """GPUs by type of machine, None where a type is offered with several counts."""
    found: dict[str, set[int]] = {}
    for offer in load_offers():
        if offer.instance and isinstance(offer.gpu, str):
            found.setdefault(offer.instance.casefold(), set()).add(int(offer.gpus))
    return {name: counts.pop() if len(counts) == 1 else None for name, counts in found.items()}


def gpus_in(instance: str) -> int | None:
    """How many GPUs a type of machine has by the price list; None where that is unknown."""
    return _counts().get(instance.casefold())


def has_gpus(instance: str) -> bool | None:
    """Whether a type of machine has GPUs; None where its name does not say."""
    if not instance:
        return None
    if instance.casefold() in _counts() or _WITH.fullmatch(instance):
        return True
    return False if _TYPE.fullmatch(instance) else None
