"""Is our own client the bottleneck at a thousand streamed requests a second?

    python benchmarks/client_overhead.py [--seconds 8] [--requests-per-s 1000] [--repeat 3] [--out FILE.json]

A pretended server in a process of its own, `gpuledger bench`'s own worker in another, over loopback; 32 tokens a
request. In `together` the server sends all tokens at once, in `apart` each by itself, as a model does: that is 32 reads
a request. `open` asks at that rate (Poisson), `closed` as fast as 128 at a time are answered. aiohttp does the same
`closed` run for comparison, where it is installed: tokens parsed alike, nothing recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from gpuledger.bench.load import Load
from gpuledger.bench.plan import Bench, Station
from gpuledger.bench.runner import run_bench
from gpuledger.bench.targets.sse import _decode
from gpuledger.units import known

TOKENS = 32
CONCURRENCY = 128
SCRIPTS = {"together": "tokens = 32\n", "apart": "ttft_s = 0.020\nper_token_s = 0.002\ntokens = 32\n"}


class Served:
    """A server in a process of its own."""

    def __init__(self, folder: Path, script: str) -> None:
        file = folder / f"{script}.toml"
        file.write_text(SCRIPTS[script], encoding="utf-8")
        command = [sys.executable, "-m", "gpuledger.testing.openai_server", "--script", str(file)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1]

    def cpu_s(self) -> float:
        """Seconds of processor it used so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def ours(served: Served, folder: Path, load: Load) -> dict[str, Any]:
    """One run of `gpuledger bench`."""
    out = folder / f"{time.monotonic_ns()}.jsonl"
    before = served.cpu_s()
    run = run_bench(Bench("openai_http", (Station("loopback", {"url": served.url}),), load, out, device=""))
    answers = [r for r in run.measured if r.ok]
    wall_s = known(run.wall_s) or float("nan")
    client = run.client if isinstance(run.client, dict) else {}
    return {
        "requests_per_s": len(answers) / wall_s,
        "tokens_per_s": sum(known(r.output_tokens) or 0 for r in answers) / wall_s,
        "failed": len(run.measured) - len(answers),
        "ttft_median_ms": 1000 * median(known(r.ttft_s) or 0.0 for r in answers),
        "latency_median_ms": 1000 * median(known(r.latency_s) or 0.0 for r in answers),
        "client_core_pct": 100 * client["cpu_s"] / client["wall_s"],
        "client_us_per_request": 1e6 * client["cpu_s"] / len(answers),
        "server_core_pct": 100 * (served.cpu_s() - before) / wall_s,
        "p95_lag_ms": 1000 * run.more["clients"]["loopback"]["p95_lag_s"],
        "bottleneck": client["bottleneck"],
        "why": client["why"],
    }


async def _aiohttp(url: str, requests: int) -> None:
    import aiohttp

    body = msgspec.json.encode({"model": "pretended", "prompt": "word " * 128, "max_tokens": TOKENS, "stream": True})
    waiting = iter(range(requests))

    async def slot(session: aiohttp.ClientSession) -> None:
        for _ in waiting:
            tokens = 0
            async with session.post(f"{url}/v1/completions", data=body) as answer:
                async for line in answer.content:
                    if line.startswith(b"data:") and b"[DONE]" not in line:
                        tokens += sum(bool(c.text) for c in _decode(line[5:].strip()).choices)
            assert tokens == TOKENS

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(slot(session) for _ in range(CONCURRENCY)))


def theirs(served: Served, requests: int) -> dict[str, Any]:
    """The same with aiohttp, in this process."""
    before, cpu, begun = served.cpu_s(), time.process_time(), time.perf_counter()
    asyncio.run(_aiohttp(served.url, requests))
    wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    return {
        "requests_per_s": requests / wall_s,
        "client_core_pct": 100 * cpu_s / wall_s,
        "client_us_per_request": 1e6 * cpu_s / requests,
        "server_core_pct": 100 * (served.cpu_s() - before) / wall_s,
    }


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Every row, the repeats of each behind one another."""
    rows: list[dict[str, Any]] = []
    requests = round(args.seconds * args.requests_per_s)
    loads = {
        "closed": Load(requests=requests, concurrency=CONCURRENCY, output_tokens=TOKENS, warmup=64),
        "open": Load(requests=requests, rate_per_s=args.requests_per_s, output_tokens=TOKENS, warmup=64),
    }
    with tempfile.TemporaryDirectory() as name:
        for script in SCRIPTS:
            served = Served(Path(name), script)
            for _ in range(args.repeat):
                rows += [
                    {"client": "gpuledger", "tokens": script, "loop": kind, **ours(served, Path(name), load)}
                    for kind, load in loads.items()
                ]
                try:
                    rows.append(
                        {"client": "aiohttp", "tokens": script, "loop": "closed", **theirs(served, requests // 4)}
                    )
                except ImportError:
                    print("aiohttp is not installed: no comparison", file=sys.stderr)
            served.close()
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows for a reader."""
    heads = ("client", "tokens", "loop", "req/s", "tok/s", "client core %", "us/req", "server core %", "first ms",
             "lag ms", "bottleneck")  # fmt: skip
    keys = ("requests_per_s", "tokens_per_s", "client_core_pct", "client_us_per_request", "server_core_pct",
            "ttft_median_ms", "p95_lag_ms")  # fmt: skip
    lines = [heads]
    for row in rows:
        figures = [f"{row[k]:,.{1 if k.endswith('ms') else 0}f}" if k in row else "" for k in keys]
        said = "" if "bottleneck" not in row else f"yes: {row['why']}" if row["bottleneck"] else "no"
        lines.append((row["client"], row["tokens"], row["loop"], *figures, said))
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(heads))]
    left = {0, 1, 2, len(heads) - 1}
    cells = [
        [text.ljust(w) if i in left else text.rjust(w) for i, (text, w) in enumerate(zip(line, widths, strict=True))]
        for line in ([str(cell) for cell in whole] for whole in lines)
    ]
    return "\n".join("  ".join(line) for line in cells)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--requests-per-s", type=float, default=1000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    load_before = os.getloadavg()[0]
    rows = measure(args)
    print(f"{os.cpu_count()} cores, {platform.python_version()}, load average before: {load_before:.2f}")
    print(table(rows))
    if args.out:
        args.out.write_text(
            json.dumps({"cores": os.cpu_count(), "load_before": load_before, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
