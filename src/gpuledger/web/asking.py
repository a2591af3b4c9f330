"""What may an address ask for, and what does it get when that cannot be given?"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query
from pydantic import BaseModel, StringConstraints

from gpuledger.times import instant_ms
from gpuledger.web.contract import OWNERS, SORTS, Filters


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
# As the description gives them; what is read is more lenient, and an error says what to write.
_DAY = (
    r"(19[7-9]\d|20\d\d|21\d\d)-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)"
    r"|02-(0[1-9]|1\d|2[0-8]))"
)
_INSTANT = rf"^({_DAY}(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?Z?)?)?$"
_LENGTH = r"^(all|[1-9]\d{0,5}[hms]|[1-9]\d{0,3}[wd])?$"


def text(words: str, **schema: Any) -> Any:
    """A parameter of an address, what it means, and what its text may be."""
    return Query(max_length=MOST_CHARS, description=words, json_schema_extra=schema or None)


def names(words: str) -> Any:
    """A parameter that may be given several times."""
    return Query(default_factory=list, max_length=MOST_NAMES, description=f"{words}; may be given several times.")


Name = Annotated[str, StringConstraints(max_length=MOST_CHARS)]
Many = list[Name]


async def filters(
    *,
    since: Annotated[str, text("Start of the window: 2026-01-20 or 2026-01-20T08:30, UTC.", pattern=_INSTANT)] = "",
    until: Annotated[str, text("End of the window, written the same way.", pattern=_INSTANT)] = "",
    last: Annotated[
        str, text("Length of the window, up to its end: 7d, 24h, or all. Replaces `since`.", pattern=_LENGTH)
    ] = "",
    cluster: Annotated[Many, names("Cluster")],
    namespace: Annotated[Many, names("Namespace")],
    owner: Annotated[Many, names("Owner")],
) -> Filters:
    """The filters every address takes."""
    chosen = (tuple(name for name in given if name) for given in (cluster, namespace, owner))
    start, length = since.strip(), last.strip()
    if start and length:
        instant_ms(start)  # what is not a time is an error also where it is replaced
    return Filters("" if length else start, until.strip(), length, *chosen)


Chosen = Annotated[Filters, Depends(filters)]
By = Annotated[str, text("Owners to add up: team, namespace, user, job, account.", enum=["", *OWNERS])]
Find = Annotated[str, text("Text in a GPU's host, name, model, owner or class.")]
Sort = Annotated[str, text("Order: waste, paid, util, realized, idle, power (largest first), name.", enum=["", *SORTS])]
Device = Annotated[str, Path(max_length=MOST_CHARS, description="A GPU's UUID, with /INSTANCE for a MIG slice.")]
