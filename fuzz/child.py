"""What happens to inputs of one target, one after another, in a process with a limit on memory and on time?

Writes one line per input: its number, what happened, CPU milliseconds, and by how many KiB memory grew at its peak. A
hang ends the process with a traceback (faulthandler watches from a thread of its own, so that C code is caught too);
run.py then goes on after that input.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random

from mutate import mutated
from targets import HERE, Seed, Target, kept, targets_of

from gpuledger.errors import GpuledgerError

LIMIT_S = 90.0
SLOW_S = 10.0
MOST_KIB = 512 << 10
MOST_MESSAGE = 4000
MADE_SHARE = 0.5


class Inputs:
    """The hostile files of a target, by number: the same for the same seed."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target, self._seed = target, seed
        self._seeds = [*target.seeds(), *(Seed(target.seeds()[0].name, s.data) for s in kept(target.name))]
        if not self._seeds:
            raise SystemExit(f"target {target.name!r} has no seeds")

    def __getitem__(self, number: int) -> Seed:
        if number < len(self._seeds):
            return self._seeds[number]  # as it is
        rng = Random(f"{self._seed}/{self._target.name}/{number}")
        if self._target.made is not None and rng.random() < MADE_SHARE:
            made = self._target.made(rng)
            return made if rng.random() < 0.7 else Seed(made.name, mutated(rng, made.data, ()))
        base = rng.choice(self._seeds)
        return Seed(base.name, mutated(rng, base.data, [s.data for s in self._seeds]))


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    return 0


def judge(target: Target, seed: Seed, folder: Path) -> tuple[str, float, int, str]:
    """What happened (accepted, refused, traceback, memory, slow), CPU ms, KiB at the peak, and the details."""
    path = folder / Path(seed.name).name
    path.write_bytes(seed.data)
    Path("/proc/self/clear_refs").write_text("5")
    before, start = _status("VmRSS"), time.process_time()
    what, words = "accepted", ""
    try:
        target.run(path)
    except GpuledgerError as error:
        what, words = "refused", str(error)
        if not error.hint or len(words) > MOST_MESSAGE:
            what = "traceback"
            words = (
                f"refused without a next step: {words}" if not error.hint else f"{len(words)} letters: {words[:200]}"
            )
    except MemoryError:
        what, words = "memory", traceback.format_exc()
    except Exception:  # noqa: BLE001 - whatever escapes is what we look for
        what, words = "traceback", traceback.format_exc()
    took, grew = time.process_time() - start, _status("VmHWM") - before
    if grew > MOST_KIB and what in ("accepted", "refused"):
        what, words = "memory", f"{grew >> 10} MiB more"
    elif took > SLOW_S and what in ("accepted", "refused"):
        what, words = "slow", f"{took:.1f} s"
    path.unlink(missing_ok=True)
    return what, took * 1000, max(grew, 0), words


def main() -> None:
    """Run the inputs from one number to another."""
    asked = argparse.ArgumentParser()
    asked.add_argument("family")
    asked.add_argument("target")
    asked.add_argument("first", type=int)
    asked.add_argument("end", type=int)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--found", type=Path, default=HERE / "found")
    said = asked.parse_args()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stdout = sys.stderr
    warnings.simplefilter("error")
    target = targets_of(said.family)[said.target]
    inputs = Inputs(target, said.seed)
    scratch = Path(tempfile.mkdtemp(prefix="gpuledger-fuzz-"))
    os.environ["GPULEDGER_CONFIG"] = ""
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    faulthandler.dump_traceback_later(300, exit=True)
    folder = scratch / "in"
    folder.mkdir()
    judge(target, inputs[0], folder)  # imports and caches are not an input's memory
    most = (_status("VmSize") + 3 * MOST_KIB) << 10
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(said.first, said.end):
        seed = inputs[number]
        out.write(f"{number} begins\n")
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        what, took_ms, kib, words = judge(target, seed, folder)
        faulthandler.cancel_dump_traceback_later()
        out.write(f"{number} {what} {took_ms:.1f} {kib}\n")
        if what not in ("accepted", "refused"):
            keep(said.found, target, number, seed, words)
    shutil.rmtree(scratch, ignore_errors=True)


def keep(found: Path, target: Target, number: int, seed: Seed, words: str) -> None:
    """Keep an input that failed, and why."""
    folder = found / target.name.replace("/", "-") / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(seed.name).name).write_bytes(seed.data)
    (folder / "why.txt").write_text(words, encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    main()
