"""What may an address ask for, and what does it get when that cannot be given?"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import BaseModel

from gpuledger.web.contract import Filters


class Problem(BaseModel):
    """What went wrong, and what to do next."""

    error: str
    hint: str = ""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A filter cannot be used"},
    401: {"model": Problem, "description": "A token is needed"},
    404: {"model": Problem, "description": "There is no such thing"},
    421: {"model": Problem, "description": "The server has no such host name"},
    503: {"model": Problem, "description": "The lake is empty, is still being read, or cannot be read"},
}
Text = Annotated[str, Query(max_length=200)]
Many = Annotated[list[Annotated[str, Query(max_length=200)]] | None, Query(max_length=20)]


async def filters(
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
