"""Which samples stand behind the published two-node report? Constructs them from what was published, and checks them.

The report prints, for each node, how many samples it has, their minimum, maximum and mean, where the extremes fell, and
some rates of tokens; not the samples. jw2 follows from these figures alone: 27 tokens in 1.610 s are the 16.77 tokens/s
of sample 0, 32 tokens in 0.881 s the 36.32 of sample 4, sample 1 is the minimum, and the two that remain share what is
left of the mean. jw3 is built to have its n, minimum, maximum, mean and standard deviation. The standard deviation
printed for jw2 (309 ms) cannot be had by any five samples with its minimum, maximum and mean: it is left out.

    python tests/data/s2/make.py        writes results.jsonl and claims.json beside this file
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev

HERE = Path(__file__).parent
WALL_S = 22.16
MEMORY_BYTES = 15_830_000_000
# (latency in ms, output tokens), sample by sample
JW2 = [(1610, 27), (860, 31), (885, 32), (885, 32), (881, 32)]
JW3 = [(1348, 32), (992, 32), (867, 31), (886, 32), (881, 32), (881, 32), (875, 31), (873, 31), (886, 32), (871, 31)]
INPUT = [71, 59, 66, 68, 70, 64, 67, 69, 65, 68, 66, 67, 70, 66, 66]

PUBLISHED = {
    "jw2": {"n": 5, "min": 860, "max": 1610, "mean": 1024},
    "jw3": {"n": 10, "min": 867, "max": 1348, "mean": 936},
}

CLAIMS = [
    {"claim": "success_pct", "value": 100},
    {"claim": "throughput_per_s", "value": 2.05},
    {"claim": "throughput_per_s", "value": 1.07, "node": "jw3"},
    {"claim": "throughput_per_s", "value": 0.98, "node": "jw2"},
    {"claim": "scaling_efficiency_pct", "value": 102.5},
    {"claim": "super_linear", "value": True},
    {"claim": "baseline_throughput_per_s", "value": 1.0},
    {"claim": "baseline_latency_s", "value": 1.0},
    {"claim": "latency_mean_s", "value": 0.98},
    {"claim": "latency_sd_s", "value": 0.309, "node": "jw2"},
    {"claim": "latency_sd_s", "value": 0.149, "node": "jw3"},
    {"claim": "cold_start_pct", "value": 87, "node": "jw2"},
    {"claim": "slower_node", "value": "jw2"},
    {"claim": "node_slower_pct", "value": 9.4, "node": "jw2"},
    {"claim": "tokens_per_s", "value": 66.8},
    {"claim": "token_scaling_x", "value": 2.0},
    {"claim": "memory_pct", "value": 49.8},
    {"claim": "consistency_pct", "value": 93.6},
    {"claim": "mending_gain_pct", "value": 25},
    {"claim": "cause", "value": "Network latency: inter-node communication overhead"},
    {"claim": "cause", "value": "Cold start effect"},
    {"claim": "ranking", "value": "TOP 5%"},
    {"claim": "industry_average", "value": "85-95%"},
    {"claim": "ready_for_production", "value": True},
]


def check() -> None:
    """The samples have the published figures."""
    for name, samples in (("jw2", JW2), ("jw3", JW3)):
        ms = [s[0] for s in samples]
        found = {"n": len(ms), "min": min(ms), "max": max(ms), "mean": round(mean(ms))}
        assert found == PUBLISHED[name], (name, found)
    assert round(stdev(s[0] for s in JW3)) == 149
    rates = {name: [1000 * t / ms for ms, t in samples] for name, samples in (("jw2", JW2), ("jw3", JW3))}
    assert round(rates["jw2"][0], 2) == 16.77
    assert round(rates["jw2"][4], 2) == 36.32 == round(max(max(r) for r in rates.values()), 2)
    assert round(mean(rates["jw2"]), 1) == 32.3
    assert abs(mean(rates["jw3"]) - 34.5) < 0.25  # 34.5 itself does not go with its mean, its peak and 31.3 tokens
    tokens = [t for _, t in (*JW2, *JW3)]
    assert (min(tokens), max(tokens), round(mean(tokens), 1)) == (27, 32, 31.3)
    assert (min(INPUT), max(INPUT), round(mean(INPUT), 1)) == (59, 71, 66.8)


def lines() -> list[dict[str, object]]:
    """The results: jw2 was to answer ten and answered five, one request at a time, the clock running from the start."""
    card = {"gpu": "NVIDIA A30", "gpus": 1, "memory_used_bytes": MEMORY_BYTES}
    header: dict[str, object] = {
        "v": 1, "kind": "run", "planned": {"jw2": 10, "jw3": 10}, "nodes": {"jw2": card, "jw3": card},
        "baseline": None, "wall_s": WALL_S, "model": "meta-llama/Llama-3.1-8B-Instruct", "loop": "closed",
        "concurrency": 1, "task": "text summarization", "note": "samples constructed from published figures by make.py",
    }  # fmt: skip
    out, taken = [header], iter(INPUT)
    for name, samples in (("jw2", JW2), ("jw3", JW3)):
        # The clock ran for longer than the requests: the loading before them is most of the difference.
        start = round(WALL_S - sum(s[0] for s in JW3) / 1000, 3)
        for i, (ms, tokens) in enumerate(samples):
            out.append(
                {
                    "v": 1,
                    "kind": "request",
                    "node": name,
                    "request": i,
                    "start_s": round(start, 3),
                    "ttft_s": None,
                    "latency_s": ms / 1000,
                    "input_tokens": next(taken),
                    "output_tokens": tokens,
                    "ok": True,
                    "error": None,
                }
            )
            start += ms / 1000
    return out


def main() -> None:
    """Write both files."""
    check()
    text = "".join(json.dumps(line) + "\n" for line in lines())
    (HERE / "results.jsonl").write_text(text, encoding="utf-8")
    (HERE / "claims.json").write_text(json.dumps(CLAIMS, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
