"""Which columns fit a width, and what is in their cells?

The first columns are on every screen; the others come one after the other where there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rich.text import Text

from gpuledger.plain_text import visible
from gpuledger.tui.fleet import Condition, Figure, GpuNow, Waste
from gpuledger.tui.orders import Sort, owner_text
from gpuledger.units import GIB, Unknown, point_of

UNKNOWN = "?"
_BARS = " ▁▂▃▄▅▆▇█"
_LONGEST_OWNER = 24  # before further columns come
# Of what a GPU costs: from here on waste stands out.
_MUCH = Decimal("0.5")
# Unrated time that is less than this part of the waste is not marked.
_LITTLE, _CENT = Decimal("0.05"), Decimal("0.01")
_STYLES: dict[Condition, str] = {
    "matrix": "green", "vector": "green", "memory": "green", "capped": "cyan", "busy": "green", "light": "yellow",
    "waiting": "yellow", "idle": "red", "held": "bold red", "lost": "bold reverse red", "unknown": "dim",
    "reading": "dim", "no data": "dim",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column: how wide, what it shows, and what a click on its head sorts by."""

    title: str
    width: int
    cell: Callable[[GpuNow, int], Text]
    sort: Sort | None = None
    right: bool = True


def columns_for(width: int, gpus: Sequence[GpuNow]) -> tuple[Column, ...]:
    """The columns that fit, the owner taking what is left; names are cut where they are longer than a fifth."""
    alone = len({gpu.host for gpu in gpus}) <= 1
    names = max([3, *(len(_name(gpu, alone)) for gpu in gpus)])
    name = Column("GPU", min(names, max(12, width // 5)), _name_cell(alone), "name", right=False)
    room = width - sum(c.width + 1 for c in (name, *_ALWAYS)) - 1
    needed = max([_OWNER.width, *(len(owner_text(gpu)) for gpu in gpus)])
    wide = max(_OWNER.width, min(needed, room, _LONGEST_OWNER))
    more, left = [], room - wide
    for column in _WIDE:
        if column.width + 1 <= left:
            more.append(column)
            left -= column.width + 1
    wide += max(0, min(left, needed - wide))
    return (name, *_ALWAYS, replace(_OWNER, width=wide), *more)


def fitted(text: str, width: int) -> str:
    """A text in a width, cut in the middle: names of hosts differ at both ends."""
    shown = visible(text)
    if len(shown) <= width:
        return shown
    tail = (width - 1) // 2
    return f"{shown[: width - 1 - tail]}…{shown[len(shown) - tail :]}"


def spark(values: Sequence[float | None], width: int, top: float = 100.0) -> str:
    """The last values as bars; a hole where one is not known."""
    last = list(values)[-width:]
    return "".join(" " if v is None else _BARS[max(1, min(8, round(8 * v / top)))] for v in last).rjust(width)


def dollars(amount: Decimal | Unknown) -> str:
    """Dollars per hour; cents up to a hundred dollars."""
    if isinstance(amount, Unknown):
        return UNKNOWN
    return f"{amount:.2f}" if amount < 100 else f"{amount:.0f}"


def hides_more(waste: Waste) -> bool:
    """Whether so much of the time is unrated that the waste is only a lower bound."""
    more = waste.unrated_usd_per_h
    return more > max(_CENT / 2, _LITTLE * (waste.usd_per_h + more))


def waste_text(waste: Waste | Unknown) -> str:
    """Dollars per hour wasted; "+" where unrated time may hide more, unknown where it hides all there is."""
    if isinstance(waste, Unknown):
        return UNKNOWN
    least = dollars(waste.usd_per_h)
    if not hides_more(waste):
        return least
    return f"{least}+" if waste.usd_per_h >= _CENT / 2 else UNKNOWN


def number(figure: Figure, digits: int = 0) -> str:
    """A figure, or the mark of an unknown one."""
    return UNKNOWN if isinstance(figure, Unknown) else f"{figure:.{digits}f}"


def _name(gpu: GpuNow, alone: bool) -> str:
    """Without the machine where there is only one."""
    prefix = f"{gpu.host}/"
    return gpu.name.removeprefix(prefix) if alone and gpu.host else gpu.name


def _name_cell(alone: bool) -> Callable[[GpuNow, int], Text]:
    return lambda gpu, width: Text(fitted(_name(gpu, alone), width), "bold")


def _dim(text: str, style: str = "") -> Text:
    return Text(text, "dim" if text == UNKNOWN else style)


def _memory(gpu: GpuNow, _width: int) -> Text:
    used, whole = gpu.memory_used_bytes, gpu.memory_bytes
    if isinstance(used, Unknown):
        return _dim(UNKNOWN)
    return Text(f"{used / GIB:.0f}G" if isinstance(whole, Unknown) else f"{used / GIB:.0f}/{whole / GIB:.0f}G")


def _waste(gpu: GpuNow, _width: int) -> Text:
    text, rate = waste_text(gpu.waste), gpu.usd_per_h
    much = isinstance(gpu.waste, Waste) and isinstance(rate, Decimal) and gpu.waste.usd_per_h > _MUCH * rate
    return _dim(text, "bold red" if much else "")


def _realized(gpu: GpuNow, _width: int) -> Text:
    found = gpu.realized_pct
    return _dim(number(point_of(found)))


def _programs(gpu: GpuNow, width: int) -> Text:
    if isinstance(gpu.processes, Unknown):
        return _dim(UNKNOWN)
    names = [str(p.pid) if isinstance(p.program, Unknown) else p.program for p in gpu.processes]
    return Text(fitted(", ".join(dict.fromkeys(names)) or "-", width))


def _model(gpu: GpuNow, width: int) -> Text:
    return _dim(fitted((gpu.gpu_model or UNKNOWN).removeprefix("NVIDIA "), width))


_ALWAYS = (
    Column("UTIL%", 5, lambda g, _: _dim(number(g.util_pct)), "util"),
    Column("REAL%", 5, _realized, "realized"),
    Column("W", 4, lambda g, _: _dim(number(g.power_w)), "power"),
    Column("MEM", 8, _memory, "memory"),
    Column("STATE", 7, lambda g, _: Text(g.state, _STYLES[g.state]), "state", right=False),
    Column("$/H", 5, lambda g, _: _dim(dollars(g.usd_per_h)), "cost"),
    Column("WASTE", 6, _waste, "waste"),
)
_OWNER = Column("OWNER", 8, lambda g, width: Text(fitted(owner_text(g), width)), "owner", right=False)
_WIDE = (
    Column("RECENT", 20, lambda g, width: Text(spark(g.recent, width), "cyan"), right=False),
    Column("TEMP", 4, lambda g, _: _dim(number(g.temp_max_c))),
    Column("MHZ", 5, lambda g, _: _dim(number(g.clock_mhz))),
    Column("MODEL", 16, _model, right=False),
    Column("PROCESSES", 24, _programs, right=False),
)
