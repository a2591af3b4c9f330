"""What do small files that become enormous do to memory and time?

python fuzz/bombs.py [WORDS IN THE NAME OF A FILE]

Files that unpack to 10 GB, lines without an end, a million columns, nesting, and Parquet files that claim billions of
rows, each given to the readers a user would give it to, in a process of its own. Prints a table; exits with 1 where
one is answered with a traceback, with more than 1 GiB, or not within a minute of CPU time.
"""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from targets import ROOT, families, targets_of
from targets.telemetry import taken

from gpuledger.errors import GpuledgerError

MIB, GIB = 1 << 20, 1 << 30
MOST_MIB = 1024
MOST_CPU_S = 60
TELEMETRY, TEXTS = (
    ("CSV",),
    ("CSV", "job table", "bill, inventory", "own prices", "spot price history", "replayed recording"),
)
DOCUMENTS = (
    "job table",
    "bill, inventory",
    "claims",
    "bench results",
    "model config",
    "calibration",
    "spot price history",
)
Make = Callable[[Path], None]


def _repeated(block: bytes, times: int, pack: Callable[[bytes], bytes]) -> Make:
    """A packed file of one block many times: packed files may be joined, so a block is packed once."""
    packed = pack(block)
    return lambda path: path.write_bytes(packed * times) and None


def _zst(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


def _gz(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def _filled(byte: bytes, size: int, head: bytes = b"") -> Make:
    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.write(head)
            for _ in range(size >> 20):
                file.write(byte * MIB)

    return make


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * GIB)


def _columns(path: Path) -> None:
    path.write_text(",".join(f"c{i}" for i in range(1_000_000)) + "\n" + ",".join("1" * 1_000_000) + "\n")


def _parquet(path: Path) -> None:
    rows = 60_000_000
    zero = pa.array(np.zeros(rows, np.int8))
    names = ["timestamp", "UUID", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"]
    pq.write_table(pa.table(dict.fromkeys(names, zero)), path, compression="zstd", row_group_size=rows)


def _sheet(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book,
        book.open("xl/worksheets/sheet1.xml", "w") as part,
    ):
        for _ in range(1024):
            part.write(b" " * MIB)


def _cells(path: Path) -> None:
    """A spreadsheet of 90 MB within the limit: millions of cells."""
    row = b"<row>" + b"<c><v>1</v></c>" * 1000 + b"</row>"
    head = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
        book.writestr("xl/worksheets/sheet1.xml", head + row * (90_000_000 // len(row)) + b"</sheetData></worksheet>")


def _nested(text: bytes) -> Make:
    return lambda path: path.write_bytes(text) and None


HEADER = b"timestamp,Hostname,gpu,UUID,modelName,DCGM_FI_DEV_GPU_UTIL\n"
ROW = b"2026-01-20T10:00:00Z,n,0,GPU-0,NVIDIA H100 80GB HBM3,50\n"
DEEP = 100_000
ANSWER = b'{"status":"success","data":{"resultType":"matrix","result":['


def _rows(path: Path) -> None:
    path.write_bytes(_zst(HEADER) + _zst(ROW * (10 * MIB // len(ROW))) * 1024)


BOMBS: list[tuple[str, str, Make, tuple[str, ...]]] = [
    (
        "gzip, 10 GB of zeros",
        "x.csv.gz",
        _repeated(bytes(10 * MIB), 1024, _gz),
        (*TEXTS, "demand table", "autoscale trace"),
    ),
    ("Zstandard, 10 GB of zeros", "x.csv.zst", _repeated(bytes(10 * MIB), 1024, _zst), ("CSV", "demand table")),
    (
        "gzip, 10 GB of line feeds",
        "x.csv.gz",
        _repeated(b"\n" * 10 * MIB, 1024, _gz),
        ("CSV", "bill, inventory", "autoscale trace"),
    ),
    (
        "gzip, 10 GB of one letter",
        "x.csv.gz",
        _repeated(b"a" * 10 * MIB, 1024, _gz),
        ("CSV", "bill, inventory", "demand table"),
    ),
    (
        "Zstandard, 10 GB of one row",
        "x.csv.zst",
        lambda p: (
            _repeated(ROW * (10 * MIB // len(ROW)), 1024, _zst)(p)
            or (p.write_bytes(_zst(HEADER) + p.read_bytes()) and None)
        ),
        ("CSV",),
    ),
    (
        "gzip, 10 GB exporter page",
        "x.prom.gz",
        _repeated(b"# HELP x y\n" + b" " * 10 * MIB, 1024, _gz),
        ("exporter page",),
    ),
    ("gzip, 10 GB of brackets", "x.json.gz", _repeated(ANSWER + b" " * 10 * MIB, 1024, _gz), ("Prometheus answer",)),
    ("one line of 1 GiB", "x.csv", _filled(b"a", GIB), TEXTS),
    ("one line of 1 GiB, JSON", "x.json", _filled(b" ", GIB, b"["), DOCUMENTS),
    (
        "one line of 1 GiB, TOML",
        "gpuledger.toml",
        _filled(b"a", GIB),
        ("gpuledger.toml", "mapping file", "teams", "batch pools"),
    ),
    ("10 GiB sparse file", "x.csv", _sparse, (*TEXTS, *DOCUMENTS[2:6])),
    (
        "a million columns",
        "x.csv",
        _columns,
        (*TEXTS, "batch jobs", "request trace", "demand table", "autoscale trace", "carbon intensity"),
    ),
    (
        "Parquet, 60 M rows in some KB",
        "x.parquet",
        _parquet,
        ("Parquet", "bill, inventory", "autoscale trace", "batch jobs"),
    ),
    ("spreadsheet, 1 GiB of blanks", "x.xlsx", _sheet, ("bill, inventory", "batch jobs")),
    ("spreadsheet, 6 M cells", "x.xlsx", _cells, ("bill, inventory",)),
    (
        "JSON nested 100,000 deep",
        "x.json",
        _nested(b"[" * DEEP + b"]" * DEEP),
        (*DOCUMENTS, "batch jobs", "own prices", "Prometheus answer"),
    ),
    (
        "JSON objects 100,000 deep",
        "x.json",
        _nested(b'{"a":' * DEEP + b"1" + b"}" * DEEP),
        (*DOCUMENTS, "batch jobs", "own prices"),
    ),
    (
        "TOML nested 100,000 deep",
        "gpuledger.toml",
        _nested(b"a = " + b"[" * DEEP + b"]" * DEEP),
        ("gpuledger.toml", "mapping file", "teams", "GPU catalog file", "batch pools"),
    ),
    (
        "TOML key of 20,000 parts",
        "gpuledger.toml",
        _nested(b"[" + b".".join([b"a"] * 20_000) + b"]\n"),
        ("gpuledger.toml", "mapping file", "teams", "batch pools"),
    ),
    ("planner file nested 100,000 deep", "model_config.json", _nested(b"[" * DEEP), ("planner file",)),
    (
        "planner file with 1 MB of comments",
        "model_config.json",
        _nested(b"{" + b"// x\n" * 200_000 + b"}"),
        ("planner file",),
    ),
]


def cases(folder: Path, wanted: str) -> Iterator[tuple[str, str, str, float, int, str]]:
    """Every bomb with every reader: what happened, CPU seconds, MiB at the peak, and the words."""
    homes = families()
    for name, file, make, readers in BOMBS:
        if wanted not in name:
            continue
        path = folder / file
        # Elsewhere: what this process once held would count as the reader's.
        maker = get_context("fork").Process(target=make, args=(path,))
        maker.start()
        maker.join()
        for reader in readers:
            yield name, reader, *_alone(homes[reader], reader, path)
        path.unlink()


def _alone(family: str, reader: str, path: Path) -> tuple[str, float, int, str]:
    """The file with a reader in a process of its own."""
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    around = {**os.environ, "GPULEDGER_CONFIG": "", "TMPDIR": str(path.parent), "PYTHONPATH": paths}
    said = path.parent / "said.txt"
    with said.open("w") as out:
        child = subprocess.Popen(
            [sys.executable, __file__, "--read", family, reader, str(path)], stdout=out, stderr=out, env=around
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
    what, _, words = said.read_text(errors="replace").partition("\n")
    cpu_s, mib = used.ru_utime + used.ru_stime, used.ru_maxrss >> 10
    if status or cpu_s > MOST_CPU_S:
        return "killed" if status else "slow", cpu_s, mib, f"{what} {words}"
    return what if mib <= MOST_MIB else "memory", cpu_s, mib, words


def read(family: str, reader: str, path: str) -> None:
    """Read one file and print what happened."""
    resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_CPU_S, 2 * MOST_CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (16 * GIB, 16 * GIB))
    try:
        (taken if family in ("telemetry", "tables") else targets_of(family)[reader].run)(Path(path))
        print("accepted")
    except GpuledgerError as error:
        print("refused", " / ".join(str(error).splitlines()), sep="\n")
    except BaseException:  # noqa: BLE001 - whatever escapes is what we look for
        print("traceback", traceback.format_exc()[-1500:], sep="\n")


def main() -> int:
    """Run all of them, or those whose names hold the words given; returns the exit code."""
    if sys.argv[1:2] == ["--read"]:
        read(*sys.argv[2:])
        return 0
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-bombs-"))
    failed = 0
    try:
        print("| file | reader | answer | CPU, s | peak, MiB | what it said |\n|---|---|---|---|---|---|")
        for name, reader, what, cpu_s, mib, words in cases(folder, " ".join(sys.argv[1:])):
            failed += what not in ("accepted", "refused")
            shown = words.replace(str(folder), "").replace("|", "\\|").replace("\n", " ")
            said = shown[:160] if what == "refused" else shown[-400:]
            print(f"| {name} | {reader} | {what} | {cpu_s:.1f} | {mib:,} | {said} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
