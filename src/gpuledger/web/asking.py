"""What may an address ask for, and what does it get when that cannot be given?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import BaseModel

from gpuledger.web.live_lake import Filters, LiveLake


class Problem(BaseModel):
    """What went wrong, and what to do next."""

    error: str
    hint: str = ""


class NotReady(Exception):
    """The lake is empty, or is read for the first time."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A filter cannot be used"},
    401: {"model": Problem, "description": "A token is needed"},
    404: {"model": Problem, "description": "There is no such thing"},
    503: {"model": Problem, "description": "The lake is empty, or is still being read"},
}
Text = Annotated[str, Query(max_length=200)]
Many = Annotated[list[str] | None, Query(max_length=20)]


def filters(
    since: Text = "",
    until: Text = "",
    last: Text = "",
    cluster: Many = None,
    namespace: Many = None,
    owner: Many = None,
) -> Filters:
    """The filters every address takes."""
    chosen = (tuple(name for name in given or () if name) for given in (cluster, namespace, owner))
    return Filters(since.strip(), until.strip(), last.strip(), *chosen)


Chosen = Annotated[Filters, Depends(filters)]


def ready(live: LiveLake, given: Filters) -> Filters:
    """The filters, with the server's own window where the address names none; an error while there is no statement."""
    if live.status.state != "ready":
        raise NotReady
    if given.since or given.until or given.last:
        return given
    return replace(given, since=live.default.since, until=live.default.until, last=live.default.last)
