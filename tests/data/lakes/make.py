"""Make the lakes of older formats again: each by the code of its day, checked out from history.

    python tests/data/lakes/make.py [NAME...]

Every commit imports the same fleet.csv, posts it, and states its figures (`kept`); then it folds all days and drops
their samples (`dropped`). Both lakes are in NAME.tar.gz with the figures that version stated (said.json).
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Name: versions of samples, lines and ledger; the last commit that wrote them.
COMMITS = {
    "samples1-lines1-ledger1-first": "182dce7",
    "samples1-lines1-ledger1": "8506583",
    "samples2-lines1-ledger1": "b993103",
    "samples2-lines2-ledger2": "e974c86",
    "samples2-lines2-ledger3": "8c80c3d^",
    "samples3-lines2-ledger3": "8c80c3d",
    "samples3-lines3-ledger3": "9e17f1f",
}
FIGURES = ("samples", "gpus", "gpu_util_pct", "pif", "rfu_power_pct")
# The first commit has no command line.
FIRST = """
from pathlib import Path
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
import sys
lake = Lake(Path("kept"))
import_files(lake, [Path(sys.argv[1])])
post_lake(lake, load_thresholds())
"""


def make(name: str, commit: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        archive = ["git", "archive", commit, "src"]
        source = subprocess.run(archive, cwd=HERE.parents[2], check=True, stdout=subprocess.PIPE).stdout
        (work / "fleet.csv").write_bytes(gzip.decompress((HERE / "fleet.csv.gz").read_bytes()))
        subprocess.run(["tar", "x"], cwd=work, input=source, check=True)
        env = {**os.environ, "PYTHONPATH": str(work / "src"), "PYTHONDONTWRITEBYTECODE": "1"}

        def run(*args: str) -> str:
            command = [sys.executable, *args]
            return subprocess.run(command, cwd=work, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout

        said: dict[str, dict[str, object]] = {}
        lakes = ["kept"]
        if name.endswith("-first"):
            run("-c", FIRST, "fleet.csv")
        else:
            run("-m", "gpuledger", "import", "fleet.csv", "--lake", "kept")
            if "lines3" in name:
                run("-m", "gpuledger", "jobs", str(HERE / "jobs.csv"), "--lake", "kept")
            figures = json.loads(run("-m", "gpuledger", "analyze", "--lake", "kept", "--json"))
            said["kept"] = {key: figures[key] for key in FIGURES}
            subprocess.run(["cp", "-r", "kept", "dropped"], cwd=work, check=True)
            old = ("--fold-older-than", "1d", "--drop-samples-older-than", "1d", "--yes")
            run("-m", "gpuledger", "tidy", "--lake", "dropped", *old)
            figures = json.loads(run("-m", "gpuledger", "analyze", "--lake", "dropped", "--json"))
            said["dropped"] = {key: figures[key] for key in FIGURES}
            lakes.append("dropped")
        (work / "said.json").write_text(json.dumps(said, indent=1) + "\n")
        with tarfile.open(HERE / f"{name}.tar.gz", "w:gz", compresslevel=9) as packed:
            for entry in (*lakes, "said.json"):
                packed.add(work / entry, entry, filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith("/lock") else entry


if __name__ == "__main__":
    for wanted in sys.argv[1:] or list(COMMITS):
        make(wanted, COMMITS[wanted])
