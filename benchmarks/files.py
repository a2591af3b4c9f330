"""How long does a file take to become a statement, or to get into the lake? Next to pandas, Polars, DuckDB and Spark.

    python benchmarks/files.py [--gpus 50 500 5000] [--repeat 3] [--keep DIR] [--polars PYTHON] [--spark PYTHON]
                               [--before SRC] [--only NAME ...] [--json]

`analyze`: `gpuledger analyze FILE` against scripts that do the eight analyses, each in a process of its own, from its
start to its end, alternating. `import`: `gpuledger import FILE` from Parquet and from CSV, against reading all columns
and writing them again as Parquet with the lake's codecs on as many cores; `--before`: the `src` folder of an older
checkout, imported in the same rounds. `--polars`, `--spark`: a Python that has it. One table; medians, and ratios by
round. `--only`: some of these commands. Every script and package runs from compiled bytecode, as after an install.
The figures that the statement and the scripts have in common must agree, or nothing is printed.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
CSV_ROWS = 5_100_000
PEERS = ("pandas", "polars", "duckdb", "spark")
# Figures that the statement and every script print. Polars averages in single precision.
SAME = ("samples", "gpus", "gpu_util_pct", "pif", "bottlenecked_pct_of_active")
NEAR_RATIO = 1e-6
# Starts for a minute: one round shows enough.
ONCE = ("spark",)


def main() -> None:
    """Make the files, run everything alternating, print the table."""
    asked = _asked()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for source in (HERE.parent / "src", *([asked.before] if asked.before else [])):
        compileall.compile_dir(source, quiet=1)
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        work = asked.keep or Path(temporary)
        for gpus in asked.gpus:
            folder = work / str(gpus)
            files, rows = _fleet(folder, gpus, csv=any("csv" in name for name in asked.only or ["csv"]))
            runs = _turns(_commands(asked, folder, files, rows), asked.repeat)
            found.append(_row(gpus, rows, runs))
            if not asked.json:
                _show(found[-1])
    if asked.json:
        print(json.dumps(found, indent=1))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--polars", default=None)
    parser.add_argument("--spark", default=None)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _fleet(folder: Path, gpus: int, *, csv: bool) -> tuple[list[str], int]:
    """A week of a fleet at one sample a minute: one Parquet file, or one a day where it is large."""
    import gpuledger

    spec = gpuledger.FleetSpec(gpus=gpus)
    target = folder / "fleet"
    if not target.exists():
        by_day = gpus >= 5000
        target.mkdir(parents=True)
        gpuledger.write_fleet(spec, target if by_day else target / "week.parquet", files="day" if by_day else "one")
        if csv and spec.rows <= CSV_ROWS:
            gpuledger.write_fleet(spec, folder / "week.csv", "csv")
    return [str(f) for f in sorted(target.glob("*.parquet"))], spec.rows


def _commands(
    asked: argparse.Namespace, folder: Path, files: list[str], rows: int
) -> dict[str, tuple[list[str], dict[str, str]]]:
    python, lake = sys.executable, str(folder / "lake")
    into = ["-m", "gpuledger", "import", "--quiet", "--lake", lake]
    found = {
        "analyze": ([python, "-m", "gpuledger", "analyze", *files, "--json"], {}),
        "pandas": ([python, str(HERE / "pandas_way.py"), *files], {}),
        "duckdb": ([python, str(HERE / "duckdb_way.py"), *files], {}),
    }
    for name, other in (("polars", asked.polars), ("spark", asked.spark)):
        if other:
            where = {"PYTHONPATH": str(HERE.parent / "src")}
            found[name] = ([other, str(HERE / f"{name}_way.py"), *files], where)
    found["import"] = ([python, *into, *files], {})
    found["bare"] = ([python, str(HERE / "bare_copy.py"), str(folder / "bare"), *files], {})
    if asked.before:
        found["import_before"] = ([python, *into, *files], {"PYTHONPATH": str(asked.before)})
    if rows <= CSV_ROWS:
        found["import_csv"] = ([python, *into, str(folder / "week.csv")], {})
        found["analyze_csv"] = ([python, "-m", "gpuledger", "analyze", str(folder / "week.csv"), "--json"], {})
    return {name: command for name, command in found.items() if not asked.only or name in asked.only}


def _turns(commands: dict[str, tuple[list[str], dict[str, str]]], repeat: int) -> dict[str, list[dict[str, float]]]:
    runs: dict[str, list[dict[str, float]]] = defaultdict(list)
    figures: dict[str, dict[str, float]] = {}
    for turn in range(repeat):
        for name in list(commands) if turn % 2 == 0 else list(reversed(commands)):
            if turn and name in ONCE:
                continue
            command, more = commands[name]
            if "import" in name:
                shutil.rmtree(command[command.index("--lake") + 1], ignore_errors=True)
            took, out = _timed(command, more)
            runs[name].append(took)
            if name in ("analyze", *PEERS):
                figures[name] = json.loads(out)
    _agree(figures)
    return runs


def _agree(figures: dict[str, dict[str, float]]) -> None:
    """Whether everyone found the same: a script that is fast and wrong is not compared."""
    for name, of in ((name, of) for name in figures for of in SAME):
        ours, theirs = figures.get("analyze", figures[name])[of], figures[name][of]
        if not math.isclose(ours, theirs, rel_tol=NEAR_RATIO):
            raise SystemExit(f"{of}: {name} finds {theirs}, gpuledger analyze {ours}; make them agree first")


def _timed(command: list[str], more: dict[str, str]) -> tuple[dict[str, float], bytes]:
    """Seconds from the start of a process to its end, CPU seconds, peak memory of all its processes; its output."""
    start, before = time.perf_counter(), _children_s()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | more)
    peak = 0.0
    while True:
        peak = max(peak, _memory(process.pid))
        try:
            out, errors = process.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            continue
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed: {errors.decode()[-400:]}")
    return {"seconds": seconds, "cpu_s": _children_s() - before, "peak_mib": peak}, out


def _children_s() -> float:
    """CPU seconds of the processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(pid: int) -> float:
    """MiB of private memory of a process and its children: what is mapped from files is not counted."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        own = float(status["RssAnon"].split()[0]) / 1024
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        threads = Path(f"/proc/{pid}/task").iterdir()
        for thread in threads:
            children += (thread / "children").read_text().split()
    except (OSError, KeyError):
        return 0.0
    return own + sum(_memory(int(child)) for child in set(children))


def _row(gpus: int, rows: int, runs: dict[str, list[dict[str, float]]]) -> dict[str, object]:
    def ratios(name: str, other: str) -> list[float]:
        return [round(b["seconds"] / a["seconds"], 2) for a, b in zip(runs[name], runs[other], strict=False)]

    out: dict[str, object] = {"gpus": gpus, "rows": rows}
    out["seconds"] = {n: round(statistics.median(r["seconds"] for r in found), 2) for n, found in runs.items()}
    out["cpu_s"] = {n: round(statistics.median(r["cpu_s"] for r in found), 2) for n, found in runs.items()}
    out["peak_mib"] = {n: round(max(r["peak_mib"] for r in found)) for n, found in runs.items()}
    pairs = [*(("analyze", peer) for peer in PEERS), ("import", "import_before")]
    pairs += [("import", "bare"), ("import_csv", "import")]
    out["times_as_fast"] = {f"{a} as {b}": ratios(a, b) for a, b in pairs if a in runs and b in runs}
    return out


def _show(row: dict[str, object]) -> None:
    print(f"\n{row['rows']:,} samples ({row['gpus']} GPUs)")
    seconds, cpu, peaks, ratios = row["seconds"], row["cpu_s"], row["peak_mib"], row["times_as_fast"]
    assert isinstance(seconds, dict)
    assert isinstance(cpu, dict)
    assert isinstance(peaks, dict)
    assert isinstance(ratios, dict)
    for name in seconds:
        print(f"  {name:14} {seconds[name]:8.2f} s {cpu[name]:8.2f} s CPU {peaks[name]:7,} MiB")
    for name, found in ratios.items():
        print(f"  {name:32} {statistics.median(found):6.2f} x   {', '.join(f'{r:.2f}' for r in found)}")


if __name__ == "__main__":
    main()
