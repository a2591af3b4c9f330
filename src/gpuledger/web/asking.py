"""What may an address ask for, and what does it get when that cannot be given?"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query
from pydantic import BaseModel, StringConstraints

from gpuledger.web.contract import Filters


class Problem(BaseModel):
    """What went wrong, and what to do next."""

    error: str
    hint: str = ""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A filter cannot be used"},
    401: {"model": Problem, "description": "A token is needed"},
    404: {"model": Problem, "description": "No such GPU, owner or address"},
    421: {"model": Problem, "description": "The server has no such host name"},
    503: {"model": Problem, "description": "The lake is empty, is still being read, or cannot be read"},
}
MOST_CHARS, MOST_NAMES = 200, 20


def text(words: str) -> Any:
    """A parameter of an address, and what it means."""
    return Query(max_length=MOST_CHARS, description=words)


def names(words: str) -> Any:
    """A parameter that may be given several times."""
    return Query(max_length=MOST_NAMES, description=f"{words}; may be given several times.")


Name = Annotated[str, StringConstraints(max_length=MOST_CHARS)]
Many = list[Name] | None


async def filters(
    since: Annotated[str, text("Start of the window: 2026-01-20 or 2026-01-20T08:30, UTC.")] = "",
    until: Annotated[str, text("End of the window, written the same way.")] = "",
    last: Annotated[str, text("Length of the window, up to its end: 7d, 24h, or all.")] = "",
    cluster: Annotated[Many, names("Cluster")] = None,
    namespace: Annotated[Many, names("Namespace")] = None,
    owner: Annotated[Many, names("Owner")] = None,
) -> Filters:
    """The filters every address takes."""
    chosen = (tuple(name for name in given or () if name) for given in (cluster, namespace, owner))
    return Filters(since.strip(), until.strip(), last.strip(), *chosen)


Chosen = Annotated[Filters, Depends(filters)]
By = Annotated[str, text("Owners to add up: team, namespace, user, job, account.")]
Find = Annotated[str, text("Text in a GPU's host, name, model, owner or class.")]
Sort = Annotated[str, text("Order: waste, paid, util, realized, idle, power (largest first), name.")]
Device = Annotated[str, Path(max_length=MOST_CHARS, description="A GPU's UUID, with /INSTANCE for a MIG slice.")]
