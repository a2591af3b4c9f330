"""How is a look at the fleet written: head, price line, plain table, charts of one GPU's history?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from rich.text import Text

from gpuledger.cost.pricing import PriceUsed
from gpuledger.plain_text import visible
from gpuledger.tui.columns import UNKNOWN, Column, columns_for, dollars, hides_more, number, waste_text
from gpuledger.tui.fleet import Fleet, GpuNow, Waste, boards, totals
from gpuledger.tui.orders import Sort, ordered
from gpuledger.tui.sources import History
from gpuledger.units import MS_PER_S, Range, Unknown, count, utc

_BASES = {
    "inventory": "inventory", "given": "as given", "yours": "your rate", "instance": "list price",
    "market": "market median",
}  # fmt: skip
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_AXIS = 7  # characters left of a chart


def head(fleet: Fleet, shown: Sequence[GpuNow]) -> Text:
    """Two lines: what is looked at, and what the GPUs that a filter leaves come to."""
    total, all_of = totals(shown), boards(fleet.gpus)
    many = count(all_of, "GPU") if len(shown) == len(fleet.gpus) else f"{total.gpus:,} of {count(all_of, 'GPU')}"
    if total.rows != total.gpus:
        many += f" ({count(total.rows, 'row')})"
    lost = sum(gpu.state == "lost" for gpu in shown)
    many += f", {lost:,} lost" if lost else ""
    short = fleet.window_s < 120
    window = f"{fleet.window_s:.0f} s" if short else f"{fleet.window_s / 60:.0f} min"
    when = f"{utc(fleet.at_ms):{'%Y-%m-%d %H:%M:%S' if short else '%Y-%m-%d %H:%M'}} UTC"
    first = f"{visible(fleet.source)}  {many}  average of {window} to {when}"
    out = Text(first, no_wrap=True, overflow="ellipsis")
    if not shown:
        return out
    out.append("\n")
    out.append(f"util {_pct(total.util_pct)}  realized {_pct(total.realized_pct)}  {number(total.power_w)} W  ")
    priced = f" for {total.priced:,}/{total.gpus:,}" if 0 < total.priced < total.gpus else ""
    return out.append_text(_money(total.usd_per_h, total.waste, priced))


def _pct(figure: float | Unknown) -> str:
    return UNKNOWN if isinstance(figure, Unknown) else f"{figure:.0f} %"


def _money(rate: Decimal | Unknown, waste: Waste | Unknown, priced: str) -> Text:
    if isinstance(rate, Unknown):
        return Text("price unknown: set it with --price", "dim")
    out = Text(f"${dollars(rate)}/h", "bold").append(priced, "not bold")
    if isinstance(waste, Unknown) or waste_text(waste) == UNKNOWN:
        return out.append("  waste unknown", "dim")
    share = f" ({100 * waste.usd_per_h / rate:.0f} %)" if rate else ""
    least = "+" if hides_more(waste) else ""
    style = "bold red" if waste.usd_per_h else ""
    return out.append("  wasted ").append(f"${dollars(waste.usd_per_h)}{least}/h{share}", style)


def price_line(prices: Sequence[PriceUsed]) -> str:
    """What each price rests on and how old it is, in a few words."""
    found: dict[tuple[str, str | None], list[PriceUsed]] = {}
    for price in prices:
        found.setdefault((price.basis, price.newest), []).append(price)
    return "; ".join(_prices(basis, newest, members) for (basis, newest), members in found.items())


def _prices(basis: str, newest: str | None, prices: Sequence[PriceUsed]) -> str:
    each = [f"{visible(p.gpu_model or 'GPU').removeprefix('NVIDIA ')} ${p.usd_per_h:.2f}/h" for p in prices]
    words = f"{', '.join(dict.fromkeys(each))}, {_BASES.get(basis, basis)}" + (f" of {newest}" if newest else "")
    low, high = prices[0].low_usd_per_h, prices[0].high_usd_per_h
    return words if len(prices) > 1 or low == high else f"{words} (${low:.2f} to ${high:.2f})"


def cells(gpu: GpuNow, columns: Sequence[Column]) -> list[Text]:
    """One row; each cell as wide as its column."""
    out = []
    for column in columns:
        cell = column.cell(gpu, column.width)
        cell.truncate(column.width)
        (cell.pad_left if column.right else cell.pad_right)(column.width - cell.cell_len)
        out.append(cell)
    return out


def titles(columns: Sequence[Column]) -> list[str]:
    """The heads, aligned as the cells."""
    return [c.title.rjust(c.width) if c.right else c.title.ljust(c.width) for c in columns]


def table(fleet: Fleet, width: int, sort: Sort, text: str = "") -> Iterator[Text]:
    """The whole look as lines: for --once and for pipes."""
    shown = ordered(fleet.gpus, sort, text)
    yield from head(fleet, shown).split("\n")
    yield Text("")
    if not shown:
        yield Text(nothing(fleet, text))
        return
    columns = columns_for(width, fleet.gpus)
    yield Text(" ".join(titles(columns)).rstrip(), "bold")
    for gpu in shown:
        line = Text(" ").join(cells(gpu, columns))
        line.rstrip()
        yield line
    for note in (price_line(fleet.prices), *(visible(note) for note in fleet.notes)):
        if note:
            yield Text("")
            yield Text(note, "dim")


def nothing(fleet: Fleet, text: str) -> str:
    """Why no GPU is shown."""
    if not fleet.gpus:
        return "no GPU has samples in this window"
    return f"none of {count(boards(fleet.gpus), 'GPU')} matches {visible(text)!r}"


def facts(gpu: GpuNow) -> Iterator[tuple[str, str]]:
    """Everything about one GPU that has no column, or more to say than a cell holds; a reason is given once."""
    whys, said = {figure.why for figure in vars(gpu).values() if isinstance(figure, Unknown)}, set()
    for title, text in _facts(gpu):
        for why in whys:
            first, found, rest = text.partition(why)
            if found:
                head = "" if why in said else first + found
                text = head + _without(rest if head else text, why)  # noqa: PLW2901
                said.add(why)
        yield title, text


def _without(text: str, why: str) -> str:
    return text.replace(f" ({why})", "").replace(f": {why}", "")


def _facts(gpu: GpuNow) -> Iterator[tuple[str, str]]:
    yield "GPU", f"{gpu.gpu_model or 'model unknown'}, {gpu.device}"
    yield "state", gpu.state
    found = gpu.realized_pct
    if isinstance(found, Range):
        note = f"; {found.note}" if found.note else ""
        between, point = f"{found.low:.1f} to {found.high:.1f}", found.point
        share = f"{between} %" if isinstance(point, Unknown) else f"{point:.1f} %"
        more = "" if isinstance(point, Unknown) else f" ({between})"
        yield "realized", f"{share} of the dense peak{more}{note}"
    else:
        yield "realized", f"unknown: {found.why}"
    yield "power", f"{_unit(gpu.power_w, 'W')} of {_unit(gpu.limit_w, 'W')}"
    yield "clock", f"{_unit(gpu.clock_mhz, 'MHz')}, peak {_unit(gpu.temp_max_c, '°C')}"
    yield "price", _price_facts(gpu)
    yield "waste", _waste_facts(gpu.waste)
    yield "owner", ", ".join(gpu.owners) or "none: no process or label names one"


def _unit(figure: float | Unknown, unit: str) -> str:
    return f"unknown ({figure.why})" if isinstance(figure, Unknown) else f"{figure:.0f} {unit}"


def _price_facts(gpu: GpuNow) -> str:
    return f"unknown: {gpu.usd_per_h.why}" if isinstance(gpu.usd_per_h, Unknown) else gpu.price


def _waste_facts(waste: Waste | Unknown) -> str:
    if isinstance(waste, Unknown):
        return f"unknown: {waste.why}"
    unrated = waste.unrated_usd_per_h
    more = f"; ${unrated:.2f}/h more cannot be rated" if unrated >= Decimal("0.005") else ""
    return f"${waste.usd_per_h:.2f}/h stalled, underused or idle{more}"


def chart(values: Sequence[float | None], width: int, height: int, top: float) -> list[str]:
    """Bars over time, the newest on the right; nothing where a value is not known."""
    last = list(values)[-width:]
    levels = [None if v is None else max(1, min(8 * height, round(8 * height * v / top))) for v in last]
    rows = []
    for row in reversed(range(height)):
        bars = (" " if v is None else _EIGHTHS[max(0, min(8, v - 8 * row))] for v in levels)
        rows.append("".join(bars).rjust(width))
    return rows


def charts(history: History, limit_w: float | Unknown, width: int, height: int = 3) -> Iterator[str]:
    """Utilization, realized share and power of one GPU over time."""
    points = history.points
    if not points:
        yield "nothing yet: the first point comes with the next update"
        return
    series = (
        ("utilization, %", [p.util_pct for p in points], 100.0),
        ("realized share of the dense peak, %", [p.realized_pct for p in points], 100.0),
        ("power, W", [p.power_w for p in points], None if isinstance(limit_w, Unknown) else limit_w),
    )
    for title, values, most in series:
        known = [v for v in values if v is not None]
        if known:
            top = most or max(*known, 1.0)
            yield f"{title}: now {known[-1]:.0f}, {min(known):.0f} to {max(known):.0f}"
            for row, bars in enumerate(chart(values, width - _AXIS, height, top)):
                mark = f"{top:.0f}" if row == 0 else "0" if row == height - 1 else ""
                yield f"{mark:>{_AXIS - 2}} │{bars}"
    shown = points[-(width - _AXIS) :]
    length_s = (shown[-1].at_ms - shown[0].at_ms) / MS_PER_S
    length = count(len(shown), "hour") if history.hourly else _length(length_s)
    yield f"the last {length}, to {utc(shown[-1].at_ms):%Y-%m-%d %H:%M:%S} UTC"


def _length(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
