"""Which files does the user mean: a file, a folder, a pattern, or an address such as s3://bucket/logs?"""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from gpuledger.errors import FileFault, InputError, MissingExtra, NotSaid, UnknownKind
from gpuledger.telemetry.formats import Fit, recognize
from gpuledger.telemetry.mapping import NOTHING_GIVEN, Given, Mapping, bind
from gpuledger.telemetry.mapping.shape import open_shaped

_MOST_NAMED = 10


class Found(msgspec.Struct, frozen=True):
    """A file to read; `name`: what the user knows it by. `among_others`: it was found in a folder, not named."""

    path: Path
    name: str
    among_others: bool = False


def find_files(items: Iterable[str | Path], folder: Path) -> Iterator[Found]:
    """The files that are meant; those from addresses are copied into `folder`."""
    for place, item in enumerate(items):
        if isinstance(item, str) and is_address(item):
            for path, name, among in fetched(item, folder / str(place)):
                yield Found(path, name, among)
        else:
            named = [] if os.path.lexists(item) else sorted(glob.glob(str(item), recursive=True))  # noqa: PTH207
            for path in map(Path, named or [str(item)]):
                is_folder = os.path.isdir(path)  # noqa: PTH112 - one that may not be looked at is read, and refused
                yield from _within(path) if is_folder else [Found(path, str(path), among_others=len(named) > 1)]


def _within(folder: Path) -> Iterator[Found]:
    """The files of a folder and those below it, in order; hidden ones are left alone. Of a lake, its samples."""
    if (folder / "manifest.json").is_file() and (folder / "samples").is_dir():
        folder = folder / "samples"
    files = sorted(f for f in folder.rglob("*") if f.is_file())
    shown = [f for f in files if not any(part.startswith(".") for part in f.relative_to(folder).parts)]
    if not shown:
        hint = f"name one with files, or the files themselves, for example {folder}/*.parquet"
        raise FileFault(folder, "it is a folder without files", hint=hint)
    yield from (Found(file, str(file), among_others=True) for file in shown)


@contextmanager
def as_the_user_names_them(found: Sequence[Found]) -> Iterator[None]:
    """Name files in faults as the user knows them, not by the copy that was read."""
    try:
        yield
    except InputError as error:
        for one in found:
            error.message = error.message.replace(str(one.path), one.name)
        raise


class Strangers:
    """Files of folders that are not telemetry: named in notes, and a fault only where nothing else was there."""

    def __init__(self, mapping: Mapping | None = None, given: Given = NOTHING_GIVEN) -> None:
        self._mapping, self._given = mapping, given
        self._why: dict[str, str] = {}
        self._known = 0

    def is_one(self, found: Found) -> bool:
        """Whether the file is passed over."""
        why = self._fault(found) if found.among_others else None
        if why is None:
            self._known += 1
            return False
        self._why[found.name] = why
        return True

    def _fault(self, found: Found) -> str | None:
        """Why nothing suggests that the file is telemetry; None where something does, whatever is wrong with it."""
        sure = Fit.NO
        try:
            sure = recognize(found.path).seen.fit
            opened = open_shaped(found.path, self._mapping)
            bind(found.path, opened.names, self._mapping or opened.mapping, self._given)
        except UnknownKind as error:
            return error.message.removeprefix(f"{found.path}: ")
        except NotSaid:
            return None
        except FileFault as error:  # text that is a table at most, and does not open as one
            return None if sure is Fit.SURE else error.message.removeprefix(f"{found.path}: ")
        return None

    def notes(self) -> list[str]:
        """One note per file passed over; a fault where none was read."""
        if self._why and not self._known:
            name, why = next(iter(self._why.items()))
            raise InputError(
                f"none of {len(self._why)} files is telemetry; the first, {name}: {why}",
                hint="gpuledger import FILE names one file and says what it lacks",
            )
        shown = [f"{name}: not imported: {why}" for name, why in list(self._why.items())[:_MOST_NAMED]]
        more = len(self._why) - len(shown)
        return [*shown, *([f"{more} more files were not imported"] if more else [])]


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
            last = local_name(urlsplit(one).path if scheme in _WEB else one)
            target = folder / f"{place:06d}" / last
            target.parent.mkdir(parents=True, exist_ok=True)
            with system.open(one, "rb") as remote, target.open("wb") as local:
                shutil.copyfileobj(remote, local, _CHUNK_BYTES)
            yield target, name, len(paths) > 1
    except Exception as error:
        raise _fault(address, scheme, error) from error


def local_name(path: str) -> str:
    """The last part of an object's path as the name of its copy: nothing in it may lead out of the folder."""
    name = PurePosixPath(unquote(path).replace("\\", "/").replace("\x00", "")).name
    return name.encode()[-200:].decode(errors="ignore") if name not in ("", "..") else "file"


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
