"""What must a GPU answer so that the sampler can record it, and which drivers are there?

A driver is one module of this room (or an entry point of another package, see registry.py) that registers itself in
DEVICES. A user names it by its name, with what it opens after a colon: nvml, amd, replay:FILE.

A device offers fields. Reading a field is one call of the driver that fills one or more columns of the schema.
`fast` fields are cheap and read on every tick; `slow` ones once a second; `rare` ones every ten seconds.
A `level` holds from its reading on, a `counter` grows, a `mean` covers the time since it was read last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gpuledger.devices.clock import Clock
from gpuledger.errors import InputError
from gpuledger.registry import Registry

Value = float | int | None
Row = tuple[Value, ...]
Rate = Literal["fast", "slow", "rare"]
Kind = Literal["level", "counter", "mean"]
Judgement = Literal["unsupported", "lost", "passing"]

# The two readings that tell a new observation from a repeated one.
WATCHED = ("gpu_util_ratio", "power_w")
TRY_REPLAY = "to try gpuledger without a GPU: --device replay:FILE"


@dataclass(frozen=True)
class Facts:
    """Who a device is. `gpu_instance_id` and `slice_ratio` are None for a whole board."""

    index: int
    gpu_uuid: str
    gpu_model: str | None
    gpu_instance_id: str | None = None
    slice_ratio: float | None = None
    other_names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The board, and the MIG instance where there is one: the name the lake sorts by."""
        return f"{self.gpu_uuid}/{self.gpu_instance_id}" if self.gpu_instance_id else self.gpu_uuid


@dataclass(frozen=True)
class Field:
    """One call of the driver and the columns it fills, in the schema's units."""

    columns: tuple[str, ...]
    read: Callable[[], Sequence[Value]]
    rate: Rate
    kind: Kind = "level"


@dataclass(frozen=True)
class Verdict:
    """What an error means: the device never has the field, the device is gone, or this reading failed."""

    judgement: Judgement
    why: str


@dataclass(frozen=True)
class Held:
    """A process that holds a device, by the number the driver knows it by; the memory is None where not known."""

    pid: int
    memory_bytes: int | None = None


class Device:
    """One GPU or MIG instance.

    `fields`: what it may be asked. `absent`: columns it is known not to fill, and why; a field that fills columns one
    by one may add to it. `files`: how the paths of the files begin that every process on the device has open; empty
    where that is unknown.
    """

    facts: Facts
    fields: Sequence[Field]
    absent: dict[str, str]
    files: Sequence[str] = ()

    def judge(self, error: Exception) -> Verdict:
        """What an error raised by a reading means for the field and the device."""
        raise NotImplementedError

    def holders(self) -> Sequence[Held]:
        """The processes that hold the device now."""
        raise NotImplementedError

    def processes(self) -> list[int]:
        """The numbers of these processes."""
        return [h.pid for h in self.holders()]

    def close(self) -> None:
        """Give back what the driver lent."""


class Source(Protocol):
    """A driver: its name and version in words, all devices of the host in its order, and what the user should know."""

    @property
    def driver(self) -> str: ...

    @property
    def devices(self) -> Sequence[Device]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    def close(self) -> None:
        """Let the driver go."""
        ...


@dataclass(frozen=True)
class Driver:
    """How a kind of device is opened. `takes`: what follows the name after a colon, in capitals; empty for nothing."""

    open: Callable[[str, Clock | None], Source]
    takes: str = ""


DEVICES: Registry[Driver] = Registry("device", "gpuledger.devices")


def find_driver(spec: str) -> tuple[Driver, str]:
    """The driver a user named, and what it is to open; nothing is opened."""
    name, _, rest = spec.partition(":")
    driver = DEVICES.get(name)
    if bool(rest) != bool(driver.takes):
        hint = f"write {name}:{driver.takes}" if driver.takes else f"write {name} alone"
        raise InputError(f"device {spec!r} cannot be opened", hint=hint)
    return driver, rest


def open_device(spec: str, clock: Clock | None = None) -> Source:
    """The source of devices a user named, such as nvml, amd or replay:FILE."""
    driver, rest = find_driver(spec)
    return driver.open(rest, clock)
