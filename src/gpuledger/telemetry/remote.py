"""How do files get here from s3://, gs:// and http(s):// addresses?"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from gpuledger.errors import FileFault, MissingExtra

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SECRETS = re.compile(r"(?<=://)[^/]*@|\?.*")
_CHUNK_BYTES = 1 << 20
_WEB = ("http", "https")


def is_address(text: str) -> bool:
    """Whether this is an address rather than a path."""
    return bool(_ADDRESS.match(text))


def shown(address: str) -> str:
    """An address for messages: without user, password and query, which may hold secrets."""
    return _SECRETS.sub("", address)


def fetched(address: str, folder: Path) -> Iterator[tuple[Path, str, bool]]:
    """Each file of an address, copied into `folder`: path here, name for messages, whether it is one of many."""
    system, path = _system(address)
    scheme = address.partition("://")[0].lower()
    try:
        paths = _paths(system, path, scheme)
        for place, one in enumerate(paths):
            name = shown(address) if paths == [path] else f"{scheme}://{one}"
            last = unquote(PurePosixPath(urlsplit(one).path if scheme in _WEB else one).name) or "file"
            target = folder / f"{place:06d}" / last
            target.parent.mkdir(parents=True, exist_ok=True)
            with system.open(one, "rb") as remote, target.open("wb") as local:
                shutil.copyfileobj(remote, local, _CHUNK_BYTES)
            yield target, name, len(paths) > 1
    except Exception as error:
        raise _fault(address, scheme, error) from error


def _fault(address: str, scheme: str, error: BaseException) -> FileFault:
    """What went wrong with an address, in our words."""
    cause = error.__cause__ if isinstance(error, FileNotFoundError) else None  # over http it may hide anything
    if cause is not None and not isinstance(cause, FileNotFoundError) and getattr(cause, "status", None) != 404:
        error = cause
    if isinstance(error, FileNotFoundError):
        return FileFault(shown(address), "no such file", hint="check the address")
    if isinstance(error, PermissionError):
        return FileFault(shown(address), "access is denied", hint=_credentials(scheme))
    reason = shown(str(error).splitlines()[0] if str(error) else type(error).__name__)
    return FileFault(shown(address), f"cannot be read: {reason}", hint=_credentials(scheme))


def _system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    scheme = address.partition("://")[0].lower()
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtra(f"reading {scheme}:// addresses", "remote") from error
    try:
        system, path = url_to_fs(address)
    except ImportError as error:
        raise MissingExtra(f"reading {scheme}:// addresses", "remote") from error
    except ValueError as error:
        raise FileFault(
            shown(address), f"no kind of address starts with {scheme}://", hint="s3://, gs://, http:// and https:// are"
        ) from error
    return system, path


def _paths(system: Any, path: str, scheme: str) -> list[str]:
    """The files a path means: itself, those a pattern matches, or all below a folder."""
    if scheme in _WEB:
        return [path]
    if any(mark in path for mark in "*?["):
        return sorted(p for p in system.glob(path) if not system.isdir(p)) or [path]
    return sorted(system.find(path)) if system.isdir(path) else [path]


def _credentials(scheme: str) -> str:
    hints = {
        "s3": "check the address and the credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL)",
        "gs": "check the address and the credentials (gcloud auth application-default login)",
    }
    return hints.get(scheme, "open the address in a browser or with curl")
