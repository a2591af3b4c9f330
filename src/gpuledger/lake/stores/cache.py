"""Where on this machine are the copies of a bucket's files, and how do they stay few enough?

A file of a lake never changes under its name, so a copy is never out of date. The copies used longest ago go first;
those used within the last hour stay, since a statement may be reading them. Copies are believed as they are: their
folders belong to this user, and no other user may write there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import socket
import stat
import tempfile
import time
from pathlib import Path

from gpuledger.errors import InputError, map_os_error
from gpuledger.lake.stores.address import Address
from gpuledger.lake.stores.clients import endpoint_of
from gpuledger.lake.stores.folder import write_atomically

CACHE, SIZE = "GPULEDGER_CACHE", "GPULEDGER_CACHE_SIZE"
_SIZE_BYTES = 20 << 30
_IN_USE_S = 3600.0
# A time of use is noted no more often than this.
_NOTED_S = 600.0
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZED = re.compile(r"(\d{1,12})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_COPIES = ("samples", "ledger", "jobs", "rejects")


def cache_folder(address: Address) -> Path:
    """The folder with the copies of a lake's files."""
    own = os.environ.get(CACHE)
    base = Path(own) if own else _home("XDG_CACHE_HOME", ".cache") / "gpuledger"
    return base / "lakes" / _name(address)


def state_folder(address: Address) -> Path:
    """The folder with what this machine keeps for a lake and no other needs."""
    own = os.environ.get(CACHE)
    base = Path(own) / "state" if own else _home("XDG_STATE_HOME", ".local/state") / "gpuledger"
    return base / "lakes" / _name(address)


def _home(variable: str, below: str) -> Path:
    if given := os.environ.get(variable):
        return Path(given)
    home = Path.home()
    if os.access(home, os.W_OK):
        return home / below
    # Anyone can guess the name and make it first.
    shared = Path(tempfile.gettempdir()) / f"gpuledger-{os.getuid()}"
    return make_own(shared)


def make_own(folder: Path) -> Path:
    """Make a folder that only this user can change, or refuse one that is not."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        own = stat.S_ISDIR(found.st_mode) and {found.st_uid, folder.lstat().st_uid} == {os.getuid()}
        if own and found.st_mode & 0o022:
            folder.chmod(0o700)
    except OSError as error:
        raise map_os_error(error, folder, f"keep copies of the lake ({CACHE} names another folder)") from error
    if not own:
        words = f"{folder}: it would hold copies of the lake, but it belongs to another user, who could change them"
        raise InputError(words, hint=f"name a folder of your own: {CACHE}=DIR")
    return folder


def _name(address: Address) -> str:
    """One folder per lake and endpoint, which people can recognize."""
    mark = hashlib.sha256(f"{endpoint_of(address.scheme)} {address}".encode()).hexdigest()[:12]
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{address.bucket}-{address.key}").strip("-")[:60]
    return f"{address.scheme}-{words}-{mark}"


def machine_name(folder: Path) -> str:
    """A name for this machine as a user of these copies, the same until it is started anew."""
    file = folder / "machine"
    try:
        own = file.read_text().strip()
    except FileNotFoundError:
        write_atomically(file, secrets.token_hex(8).encode())
        own = file.read_text().strip()
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{own}-{socket.gethostname()}-{boot[:8]}"


def note_use(file: Path) -> bool:
    """Whether a copy is there; if so it counts as used now."""
    try:
        if time.time() - file.stat().st_mtime > _NOTED_S:
            os.utime(file)
    except FileNotFoundError:
        return False
    return True


def most_bytes() -> int:
    """How large the copies of one lake may grow."""
    given = os.environ.get(SIZE, "")
    found = _SIZED.fullmatch(given.strip()) if given else None
    if given and not found:
        raise InputError(f"{SIZE}={given!r} is not a size", hint=f"for example {SIZE}=20GB")
    return int(found[1]) * _UNITS[found[2].upper()] if found else _SIZE_BYTES


def trim(folder: Path) -> None:
    """Delete copies until they are few enough."""
    found = []
    for name in _COPIES:
        for file in (folder / name).rglob("*.*"):
            with contextlib.suppress(FileNotFoundError):
                stat = file.stat()
                found.append((stat.st_mtime, stat.st_size, file))
    total, most = sum(size for _, size, _ in found), most_bytes()
    for used, size, file in sorted(found):
        if total <= most or time.time() - used < _IN_USE_S:
            return
        file.unlink(missing_ok=True)
        total -= size
