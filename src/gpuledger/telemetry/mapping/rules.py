"""What may a mapping file say?"""

from __future__ import annotations

import msgspec

# What the cells of a reading may hold instead of numbers.
PARSE_KINDS = {
    "mig_profile": "a MIG profile such as 3g.40gb, read as its share of the board (for slice_ratio)",
    "hex": "a bit mask such as 0x0000000000000004 (for throttle_bits and other whole numbers)",
}
# What epoch numbers may count, in milliseconds.
EPOCH_UNITS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
# What only the user may know, and how to say it.
ASKS = {
    "time": "--at TIME",
    "date": "--at DATE",
    "start": "--at TIME",
    "every": "--every LENGTH",
    "host": "--host NAME",
    "gpu_model": "--gpu-model NAME",
}


class TimeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the instant stands and how it may be written; ISO 8601 and epoch numbers are always read.

    `join`: columns that make one text together, such as a date and a time. `unit`: of epoch numbers; without one it
    follows from their size. `clock`: columns that hold the time of day only. `elapsed`: columns that count seconds from
    a start that only the user knows.
    """

    sources: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    join: tuple[str, ...] = ()
    unit: str = ""
    clock: tuple[str, ...] = ()
    elapsed: tuple[str, ...] = ()

    @property
    def joined(self) -> str:
        """The name of the column that joining makes; empty without one."""
        return " + ".join(self.join)


class ValueRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading: the source names it may have, and how its numbers get to the schema's unit.

    `unit`: what bare numbers are in. A cell with a unit of its own is read in that one. `parse`: what the cells hold
    instead of numbers. `plus`: another source, in the same unit, without which the reading is not whole. `share_with`:
    the source may hold a share or percent; it is a share in rows where one of these is filled.
    """

    column: str
    sources: tuple[str, ...]
    multiply: float = 1.0
    divide: float = 1.0
    parse: str = ""
    unit: str = ""
    plus: str = ""
    share_with: tuple[str, ...] = ()


class WideRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns that hold several GPUs in one row, such as `gpu0_power`: `gpu{gpu_index}_{reading}`."""

    pattern: str


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping file: how one layout of telemetry is read.

    `file`: where a user's own one is from. `own_rules`: how many of its values it has itself, before those it includes.
    `labels`: by schema column the source columns it may stand in, the first filled cell of a row counting.
    `exporter_pods`: names of the exporter's own pods, which hold no GPU. `not_needed`: patterns of columns and metrics
    that are known and hold nothing that is read. `every`: how far rows of a GPU are apart where the tool was not asked
    otherwise. `kept`: columns of what a GPU never changes, such as its total memory.
    """

    name: str = ""
    title: str = ""
    detect: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    time: TimeRule = TimeRule()
    labels: dict[str, tuple[str, ...]] = {}
    values: tuple[ValueRule, ...] = ()
    ignored: tuple[str, ...] = ()
    not_needed: tuple[str, ...] = ()
    includes: str = ""
    constants: dict[str, str | int | float] = {}
    asks: tuple[str, ...] = ()
    every: str = ""
    blank_from: float = float("inf")
    blank_text: tuple[str, ...] = ("",)
    exporter_pods: tuple[str, ...] = ()
    wide: WideRule | None = None
    kept: tuple[str, ...] = ()
    file: str = ""
    own_rules: int = 0
