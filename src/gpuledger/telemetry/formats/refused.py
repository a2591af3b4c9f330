"""What do tools print that holds no samples of GPUs, and which command gives them instead?

Each is a format too: what the first lines show, what the file is, and a way out that works (refused.toml). The corpus
in tests has one file of each and runs its way out.
"""

from __future__ import annotations

import re
from functools import partial

import msgspec

from gpuledger.catalog.files import load_toml
from gpuledger.settings import data_dir
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Seen

SHOWN_CHARS = 40


class Refused(msgspec.Struct, frozen=True):
    """A format that is refused. All of `has` and a match of each of `marks` stand in the first lines, none of `never`.

    `way`: a way out that several share; `close`: the marks are no proof.
    """

    name: str
    what: str
    way_out: str = ""
    marks: tuple[str, ...] = ()
    way: str = ""
    has: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    close: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    ways: dict[str, str]
    formats: dict[str, Refused]


def _score(one: Refused, head: Head) -> Seen:
    text = "\n".join(head.lines)
    if not text or not all(word in text for word in one.has):
        return NOT_SEEN
    found = [re.search(mark, text, re.MULTILINE) for mark in one.marks]
    if not all(found) or any(re.search(mark, text, re.MULTILINE) for mark in one.never):
        return NOT_SEEN
    shown = [" ".join(m[0].split())[:SHOWN_CHARS] for m in found if m] or one.has
    return Seen(Fit.LIKELY if one.close else Fit.SURE, f"the text {', '.join(map(repr, shown))}")


_FILE = load_toml(data_dir(__package__, "refused.toml"), _File)
WAYS = _FILE.ways
for _key, _one in _FILE.formats.items():
    _way = _one.way_out or WAYS[_one.way]
    FORMATS.register(_key)(Format(_one.name, Kind.REFUSED, partial(_score, _one), what=_one.what, way_out=_way))
