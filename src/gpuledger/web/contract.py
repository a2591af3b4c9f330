"""What passes between the process that serves and the one that makes? Filters, what is asked for, what was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from gpuledger.ledger.read.owners import By

State = Literal["loading", "empty", "ready", "error"]
Kind = Literal["page", "json", "metrics"]
# What owners may be added up by, and GPUs be sorted by, with the words for each order.
OWNERS = tuple(by.value for by in By)
SORTS = {
    "waste": "wasted", "paid": "paid", "util": "utilization", "realized": "realized", "idle": "idle", "power": "power",
    "name": "name",
}  # fmt: skip


@dataclass(frozen=True)
class Filters:
    """What a page is about: a window and owners, as the address names them."""

    since: str = ""
    until: str = ""
    last: str = ""
    cluster: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()


@dataclass(frozen=True)
class Where:
    """Where GPUs are, as far as samples leave it open, and a file of carbon intensities by hour; as --cloud, --at and
    --carbon name them.
    """

    cloud: str = ""
    at: str = ""
    carbon: str = ""


@dataclass(frozen=True)
class Status:
    """How the lake stands: which edition of its statements is shown, how old its newest sample is, what is wrong.

    A lake that was read and can no longer be is still `ready`, with the problem: its last figures are shown.
    """

    state: State
    edition: int
    newest_ms: int | None
    made_ms: int
    problem: str = ""
    hint: str = ""


class Ask(msgspec.Struct, frozen=True):
    """What an address asks for: a page by its path or figures by their name, the filters, and what else it takes."""

    kind: Kind
    name: str
    filters: Filters = Filters()
    params: tuple[tuple[str, str | int], ...] = ()


class View(msgspec.Struct, frozen=True):
    """A page or figures as they are sent, and the edition of the lake they are from."""

    edition: int
    body: bytes


class NotReady(Exception):
    """The lake is empty, or is read for the first time."""


class Maker(Protocol):
    """Makes views of a lake."""

    @property
    def status(self) -> Status:
        """How the lake stood when it was last looked at."""
        ...

    def refresh(self) -> bool:
        """Look whether the lake changed; whether there is news."""
        ...

    def view(self, ask: Ask) -> View:
        """What is asked for; a GpuledgerError where that cannot be given."""
        ...

    def close(self) -> None:
        """Make no more."""
        ...
