"""Does this name a folder or a place in an object store, and which?"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from gpuledger.errors import InputError

SCHEMES = ("s3", "gs", "az")
# Two letters at least: one would be a drive. A path has lost one of the two slashes, and both where nothing follows.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:/{1,2}(.*))?", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_EXAMPLE = "write it as s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER"
_UNSET = "was a variable in it not set?"


class Address(msgspec.Struct, frozen=True):
    """A place in a bucket; `key` is empty for the bucket as a whole and never starts or ends with a slash."""

    scheme: str
    bucket: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}" + (f"/{self.key}" if self.key else "")


def address_in(place: str | Path) -> Address | None:
    """The place in an object store that a text or a path names; None where it names a folder."""
    found = _ADDRESS.fullmatch(os.fspath(place))
    if found is None:
        return None
    scheme, rest = found[1].lower(), found[2] or ""
    text = f"{found[1]}://{rest}"
    if scheme not in SCHEMES:
        raise InputError(f"{text}: a lake cannot lie there: {scheme}:// is not known", hint=_EXAMPLE)
    bucket, _, key = rest.partition("/")
    key = key.strip("/")
    if not _BUCKET.fullmatch(bucket):
        raise InputError(f"{text}: it does not name a bucket", hint=_EXAMPLE if bucket else f"{_EXAMPLE}; {_UNSET}")
    if key and any(part in ("", ".", "..") or not part.isprintable() for part in key.split("/")):
        raise InputError(f"{text}: {key!r} cannot be a folder of a bucket", hint=_EXAMPLE)
    return Address(scheme, bucket, key)
