"""What does `rocm-smi --json` print?

An object per card with the names of the columns of `rocm-smi --csv`, all values as text; `system` is not a card. There
is no time. Older releases print identifiers (0x1002) for names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.amd_smi import ROCM
from gpuledger.telemetry.formats.json_text import documents, laid_out, plain
from gpuledger.telemetry.formats.logs import Row, Wrong

_MARK = re.compile(r'"card\d+"\s*:\s*\{')
_CARD = re.compile(r"card\d+")
_READINGS = tuple(source for rule in ROCM.values for source in rule.sources)
_ID, _MODEL, _MODELS = "Unique ID", "Card Series", ("Card Series", "Card series", "Device Name")


def _score(head: Head) -> Seen:
    """By the first card."""
    found = _MARK.search("\n".join(head.lines))
    return sure(found and found[0])


def _read(path: Path) -> Opened:
    return laid_out(path, "rocm-smi --json", _cards, lambda _: ROCM)


def _cards(path: Path) -> Iterator[Row | Wrong]:
    """The cards. Where an identifier is missing or that of several dies, their order tells them apart."""
    for document in documents(path):
        if isinstance(document, Wrong):
            yield document
        elif isinstance(document, dict):
            found = ((name, card) for name, card in document.items() if _CARD.fullmatch(name))
            cards = [_cells(name, card) for name, card in found if isinstance(card, dict)]
            told_apart = len({card.get(_ID) for card in cards} - {None}) == len(cards)
            yield from ({k: cell for k, cell in card.items() if told_apart or k != _ID} for card in cards)


def _cells(name: str, card: Mapping[str, Any]) -> dict[str, str]:
    """A card's readings and names; what is N/A is left out."""
    cells = {"device": name} | {key: plain(card.get(key)) for key in _READINGS}
    cells[_MODEL] = next((str(card[key]) for key in _MODELS if _is_name(card.get(key))), "")
    cells[_ID] = str(card.get(_ID) or "").replace("N/A", "")
    return {key: cell for key, cell in cells.items() if cell}


def _is_name(text: object) -> bool:
    return bool(text) and text != "N/A" and not str(text).startswith("0x")


FORMATS.register("rocm_smi_json")(Format("rocm-smi --json", Kind.TELEMETRY, _score, _read))
