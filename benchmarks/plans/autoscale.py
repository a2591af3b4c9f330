"""How right are the replays of `plan autoscale`, and what do its policies come to on real traces?

    python benchmarks/plans/autoscale.py [--data FOLDER] [--update docs/results/plans-autoscale.md]

First the replay of single requests against closed forms (Erlang C; Pollaczek-Khinchine for constant service), with
95 % intervals over seeds, then every policy on serving traces: both through the call a user makes. FOLDER has
`serving/azure_llm_2023_conv.csv` and `serving/servegen_rate_10min.csv`. Figures depend on seeds only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import t as student_t

import gpuledger
from gpuledger.plan.autoscale.demand.reading import read_trace
from gpuledger.plan.autoscale.demand.trace import arrivals_of
from gpuledger.plan.autoscale.policies import kinds
from gpuledger.plan.autoscale.replays.by_request import replay_requests
from gpuledger.plan.autoscale.replays.by_step import replay_rates
from gpuledger.plan.autoscale.replays.erlang import mean_wait_s, wait_tail
from gpuledger.plan.autoscale.service import Service
from gpuledger.plan.autoscale.setting import Setting, Slo
from gpuledger.plan.autoscale.statement import AutoscalePlan, PolicyRow
from gpuledger.units import Unknown

REQUESTS, MEAN_TOKENS = 600_000, 1e6  # as many requests as a plan replays one by one
# Servers, load, the wait whose share is compared, in services, and the number of seeds: many servers serve as many
# requests in less time, in which busy spells are fewer, so that chance weighs more.
SYSTEMS = (
    (1, 0.5, 1.0, 40),
    (1, 0.8, 5.0, 40),
    (2, 0.7, 1.0, 40),
    (5, 0.7, 0.5, 40),
    (20, 0.85, 0.2, 100),
    (100, 0.9, 0.05, 400),
)
CONSTANT = (1, 0.6, 1.0, 40)
MOST_OFF_PCT = 2.0  # the whole of every interval must be as near as this
CONVERSATION = {"tokens_per_s": 1500.0, "concurrency": 16, "gpu": "a100-sxm4-80gb"}
MODEL = {"service_s": 8.0, "concurrency": 64, "gpu": "h100-sxm5-80gb"}
SERIES = ("m-small", "m-mid", "m-large", "deepseek-r1", "mm-image")

Table = tuple[Sequence[str], list[list[str]]]


def steady(
    servers: int, load: float, beyond_s: float, seeds: int, *, constant: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Mean wait and share beyond a wait, one for each seed, without the first tenth of the requests.

    Each seed is a file of requests, planned as a user would: one policy, a fixed number of replicas.
    """
    means, shares = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requests.parquet"
        for seed in range(seeds):
            write_requests(file, load * servers, constant=constant, seed=seed)
            row = gpuledger.plan.autoscale(
                trace=file, service_s=1.0, concurrency=1, policy="static-peak", learned_pct=10.0, slo_wait_s=beyond_s,
                min_replicas=servers, max_replicas=servers, seeds=1,
            ).statement.policies[0]  # fmt: skip
            means.append(row.mean_wait_s)
            shares.append(row.missed_pct / 100)
    return np.array(means), np.array(shares)


def write_requests(file: Path, per_s: float, *, constant: bool, seed: int) -> None:
    """Requests at random (Poisson), with exponential or constant lengths in generated tokens."""
    random = np.random.default_rng(seed)
    at_s = np.cumsum(random.exponential(1 / per_s, REQUESTS))
    tokens = np.ones(REQUESTS) if constant else random.exponential(1.0, REQUESTS)
    generated = np.maximum(np.rint(MEAN_TOKENS * tokens), 1).astype(np.int64)
    pq.write_table(pa.table({"arrival_s": at_s, "generated_tokens": generated}), file)


def compared(found: np.ndarray, exact: float) -> list[str]:
    """Seeds, exact figure, replayed figure with its interval, how far it is off, and whether it is near enough."""
    half = student_t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / np.sqrt(len(found))
    off, off_half = 100 * (found.mean() / exact - 1), 100 * half / exact
    within = "yes" if abs(off) + off_half <= MOST_OFF_PCT else "no"
    return [
        f"{len(found)}", f"{exact:.4f}", f"{found.mean():.4f} ± {half:.4f}", f"{off:+.2f} % ± {off_half:.2f}", within,
    ]  # fmt: skip


def closed_forms() -> Table:
    """The replay against Erlang C and Pollaczek-Khinchine."""
    rows = []
    for servers, load, beyond, seeds in SYSTEMS:
        means, shares = steady(servers, load, beyond, seeds)
        offered, number = np.array([load * servers]), np.array([servers])
        wait, tail = mean_wait_s(offered, number, 1.0)[0], wait_tail(offered, number, 1.0, beyond)[0]
        name = f"M/M/{servers} at {load:.0%}".replace("%", " %")
        rows.append([name, "mean wait", *compared(means, wait)])
        rows.append([name, f"P(wait > {beyond:g})", *compared(shares, tail)])
    means, _ = steady(*CONSTANT, constant=True)
    rows.append(["M/D/1 at 60 %", "mean wait", *compared(means, 0.75)])
    heads = ("system", "figure", "seeds", "exact", "replayed, 95 % interval", "off", f"within {MOST_OFF_PCT:g} %")
    return heads, rows


def flows(data: Path) -> Table:
    """The flow against the replay of single requests, on days that both can replay."""
    rows = []
    for series in ("mm-image", "deepseek-r1"):
        trace = read_trace(data / "serving" / "servegen_rate_10min.csv", series=series)
        for slots, service_s in ((64, 8.0), (8, 4.0)):
            service, learned = Service(slots, service_s, 1, "benchmark"), trace.first(trace.length_s / 2)
            setting = Setting(service, Slo(2.0, 95.0), learned, interval_s=15.0, max_replicas=200)
            arrivals = arrivals_of(trace, service_s, 0)
            busy = trace.rates_per_s * service_s / slots
            for name, value in (
                ("static-peak", np.ceil(busy.max())), ("target-utilization", 0.7), ("queue-length", 0.8 * slots),
                ("predictive", 0.8),
            ):  # fmt: skip
                kind, first = kinds()[name], int(np.ceil(busy[0] / 0.8))
                flow = replay_rates(trace, setting, kind.build(setting, value), first_replicas=first).totals()
                policy = kind.build(setting, value)
                run, _ = replay_requests(arrivals, setting, policy, trace.length_s, first_replicas=first)
                seen = run.totals()
                off = f"{100 * (flow.replica_h / seen.replica_h - 1):+.1f} %"
                missed = [f"{100 * t.missed_ratio:.2f} %" for t in (flow, seen)]
                hours = [f"{t.replica_h:,.1f}" for t in (flow, seen)]
                rows.append([f"{series}, {slots} slots of {service_s:g} s", kind.title, *hours, off, *missed])
    heads = (
        "trace",
        "policy",
        "replica-h, flow",
        "replica-h, requests",
        "off",
        "over wait, flow",
        "over wait, requests",
    )
    return heads, rows


def traces(data: Path) -> Iterator[tuple[str, AutoscalePlan, float]]:
    """The plan of every trace, and the seconds it took."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("azure_llm_2023_conv", {"trace": data / "serving" / "azure_llm_2023_conv.csv", **CONVERSATION}),
        *((f"servegen {name}", {"trace": data / "serving" / "servegen_rate_10min.csv", "series": name, **MODEL})
          for name in SERIES),
    ]  # fmt: skip
    for name, options in asked:
        start = time.perf_counter()
        yield name, gpuledger.plan.autoscale(**options).statement, time.perf_counter() - start


def policies(name: str, plan: AutoscalePlan) -> list[list[str]]:
    """A row for each policy of a plan."""
    return [[name, *_policy(plan, row)] for row in plan.policies] + [
        [name, "needed, knowing the demand", "", "", "", f"{plan.clairvoyant_gpu_h_per_month:,.0f}", "", ""]
    ]


def _policy(plan: AutoscalePlan, row: PolicyRow) -> list[str]:
    verdict = "chosen" if row == plan.chosen else "meets" if row.meets else "misses"
    usd = row.usd_per_month
    assert not isinstance(usd, Unknown)
    return [
        row.title, row.says, f"{row.learned_missed_pct:.2f} %",
        f"{row.missed_pct:.2f} % ({row.missed_low_pct:.2f} to {row.missed_high_pct:.2f})",
        f"{row.gpu_h_per_month:,.0f}", f"${usd.middle_usd:,.0f} (${usd.low_usd:,.0f} to ${usd.high_usd:,.0f})", verdict,
    ]  # fmt: skip


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(forms: Table, flow: Table, found: Sequence[tuple[str, AutoscalePlan, float]]) -> str:
    """The results as a page."""
    heads = (
        "trace",
        "policy",
        "tuned to",
        "over wait, tuning",
        "over wait, after (seeds)",
        "GPU-h/month",
        "USD/month",
        "goal",
    )
    rows = [row for name, plan, _ in found for row in policies(name, plan)]
    refused = [[name, r.what, r.why, r.instead] for name, plan, _ in found for r in plan.refused]
    replays = "\n".join(f"- {name}: {plan.assumptions[2]}." for name, plan, _ in found)
    return f"""# Autoscaling: how right the replays are, and what policies come to

Written by `python benchmarks/plans/autoscale.py --data FOLDER --update docs/results/plans-autoscale.md`.

## Against closed forms

A file of {REQUESTS:,} requests for each seed, each planned by `gpuledger.plan.autoscale` with a fixed number of
replicas; the first tenth is left out. Service takes one second on average; waits in seconds. M/M/c: Erlang C. M/D/1:
Pollaczek-Khinchine. The last column asks for the whole interval; where one is not, the command ends with exit code 1.

{markdown(*forms)}

## The flow against single requests

Too many requests are replayed as a flow. On two days that both can replay (below the Python API, which takes one of
the two by the number of requests):

{markdown(*flow)}

## On real traces

Goal: 95 % of requests wait at most 2 s; cold start 300 s. Tuned on the first half, judged on the second.
The Azure conversations run on {CONVERSATION["gpu"]} with {CONVERSATION["tokens_per_s"]:,.0f} generated tokens/s and
{CONVERSATION["concurrency"]} requests at a time; the ServeGen series on {MODEL["gpu"]} with {MODEL["service_s"]:g} s
per request and {MODEL["concurrency"]} at a time: both are assumptions of this benchmark, not measurements. Prices:
market median (10th to 90th percentile), dated {found[0][1].prices_dated}.

{replays}

{markdown(heads, rows)}

## Refused

{markdown(("trace", "policy", "why", "what would change that"), refused)}

Traces: Azure LLM inference trace 2023 (Azure/AzurePublicDataset, CC-BY-4.0); ServeGen (alibaba/ServeGen, Apache-2.0).
"""


def main() -> None:
    """Measure, print, and write the page where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with serving/*.csv; without it, closed forms only")
    parser.add_argument("--update", type=Path, help="page to write")
    given = parser.parse_args()
    if given.update and not given.data:
        parser.error("--update needs --data: the page has tables of real traces")
    forms = closed_forms()
    print(markdown(*forms), flush=True)
    if given.data:
        on_traces(given.data, forms, given.update)
    else:
        print("Left out without traces (--data): the flow against single requests, and policies on real traces.")
    if any(row[-1] == "no" for row in forms[1]):
        sys.exit(f"an interval is not within {MOST_OFF_PCT:g} % of the closed form")


def on_traces(data: Path, forms: Table, file: Path | None) -> None:
    """Measure on real traces, print, and write the page where asked to."""
    flow = flows(data)
    print(f"\n{markdown(*flow)}", flush=True)
    found = []
    for name, plan, seconds in traces(data):
        found.append((name, plan, seconds))
        print(f"\n{name} ({seconds:.1f} s): {plan.headline}")
        for row in policies(name, plan):
            print("  ", " | ".join(row[1:]), flush=True)
    if file:
        file.write_text(page(forms, flow, found))


if __name__ == "__main__":
    main()
