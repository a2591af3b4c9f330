"""Which hosts and which GPUs does a cell of a scheduler's table name?"""

from __future__ import annotations

import re
from itertools import product

MOST_HOSTS = 100_000
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)-(\d+)")
# gres/gpu=4, gres/gpu:h100=4 (AllocTRES); gpu:4, gpu:h100:4 (GRES)
_TRES = re.compile(r"gres/gpu=(\d+)")
_TYPED = re.compile(r"gres/gpu:[^=,]+=(\d+)")
_GRES = re.compile(r"(?:^|[,\s=])(?:gres/)?gpu(?::[A-Za-z][^:,()\s]*)?:(\d+)")
_IDX = re.compile(r"IDX:([\d,\-]+)")
_NODES = re.compile(r"Nodes=(\S+)")
_INDEX = re.compile(r"(?:gpu|nvidia|card)?[ :]?(\d{1,3})", re.IGNORECASE)
_UUID = re.compile(
    r"(?:GPU|MIG)-[0-9A-Za-z/-]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|[0-9A-Za-z._-]*[A-Za-z][0-9A-Za-z._:-]*"
)


class WrongCell(Exception):
    """A cell that cannot be read; the text says why."""


def hosts_of(text: str) -> list[str]:
    """'node[01-03,07],login1' as its hosts, each once, in order."""
    found: dict[str, None] = {}
    for part in _split_outside(text.strip()):
        pieces = _BRACKETS.split(part)
        if any(c in "[]" for piece in pieces[::2] for c in piece):
            raise WrongCell(f"{text[:60]!r} is not a list of hosts")
        choices = [[p] if i % 2 == 0 else _numbers(p, text) for i, p in enumerate(pieces)]
        size = 1
        for choice in choices:
            size *= len(choice)
        if size + len(found) > MOST_HOSTS:
            raise WrongCell(f"{text[:60]!r} names more than {MOST_HOSTS:,} hosts")
        found |= dict.fromkeys("".join(parts) for parts in product(*choices))
    return [host for host in found if host]


def gpu_count(text: str) -> int | None:
    """The GPUs of an AllocTRES or GRES cell; 0 where it lists other things only, None where it is empty."""
    if not text.strip():
        return None
    for pattern in (_TRES, _TYPED, _GRES):
        if counts := pattern.findall(text):
            return sum(int(n) for n in counts)
    return 0


def gpus_of(text: str) -> list[str]:
    """The indices or UUIDs of a cell: '0', '0-3', '0,2', 'gpu0;gpu1', 'IDX:0-3', 'gpu:h100:4(IDX:0-3)', 'GPU-...'."""
    if indices := _IDX.findall(text):
        return [str(i) for part in indices for i in indices_of(part)]
    if "gpu:" in text or "gres/" in text:
        return []  # a kind and a number, without indices
    out: dict[str, None] = {}
    for word in re.split(r"[;,|\s]+", text.strip().strip("[]")):
        if not word:
            continue
        if _RANGE.fullmatch(word):
            out |= dict.fromkeys(str(i) for i in indices_of(word))
        elif index := _INDEX.fullmatch(word):
            out[str(int(index[1]))] = None
        elif _UUID.fullmatch(word):
            out[word] = None
        else:
            raise WrongCell(f"{word[:60]!r} is neither the index nor the UUID of a GPU")
    return list(out)


def gpus_by_host(text: str) -> dict[str, list[str]]:
    """'Nodes=n[1-2] ... GRES=gpu:4(IDX:0-3)' by host; {} where the cell does not name hosts."""
    places = [*_NODES.finditer(text)]
    out: dict[str, list[str]] = {}
    for place, after in zip(places, [*(p.start() for p in places[1:]), len(text)], strict=False):
        found = gpus_of(text[place.end() : after]) if _IDX.search(text, place.end(), after) else []
        out |= dict.fromkeys(hosts_of(place[1]), found)
    return out


def indices_of(text: str) -> list[int]:
    """'0,2-4' as numbers."""
    out: list[int] = []
    for part in filter(None, text.split(",")):
        found = _RANGE.fullmatch(part)
        if found is None and not part.isdecimal():
            raise WrongCell(f"{text[:60]!r} is not a list of GPU indices")
        first, last = (int(part), int(part)) if found is None else (int(found[1]), int(found[2]))
        if last - first > 1_000 or last < first:
            raise WrongCell(f"{text[:60]!r} is not a list of GPU indices")
        out += range(first, last + 1)
    return out


def _split_outside(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def _numbers(text: str, whole: str) -> list[str]:
    """'01-03,07' as texts of the width they are written in."""
    out: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None and not part.isalnum():
            raise WrongCell(f"{whole[:60]!r} is not a list of hosts")
        if found is None:
            out.append(part)
            continue
        first, last = int(found[1]), int(found[2])
        if last < first or last - first > MOST_HOSTS:
            raise WrongCell(f"{whole[:60]!r} is not a list of hosts")
        out += [str(i).zfill(len(found[1])) for i in range(first, last + 1)]
    return out
