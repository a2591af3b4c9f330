"""Which parts make up a lake, and when is a file that says so to be believed?"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from gpuledger.errors import LakeError

MANIFEST_VERSION = 1
_PART_NAME = re.compile(r"part-(\d{8,15})(?:-[0-9a-f]{12})?\.parquet")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_RESTORE = "restore the file from a backup"
# Two bytes per device; a part of more devices has no marks: most hosts find theirs in it anyway.
_MARK_BYTES = 2
_MOST_MARKED = 64


class Part(msgspec.Struct, frozen=True):
    """One Parquet file of one UTC day. `made_of` lists the parts it was merged from.

    `marks`: a short hash of each of its devices; empty where they are many or not known.
    """

    id: int
    day: str
    file: str
    rows: int
    first_ms: int
    last_ms: int
    first_device: str
    last_device: str
    made_of: tuple[int, ...] = ()
    marks: str = ""

    @property
    def place(self) -> str:
        """Its file, relative to the folder of samples."""
        return f"day={self.day}/{self.file}"

    def may_hold(self, devices: Sequence[str]) -> bool:
        """Whether samples of one of these devices, whose names are in order, may be in it."""
        if self.last_device < devices[0] or self.first_device > devices[-1]:
            return False
        if not self.marks:
            return True
        own = base64.b64decode(self.marks)
        marks = {own[i : i + _MARK_BYTES] for i in range(0, len(own), _MARK_BYTES)}
        return any(_mark(device) in marks for device in devices)


def marks_of(devices: Collection[str]) -> str:
    """The marks of a part with these devices."""
    if len(devices) > _MOST_MARKED:
        return ""
    return base64.b64encode(b"".join(sorted({_mark(device) for device in devices}))).decode()


def _mark(device: str) -> bytes:
    return hashlib.blake2b(device.encode(), digest_size=_MARK_BYTES).digest()


class Manifest(msgspec.Struct, frozen=True):
    """All parts of the lake, the next free id, the days closed to late samples, and replaced files not yet deleted.

    `replaced_at`: since when, in seconds of the server's clock, for files in a bucket.
    """

    version: int = MANIFEST_VERSION
    next_id: int = 1
    parts: tuple[Part, ...] = ()
    closed_before: str = ""
    replaced: tuple[str, ...] = ()
    replaced_at: dict[str, int] = {}

    def days(self) -> list[str]:
        """The days that have samples, in order."""
        return sorted({p.day for p in self.parts})

    def of_day(self, day: str) -> tuple[Part, ...]:
        """The parts of one day."""
        return tuple(p for p in self.parts if p.day == day)


class _Marks(msgspec.Struct):
    """What every manifest has: an empty object is not one."""

    version: int
    next_id: int | None = None
    parts: msgspec.Raw = msgspec.Raw(b"")


def part_name(number: int, nonce: str = "") -> str:
    """The file name of a part by its id. `nonce`: what keeps another writer from choosing the same."""
    return f"part-{number:08d}{nonce and '-'}{nonce}.parquet"


def part_number(name: str) -> int | None:
    """The id in a part's file name; None for a name that is not ours."""
    found = _PART_NAME.fullmatch(name)
    return int(found[1]) if found else None


def is_place(place: str) -> bool:
    """Whether this is where a part of a lake may lie, relative to the folder of samples."""
    folder, _, name = place.partition("/")
    return folder.startswith("day=") and is_day(folder.removeprefix("day=")) and part_number(name) is not None


def decode_manifest(file: Path, raw: bytes) -> Manifest:
    """A manifest as read from its file; refused where it is not whole."""
    try:
        marks = msgspec.json.decode(raw, type=_Marks)
        if marks.version > MANIFEST_VERSION:
            raise LakeError(
                f"{file}: format {marks.version} is newer than this gpuledger reads ({MANIFEST_VERSION})",
                hint="upgrade gpuledger",
            )
        if marks.version < 1 or marks.next_id is None or not bytes(marks.parts):
            raise LakeError(f"{file}: not a manifest: it lacks 'version', 'next_id' or 'parts'", hint=_RESTORE)
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LakeError(f"{file}: not a manifest: {error}", hint=_RESTORE) from error
    _check(file, manifest)
    return manifest


def _check(file: Path, manifest: Manifest) -> None:
    for day in {*manifest.days(), *filter(None, (manifest.closed_before,))}:
        if not is_day(day):
            raise LakeError(f"{file}: {day!r} is not a day (YYYY-MM-DD)", hint=_RESTORE)
    wrong = [p.place for p in manifest.parts if _PART_NAME.fullmatch(p.file) is None]  # their days are checked above
    for place in (*wrong, *(r for r in manifest.replaced if not is_place(r))):
        raise LakeError(f"{file}: {place!r} is not the file of a part", hint=_RESTORE)


def is_day(text: str) -> bool:
    """Whether this is a day as folders are named: YYYY-MM-DD."""
    try:
        return _DAY.fullmatch(text) is not None and bool(dt.date.fromisoformat(text))
    except ValueError:
        return False
