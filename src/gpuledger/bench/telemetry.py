"""How is the hardware recorded during a run, on this machine or where a worker is?"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from gpuledger.errors import GpuledgerError
from gpuledger.lake.layout import Lake, Part
from gpuledger.recording.record import Recording
from gpuledger.units import Unknown

Packed = tuple[tuple[str, bytes], ...]


class RunRecording:
    """A recording of the GPUs during a run. Without a GPU or a driver the run goes on and `lake` says why."""

    def __init__(self, lake: Path, device: str, hz: float, labels: Mapping[str, str], *, of_job: bool) -> None:
        self.lake: Path | Unknown = Unknown("telemetry was switched off")
        self.facts: dict[str, object] = {}
        self.problem = ""
        self._recording: Recording | None = None
        if not device:
            return
        try:
            self._recording = found = Recording(lake, hz=hz, labels=labels, device=device, of_job=of_job).start()
            names = [d.facts.gpu_model or "no model name" for d in found.devices]
            self.facts = {"driver": found.notes().driver, "gpus": names}
        except GpuledgerError as error:
            self.lake = Unknown(error.message)
        else:
            self.lake = lake

    def stop(self) -> None:
        """When this returns, every sample is in the lake, or `problem` says what is missing."""
        if self._recording is None:
            return
        try:
            words = self._recording.stop().words()
        except GpuledgerError as error:
            words = [error.message]
        self.problem = "; ".join(words)


def unpack(lake: Lake, parts: Iterable[tuple[str, bytes]]) -> int:
    """Add parts that were recorded on another machine; how many rows they have."""
    with lake.locked(), lake.staging() as folder:
        staged = []
        for number, (facts, raw) in enumerate(parts):
            file = folder / f"{number}.parquet"
            file.write_bytes(raw)
            staged.append((file, msgspec.structs.replace(msgspec.json.decode(facts, type=Part), made_of=())))
        if staged:
            lake.commit(staged)
    return sum(part.rows for _, part in staged)


class WorkerRecording:
    """A recording on the machine of a worker, fetched when it ends. Of several workers there, the first records."""

    def __init__(self, run: str, device: str, hz: float, labels: Mapping[str, str]) -> None:
        self._file = Path(tempfile.gettempdir()) / f"gpuledger-bench-{run}.lock"
        # The temporary folder is shared: links in it are not followed, and `run` cannot be guessed.
        self._lock = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            device = ""
        self._folder = tempfile.TemporaryDirectory(prefix="gpuledger-bench-")
        self._recording = RunRecording(Path(self._folder.name) / "lake", device, hz, labels, of_job=False)
        self.facts = self._recording.facts

    def stop(self) -> Packed:
        """The samples to send home; none without a GPU, or where another worker records it."""
        self._recording.stop()
        found: Packed = ()
        if not isinstance(self._recording.lake, Unknown):
            lake = Lake(self._recording.lake)
            parts = lake.manifest().parts
            found = tuple((msgspec.json.encode(p).decode(), lake.path(p).read_bytes()) for p in parts)
        self._folder.cleanup()
        self._file.unlink(missing_ok=True)
        os.close(self._lock)
        return found
