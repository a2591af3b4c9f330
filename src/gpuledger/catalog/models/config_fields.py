"""What does one field of a config.json hold, and is it what such a field may hold?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.catalog.files import parse_json
from gpuledger.errors import FactError, FileFault, map_os_error

MOST = 10**9
_OWN = "give the config.json the model came with, or add the field to it"


def read_json(file: Path) -> dict[str, Any]:
    """The file as one JSON object."""
    try:
        raw = parse_json(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise map_os_error(error, file, "read the model's configuration") from error
    except UnicodeDecodeError as error:
        raise FileFault(file, "not text, so not a config.json", hint="give the model's config.json") from error
    if not isinstance(raw, dict):
        raise FileFault(file, "does not hold a JSON object", hint="give the model's config.json")
    return raw


def _short(value: int) -> str:
    text = str(value)
    return text if len(text) <= 20 else f"a number of {len(text)} digits"


@dataclass(frozen=True)
class Fields:
    """The fields of one file; `names` says how files spell ours ("a|b": either), `defaults` what they omit."""

    path: str
    nested: str
    raw: Mapping[str, Any]
    names: Mapping[str, str]
    defaults: Mapping[str, Any]

    def spelled(self, name: str) -> str:
        """The field as the file spells it, with the part of the file it is in."""
        return f"{self.nested}{self._spellings(name)[0]}"

    def has(self, name: str) -> bool:
        """Whether the file, or its type's defaults, hold anything under this name."""
        return self._value(name) is not None

    def whole(self, name: str, default: int | None = None, *, least: int = 1, most: int = MOST) -> int:
        """A whole number from `least` to `most`."""
        value = self._value(name)
        value = default if value is None else value
        if value is None:
            raise self._wrong(name, "is missing")
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, f"{value!r} is not a whole number")
        if value < least:
            raise self._wrong(name, f"{value} is less than {least}")
        if value > most:
            raise self._wrong(name, f"{_short(value)} is more than any model has; at most {most:,} is read")
        return value

    def yes(self, name: str, *, default: bool | None = None) -> bool:
        """True or false."""
        value = self._value(name)
        value = default if value is None else value
        if value is None:
            raise self._wrong(name, "is missing")
        if not isinstance(value, bool):
            raise self._wrong(name, f"{value!r} is neither true nor false")
        return value

    def text(self, name: str) -> str:
        """A word."""
        value = self._value(name)
        if not isinstance(value, str):
            raise self._wrong(name, "is missing" if value is None else f"{value!r} is not a word")
        return value

    def numbers(self, name: str, *, needed: bool = False) -> tuple[int, ...]:
        """A list of whole numbers; an empty one where there is none."""
        value = self._value(name)
        if value is None and needed:
            raise self._wrong(name, "is missing")
        if not isinstance(value or [], list) or not all(isinstance(v, int) for v in value or []):
            raise self._wrong(name, f"{value!r} is not a list of whole numbers")
        return tuple(value or ())

    def words(self, name: str) -> tuple[str, ...]:
        """A list of words; an empty one where there is none."""
        value = self._value(name) or []
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self._wrong(name, f"{value!r} is not a list of words")
        return tuple(value)

    def classes(self) -> int:
        """How many classes a picture may be of: 0 where the file names none, a model without a head."""
        labels = self.raw.get("id2label")
        return len(labels) if isinstance(labels, dict) else self.whole("num_labels", 0, least=0)

    def _value(self, name: str) -> Any:
        spellings = self._spellings(name)
        found = (held.get(spelled) for held in (self.raw, self.defaults) for spelled in spellings)
        return next((value for value in found if value is not None), None)

    def _spellings(self, name: str) -> list[str]:
        return self.names.get(name, name).split("|")

    def _wrong(self, name: str, words: str) -> FactError:
        return FactError(self.path, self.spelled(name), words, hint=_OWN)
