"""Which inputs reach code that no other input reached? Atheris looks for them; they are kept as seeds.

python fuzz/guided.py "Prometheus answer" --seconds 60

Needs Atheris (pip install atheris; Linux, CPython 3.11 to 3.13). Inputs that reach new code are added to fuzz/corpus,
the smallest first, up to a number of bytes per target; fuzz/run.py mutates them along with the others. A traceback
ends the run with 77 and leaves the input in fuzz/found.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from targets import HERE, ROOT, families, kept, targets_of

KEPT_BYTES = 16_000
LONGEST = 40_000
KEPT_LONGEST = 4_000


def hunt(name: str, scratch: Path, seconds: int, seed: int) -> None:
    """Run Atheris over one target; does not return."""
    import atheris

    with atheris.instrument_imports(include=["gpuledger"]):
        target = targets_of(families()[name])[name]
    from gpuledger.errors import GpuledgerError

    seeds = [*target.seeds(), *kept(name)]
    suffix = Path(seeds[0].name).name
    (scratch / "corpus").mkdir()
    for seed_file in seeds:
        if len(seed_file.data) <= LONGEST:
            (scratch / "corpus" / hashlib.sha256(seed_file.data).hexdigest()[:16]).write_bytes(seed_file.data)
    (scratch / "in").mkdir()
    path = scratch / "in" / suffix

    def once(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(GpuledgerError):
            target.run(path)

    (scratch / "found").mkdir()
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        f"-seed={seed}",
        "-timeout=30",
        "-rss_limit_mb=2048",
        "-verbosity=0",
        "-print_final_stats=1",
        f"-artifact_prefix={scratch / 'found'}/",
    ]
    atheris.Setup([sys.argv[0], *options, str(scratch / "corpus")], once)
    atheris.Fuzz()


def keep(name: str, scratch: Path) -> tuple[int, int]:
    """Keep what reached new code, the smallest first; how many files, and bytes of all."""
    before = {seed.data for seed in (*targets_of(families()[name])[name].seeds(), *kept(name))}
    folder = HERE / "corpus" / name
    size = sum(len(s.data) for s in kept(name))
    found = sorted((f.stat().st_size, f.name, f) for f in (scratch / "corpus").iterdir())
    count = 0
    for length, digest, file in found:
        if file.read_bytes() in before or length > KEPT_LONGEST or size + length > KEPT_BYTES:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / digest[:16])
        size, count = size + length, count + 1
    return count, size


def main() -> int:
    """Hunt in a process of its own, then keep what it found; returns the exit code."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("target", nargs="+")
    asked.add_argument("--seconds", type=int, default=60)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    said = asked.parse_args()
    if said.scratch:
        hunt(said.target[0], said.scratch, said.seconds, said.seed)
    worst = 0
    for name in said.target:
        scratch = Path(tempfile.mkdtemp(prefix="gpuledger-guided-"))
        paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
        around = {**os.environ, "PYTHONPATH": paths, "GPULEDGER_CONFIG": "", "TMPDIR": str(scratch)}
        command = [
            sys.executable,
            __file__,
            name,
            "--seconds",
            str(said.seconds),
            "--seed",
            str(said.seed),
            "--scratch",
            str(scratch),
        ]
        done = subprocess.run(command, env=around, capture_output=True, text=True, errors="replace", check=False)
        count, size = keep(name, scratch) if (scratch / "corpus").is_dir() else (0, 0)
        ran = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "no")
        print(f"{name}: {ran} inputs tried, {count} kept, {size:,} bytes in all", flush=True)
        if crashed := list((scratch / "found").glob("*")) if (scratch / "found").is_dir() else []:
            worst = 77
            folder = HERE / "found" / name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(crashed[0], folder / crashed[0].name)
            print("\n".join(done.stderr.splitlines()[-25:]))
        shutil.rmtree(scratch, ignore_errors=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
