"""How is a small versioned JSON file next to the samples read and replaced? One type per file, `version` in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from gpuledger.bounds import read_whole
from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.layout import write_atomically

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Versioned(Protocol):
    """What has a version."""

    @property
    def version(self) -> int:
        """The version of the file's shape."""


Kind = TypeVar("Kind", bound=Versioned)


def file_name(text: str) -> str:
    """A name from outside as part of a file name."""
    return _UNSAFE.sub("_", text)[:100] or "run"


def read_json(file: Path, kind: type[Kind], newest: int, what: str, hint: str = "delete the file") -> Kind:
    """The file, checked whole. `what` it is; `hint`: what to do if it is not that."""
    try:
        found = msgspec.json.decode(read_whole(file), type=kind)
    except OSError as error:
        raise map_os_error(error, file, f"read {what}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LakeError(f"{file}: not {what}: {error}", hint=hint) from error
    if found.version > newest:
        raise LakeError(f"{file}: written by a newer gpuledger", hint="upgrade gpuledger")
    return found


def encoded(content: Versioned) -> bytes:
    """The content as its file has it."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def write_json(file: Path, content: Versioned, what: str) -> Path:
    """Write or replace the file, whole or not at all."""
    try:
        write_atomically(file, encoded(content))
    except OSError as error:
        raise map_os_error(error, file, f"write {what}") from error
    return file
