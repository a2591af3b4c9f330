"""How do machines that share nothing but a bucket hand each other the files of an import?

LAKE/staging/work-NONCE/...    files on their way, deleted when the import is over

What a task leaves for another goes up under a name of its own, and comes down where it is wanted. What a killed import
has left there is swept by age.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuledger.errors import LakeError
from gpuledger.lake.handing import Desk
from gpuledger.lake.staging import clear_abandoned, work_folder
from gpuledger.lake.stores.bucket import bucket_of
from gpuledger.lake.stores.faults import gone
from gpuledger.lake.stores.folder import file_lock
from gpuledger.lake.stores.path import StorePath
from gpuledger.lake.stores.remote import Remote

_SEEN = "seen/by-all.json"
_WORK = re.compile("work-[0-9a-f]{16}")  # as `BucketDesk.new` names them; work folders of this machine have other names


class BucketDesk(Desk):
    """A desk whose files go through a bucket. `place`: where they are on their way, one for the whole import."""

    apart = True

    def __init__(self, here: Path, place: StorePath) -> None:
        super().__init__(here)
        self._place, self._bucket = place, bucket_of(place.address)

    @classmethod
    def new(cls, root: StorePath, here: Path) -> BucketDesk:
        """The desk of a new import into a lake."""
        return cls(here, root / "staging" / f"work-{secrets.token_hex(8)}")

    @property
    def name(self) -> str:
        """Where all files of this import are on their way."""
        return str(self._place)

    def seen_by_all(self) -> Path:
        """A small object."""
        seen = self._place / _SEEN
        seen.write_bytes(b'{"work":"%s"}' % self._place.name.encode())
        return seen

    def hand_over(self, files: Sequence[str]) -> list[str]:
        """Put files up; those that are there already, or were not written, keep their names."""
        own = [file for file in files if "://" not in file and Path(file).exists()]
        there = {file: self._place / secrets.token_hex(8) / Path(file).name for file in own}
        self._bucket.upload((Path(file), target.address.key) for file, target in there.items())
        return [str(there.get(file, file)) for file in files]

    def fetched(self, files: Sequence[str]) -> list[str]:
        """Bring files down that others have put up."""
        folder = self.here / "handed"
        folder.mkdir(exist_ok=True)
        wanted = {file: folder / secrets.token_hex(8) for file in files if "://" in file}
        missing = self._bucket.download((StorePath(file).address.key, copy) for file, copy in wanted.items())
        if missing:
            raise gone(StorePath(str(self._bucket.at(missing[0]))))
        return [str(wanted.get(file, file)) for file in files]

    def clear(self) -> None:
        """Delete all that is on its way; while the server is away it stays, for a later import to sweep."""
        with contextlib.suppress(LakeError):
            self._bucket.delete([entry.key for entry in self._bucket.below(self._place.address.key)])


@contextlib.contextmanager
def at_desk(place: StorePath) -> Iterator[BucketDesk]:
    """The desk of a task, with a folder on its machine that goes with it."""
    staging = _store_of(place).staging
    clear_abandoned(staging, lambda _moved: None)  # what tasks that were killed have left on this machine
    _clear_fetched(staging, place)
    with work_folder(staging) as here:
        yield BucketDesk(here, place)


def fetched_once(file: StorePath) -> Path:
    """A file to import, fetched once, however many tasks of this machine read pieces of it."""
    store = _store_of(file.parent.parent)
    with file_lock(store.aside(file).with_name("lock")):
        return store.local([file])[0]


def _clear_fetched(staging: Path, place: StorePath) -> None:
    """Delete the files to import that imports which are over have left on this machine."""
    for folder in staging.glob("work-*"):
        other = place.with_name(folder.name)
        if _WORK.fullmatch(folder.name) and other != place and not (other / _SEEN).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _store_of(work: StorePath) -> Remote:
    """The lake that work is in progress in."""
    return Remote(StorePath(work.parent.parent))
