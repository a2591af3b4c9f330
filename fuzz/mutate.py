"""How does a file become a hostile one? Cuts, flips, odd numbers, other encodings, nesting, packing; by a seed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa

# Cells and values that have broken parsers: numbers at and beyond every edge, digits that are not ASCII, marks of other
# formats, text that acts where it is shown, names that leave their folder.
TOKENS = [
    "", " ", "0", "-0", "-1", "1e400", "-1e400", "1e-400", "NaN", "nan", "inf", "-inf", "Infinity", "1e308",
    "1.7e308", "9" * 19, "9" * 400, "1" * 5000, "18446744073709551616", "-9223372036854775809", "2147483648", "0x",
    "0xZZ", "1_000", "٣", "１２", "²", "½", "1,5", "1.234.567", "0.1.2", "+5", "5 W", "100 %", "N/A", "[N/A]", "null",
    "None", "true", "9999-12-31T23:59:59Z", "0000-00-00", "0001-01-01T00:00:00Z", "2026-02-30", "1970-01-01",
    "253402300800", "-62135596801", "2026-03-29 02:30:00", "2026-10-25T02:30:00", "24:00:00",
    "2026-01-20T10:00:00+99:99", "\ufeff", "\x00", "\x1b[2J", "\u202e", "\u2028", "\x85", "\x1c", "\x0b", "=1+1",
    "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "\t=1", "<script>alert(1)</script>", "../../etc/passwd", "/etc/passwd",
    "..\\..\\x", "CON", "a" * 300, "a,b", 'a"b', '"', "'", "`", "\\", "{", "}", "[", "]", "[[", "${HOME}", "%s%n",
    "{0}", "{{7*7}}", "node[01-99999999]", "n[1-9][1-9][1-9][1-9][1-9][1-9]", "gpu:99999999999", "IDX:0-999999999",
    "gres/gpu=99999999999999999999", "GPU-" + "f" * 64, "# HELP", "# TYPE x gauge", "}", '{a="b"',
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DEPTHS = (50, 990, 100_000)
Change = Callable[[Random, bytes, Sequence[bytes]], bytes]


def mutated(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The data after one to four changes; `others`: what it may be spliced with."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choices(_CHANGES, _WEIGHTS)[0](rng, data, others)
    return data


def _token(rng: Random) -> bytes:
    return rng.choice(TOKENS).encode("utf-8", "surrogatepass")


def _flip(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    made = bytearray(data or b"\x00")
    for _ in range(rng.choice((1, 1, 2, 8))):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def _bytes(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.choice((1, 2, 4, 32))) + data[at + rng.choice((0, 1, 4)) :]


def _cut(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    return data[: rng.randint(0, len(data))]


def _without(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at + rng.randint(1, 64) :]


def _again(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    at, length = rng.randint(0, len(data)), rng.randint(1, 200)
    return data[:at] + data[at : at + length] * rng.choice((2, 2, 3, 50)) + data[at + length :]


def _insert(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + _token(rng) + data[at:]


def _number(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """One number, or all that are written alike, become another value."""
    found = list(_NUMBER.finditer(data[:200_000]))
    if not found:
        return _insert(rng, data, _others)
    place, new = rng.choice(found), _token(rng)
    if rng.random() < 0.15:
        return data.replace(place[0], new)
    return data[: place.start()] + new + data[place.end() :]


def _lines(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Lines swapped, doubled, dropped or joined; the header again further down."""
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(6)
    if what == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif what == 1:
        lines.insert(a, lines[b])
    elif what == 2:
        del lines[a]
    elif what == 3:
        lines.insert(a, lines[0])
    elif what == 4:
        lines[a] = lines[a] * rng.choice((2, 50))
    else:
        lines.insert(a, _token(rng) * rng.choice((1, 100, 3000)))
    return b"\n".join(lines)


def _cell(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """A cell of a table, also of its header, becomes another value; or a column comes twice, or is gone."""
    lines = data.split(b"\n")
    separator = max((b",", b";", b"\t", b"|", b" "), key=lines[0].count)
    at = rng.choice((0, rng.randrange(len(lines))))
    cells = lines[at].split(separator)
    place, what = rng.randrange(len(cells)), rng.randrange(8)
    if what == 0:
        cells.insert(place, rng.choice(cells))
    elif what == 1:
        del cells[place]
    elif what == 2:
        cells[place] = b'"' + cells[place]
    elif what == 3:
        new = _token(rng)
        table = [line.split(separator) for line in lines]
        for row in table[1:]:
            if place < len(row):
                row[place] = new
        return b"\n".join(separator.join(row) for row in table)
    else:
        cells[place] = _token(rng)
    lines[at] = separator.join(cells)
    return b"\n".join(lines)


def _ends(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Other line ends, or all three kinds mixed."""
    ends = rng.choice(([b"\r\n"], [b"\r"], [b"\n", b"\r\n", b"\r"], [b"\n\n"], [b"\x0b"], [b"\xc2\x85"]))
    return b"".join(line + rng.choice(ends) for line in data.split(b"\n"))


def _encoded(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    text = data.decode("utf-8", "replace")
    how = rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp1252", "utf-7"))
    return text.replace("1", "é1").encode(how, "replace") if how in ("latin-1", "cp1252") else text.encode(how)


def _spliced(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(list(others) or [data])
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _nested(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    depth, at = rng.choice(_DEPTHS), rng.randint(0, len(data))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"<a>", b"</a>"), (b"-", b"")))
    inner = data[at:] if rng.random() < 0.5 else b"1"
    return data[:at] + opening * depth + inner + closing * depth


def _packed(rng: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Packed with gzip or Zstandard, at times cut or flipped afterwards."""
    made = gzip.compress(data, 1, mtime=0) if rng.random() < 0.5 else pa.compress(data, "zstd", asbytes=True)
    return rng.choice((made, made, made[: rng.randint(0, len(made))], _flip(rng, made, ())))


def _leaf(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """JSON, one object or one a line, with a value replaced, dropped, doubled or moved."""
    try:
        lines = [json.loads(data)] if data[:1] in b"[{" else [json.loads(x) for x in data.splitlines() if x.strip()]
    except (ValueError, RecursionError):
        return _number(rng, data, others)
    if not lines:
        return data
    spot = rng.randrange(len(lines))
    lines[spot] = _changed(rng, lines[spot])
    return b"\n".join(json.dumps(line).encode() for line in lines)


def odd_value(rng: Random) -> Any:
    """A JSON value of any kind, where another was expected."""
    number = rng.choice(
        (0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, 1e-320, 0.5, float("nan"), float("inf"))
    )
    text = rng.choice(TOKENS).encode("utf-8", "replace").decode()
    return rng.choice(
        (
            None,
            True,
            False,
            number,
            number,
            number,
            text,
            text,
            text,
            [],
            {},
            [[]],
            {"": None},
            [None],
            [text, number],
            {text: number},
        )
    )


def _changed(rng: Random, value: Any) -> Any:  # noqa: PLR0911 - one kind of value after another
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        what = rng.randrange(8)
        if what == 0:
            return {k: v for k, v in value.items() if k != key}
        if what == 1:
            return value | {rng.choice((*value, *TOKENS[:8], "version", "__proto__")): odd_value(rng)}
        return value | {key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at, what = rng.randrange(len(value)), rng.randrange(8)
        if what == 0:
            return value[:at] + value[at + 1 :]
        if what == 1:
            return [*value[:at], value[at], *value[at:]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    return odd_value(rng)


_WEIGHED: list[tuple[Change, float]] = [
    (_number, 5), (_cell, 5), (_leaf, 5), (_lines, 3), (_insert, 3), (_flip, 2), (_bytes, 2), (_cut, 1.5),
    (_without, 2), (_again, 1.5), (_ends, 0.6), (_encoded, 0.6), (_spliced, 1.5), (_nested, 0.4), (_packed, 0.5),
]  # fmt: skip
_CHANGES, _WEIGHTS = [c for c, _ in _WEIGHED], [w for _, w in _WEIGHED]
