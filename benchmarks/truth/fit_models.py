"""How near does the law of a partly used tensor pipe come to models it was not fitted to?

    python benchmarks/truth/fit_models.py FOLDER...

Fits the four figures of `[tensor.Hopper.model]` in physics/data/pipes.toml to the models of all recordings, in half
precision and in tf32, and again without each recording, to predict that one. Needs scipy.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean, median

import numpy as np
from answers import precision_of, recorded
from scipy.optimize import least_squares

from gpuledger.catalog.gpus import get_gpu
from gpuledger.physics.pipe_facts import pipe_facts
from gpuledger.units import Unknown
from recording import Recording, read_recording

STARTS = ([0.94, 0.75, 0.92, 1.15], [0.93, 1.0, 0.9, 1.0], [0.95, 0.6, 1.0, 1.2])
ABOVE_TFLOPS = 5.0
COLUMNS = ("tensor_active", "sm_active", "sm_occupancy", "dram_active")
Rows = np.ndarray  # by model: issue, saturation, slots, memory


def models_of(recording: Recording, *, tf32: bool) -> dict[str, tuple[float, ...]]:
    """By model the share of its FLOPs an active pipe did, and what filled its SMs."""
    gpu, own, found = get_gpu("h200-sxm-141gb"), pipe_facts().tensor["Hopper"], {}
    for name in recorded(recording):
        facts, kind = recording.facts[name], precision_of(recording.facts[name])
        true = facts.get("tflop_per_s") or 0.0
        if kind not in ("bf16", "fp16", "tf32") or (kind == "tf32") != tf32 or true < ABOVE_TFLOPS:
            continue
        rows = [r for r in recording.settled(name) if r.get("sm_active") or r.get("pcie_rx_mib_s")]
        tensor, sm, slots, dram = (fmean(r.get(c, 0.0) for r in rows) / 100 for c in COLUMNS)
        saturation, of_slots = tensor / max(sm, 1e-9), slots / max(sm, 1e-9)
        partly = own.sparse_below_ratio <= saturation < own.saturated_from_ratio
        if facts.get("family") == "convolution" or not partly or of_slots < own.slim.slots_below_ratio:
            continue
        flop = gpu.tensor_flop_per_clk_per_sm(kind)
        assert not isinstance(flop, Unknown)
        assert gpu.sm_count is not None
        per_s = 1e6 * gpu.sm_count.value
        full = fmean(r["tensor_active"] / 100 * r["sm_clock_mhz"] for r in rows) * per_s * flop
        vector = fmean(r.get("fp32_active", 0.0) / 100 * r["sm_clock_mhz"] for r in rows) * per_s * 256
        found[name] = (true * 1e12 - vector) / full, saturation, of_slots, dram / sm
    return found


def law(figures: np.ndarray, rows: Rows) -> np.ndarray:
    """What the pipe is worth by the law."""
    issue, loss, full_from, weight = figures
    plain = np.maximum(rows[:, 3], pipe_facts().tensor["Hopper"].slots_as_memory_ratio * rows[:, 2])
    return np.asarray(issue - loss * np.maximum(full_from - rows[:, 1] - weight * plain, 0.0))


def fitted(rows: Rows) -> np.ndarray:
    """The four figures that suit some models best."""
    tries = [least_squares(lambda p: law(p, rows) / rows[:, 0] - 1, s, loss="soft_l1", f_scale=0.05) for s in STARTS]
    return np.asarray(min(tries, key=lambda r: float(r.cost)).x)


def show(title: str, names: list[str], errors: np.ndarray) -> None:
    off = [abs(float(e)) for e in errors]
    worst = int(np.argmax(off))
    figures = f"{100 * median(off):7.1f} % {100 * fmean(off):6.1f} % {100 * errors[worst]:+7.1f} %"
    print(f"{title:34} {len(off):4} {figures}  {names[worst]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    recordings = [read_recording(folder) for folder in parser.parse_args().folders]
    print(f"{'':34} {'':4} {'median':>9} {'mean':>8} {'worst':>9}  of")
    for tf32 in (False, True):
        found = {r.name: models_of(r, tf32=tf32) for r in recordings}
        names = [f"{recording}/{name}" for recording, models in found.items() for name in models]
        rows = np.array([row for models in found.values() for row in models.values()])
        of = np.array([name.split("/")[0] for name in names])
        figures, kind = fitted(rows), "tf32" if tf32 else "half"
        show(f"{kind}: fitted to all", names, law(figures, rows) / rows[:, 0] - 1)
        apart = np.zeros(len(rows))
        for one in set(of):
            apart[of == one] = law(fitted(rows[of != one]), rows[of == one]) / rows[of == one, 0] - 1
        show(f"{kind}: each without its recording", names, apart)
        shipped = pipe_facts().tensor["Hopper"].model[kind]
        inuse = (shipped.issue_ratio, shipped.missing_loss_ratio, shipped.full_from_ratio, shipped.plain_weight)
        show(f"{kind}: the figures in use", names, law(np.array(inuse), rows) / rows[:, 0] - 1)
        print(f"{'':34} issue, loss, full from, weight: {', '.join(f'{v:.3f}' for v in figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
