from __future__ import annotations

from typing import Any

import pytest
from handmade import H100, HOUR, START, Books, line

from gpuledger.cost.buckets import Lines, Piece, Segment
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.calibration import Calibration, MeasuredGpu
from gpuledger.physics.evidence import ModelFacts, PipeRates
from gpuledger.units import PPM

MIN = 60_000
# 60 minutes: 6 idle, 6 idle-held, 6 unstated, 42 active of which 30 are busy.
SHAPE: dict[str, Any] = {
    "idle_ms": 6 * MIN, "idle_held_ms": 6 * MIN, "unstated_ms": 6 * MIN, "busy_ppm_ms": 30 * MIN * PPM,
}  # fmt: skip


def pieces(books: Books, *rows: dict[str, Any], calibration: Calibration | None = None, **scope: Any) -> list[Piece]:
    lake = books(*rows)
    found = {(r["gpu_uuid"], r["gpu_instance_id"]) for r in rows}
    segments = [Segment(i, *device, START, START + 48 * HOUR) for i, device in enumerate(sorted(found, key=str))]
    with Lines(lake, Scope(**scope)) as lines:
        return lines.pieces(segments, calibration)


def minutes(piece: Piece) -> dict[str, float]:
    names = ("productive", "stalled", "underused", "idle", "idle_held", "unstated")
    return {n: piece.sums[f"{n}_ms"] / MIN for n in names}


def tensor_for(ratio: float, known_ms: int = HOUR) -> dict[str, int]:
    """Tensor activity that proves this share of the dense peak over the time it was recorded."""
    rates = ModelFacts(H100).rates(None)
    assert isinstance(rates, PipeRates)
    return {"tensor_ms": known_ms, "tensor_ppm_mhz_ms": round(ratio * known_ms / rates.per_activity["matrix"][1])}


def test_counters_say_what_of_the_busy_time_was_productive(books: Books) -> None:
    # A quarter of the peak over 54 stated minutes is 13.5 minutes of full work.
    (piece,) = pieces(books, line(**SHAPE, **tensor_for(0.25)))
    assert minutes(piece) == pytest.approx(
        {"productive": 13.5, "stalled": 16.5, "underused": 12, "idle": 6, "idle_held": 6, "unstated": 6}, abs=1e-4
    )
    assert sum(minutes(piece).values()) == 60
    assert piece.sums["by_counters_ms"] == 42 * MIN


def test_the_tensor_pipe_by_pencil(books: Books) -> None:
    # Half the pipe, at the clock the peak is rated at, issuing at 0.95: 0.475 of the peak (printed peaks are rounded).
    gpu = ModelFacts(H100).gpu
    mhz = round(gpu.tensor_rated_mhz.value)  # type: ignore[union-attr]
    (piece,) = pieces(books, line(busy_ppm_ms=HOUR * PPM, tensor_ms=HOUR, tensor_ppm_mhz_ms=PPM // 2 * mhz * HOUR))
    assert piece.sums["productive_ms"] / HOUR == pytest.approx(0.475, rel=0.03)
    # The work itself: 0.475 x 989 TFLOP/s x 3600 s.
    assert piece.sums["middle_gflop"] == pytest.approx(0.475 * 989e3 * 3600, rel=0.03)
    assert piece.sums["low_gflop"] < piece.sums["middle_gflop"] < piece.sums["high_gflop"]


def test_memory_traffic_counts_where_it_is_the_larger(books: Books) -> None:
    busy = line(busy_ppm_ms=HOUR * PPM, dram_ms=HOUR, dram_ppm_ms=HOUR * PPM * 8 // 10, **tensor_for(0.1))
    (piece,) = pieces(books, busy)
    assert piece.sums["productive_ms"] == HOUR * 8 // 10
    measured = Calibration({"GPU-a": MeasuredGpu("GPU-a", "2026-01", bandwidth_bytes_per_s=3.35e12 * 0.9)})
    (over_measured,) = pieces(books, busy, calibration=measured)
    assert over_measured.sums["productive_ms"] / HOUR == pytest.approx(0.8 / 0.9, rel=1e-3)


def test_productive_time_is_never_more_than_busy_time(books: Books) -> None:
    (piece,) = pieces(books, line(**SHAPE, **tensor_for(0.9)))
    assert minutes(piece)["productive"] == 30
    assert minutes(piece)["stalled"] == 0


def test_counters_known_for_part_of_the_time_stand_for_all_of_it(books: Books) -> None:
    (piece,) = pieces(books, line(busy_ppm_ms=HOUR * PPM, **tensor_for(0.5, HOUR // 4)))
    assert piece.sums["productive_ms"] / HOUR == pytest.approx(0.5, abs=1e-6)


def test_power_alone_is_corrected_for_idle_power_and_flagged(books: Books) -> None:
    # 385 W of 700 W with 70 W idle: (385 - 70) / (700 - 70) = 1/2 of the 42 active minutes.
    (piece,) = pieces(books, line(**SHAPE, active_pif_ms=HOUR, active_pif_uj=385_000 * HOUR, pif_ms=HOUR))
    assert minutes(piece)["productive"] == 21
    assert (piece.sums["by_power_ms"], piece.sums["by_counters_ms"]) == (42 * MIN, 0)


def test_measured_idle_power_replaces_the_catalogs(books: Books) -> None:
    measured = Calibration({"GPU-a": MeasuredGpu("GPU-a", "2026-01", idle_power_w=100)})
    row = line(busy_ppm_ms=HOUR * PPM, active_pif_ms=HOUR, active_pif_uj=400_000 * HOUR)
    (piece,) = pieces(books, row, calibration=measured)
    assert piece.sums["productive_ms"] == HOUR // 2


def test_without_any_evidence_busy_time_counts_as_productive_and_is_flagged(books: Books) -> None:
    (piece,) = pieces(books, line(**SHAPE, gpu_model="Banana 9000", board_mw=None))
    assert minutes(piece)["productive"] == 30
    assert piece.sums["by_none_ms"] == 42 * MIN


def test_a_model_the_catalog_cannot_rate_uses_the_bare_tensor_activity(books: Books) -> None:
    row = line(gpu_model="Banana 9000", busy_ppm_ms=HOUR * PPM, tensor_ms=HOUR, tensor_ppm_ms=HOUR * PPM * 3 // 10)
    (piece,) = pieces(books, row)
    assert piece.sums["productive_ms"] == HOUR * 3 // 10
    assert piece.sums["counted_ms"] == 0


def test_productive_time_does_not_mix_lines(books: Books) -> None:
    # One busy hour without work and one at full work: not two half-productive hours with half the busy time.
    rows = [line(0, busy_ppm_ms=HOUR * PPM // 2, **tensor_for(0.9)), line(1, busy_ppm_ms=HOUR * PPM, **tensor_for(0))]
    (piece,) = pieces(books, *rows)
    assert piece.sums["productive_ms"] == HOUR // 2
    assert piece.sums["stalled_ms"] == HOUR


def test_a_line_is_cut_where_a_segment_ends_and_loses_nothing(books: Books) -> None:
    lake = books(line(idle_ms=HOUR // 2 + 1, busy_ppm_ms=HOUR // 2 * PPM, energy_mj=10**10 + 7))
    cut = START + 1_234_567
    segments = [Segment(0, "GPU-a", None, START, cut), Segment(1, "GPU-a", None, cut, START + HOUR)]
    with Lines(lake, Scope()) as lines:
        first, second = lines.pieces(segments)
    assert first.sums["observed_ms"] == 1_234_567
    assert first.sums["observed_ms"] + second.sums["observed_ms"] == HOUR
    assert first.sums["idle_ms"] + second.sums["idle_ms"] == HOUR // 2 + 1
    assert first.sums["energy_mj"] + second.sums["energy_mj"] == 10**10 + 7


def test_only_the_owners_asked_for_are_wanted(books: Books) -> None:
    found = pieces(books, line(0), line(1, namespace="n2"), line(2, namespace=None), namespaces=("n1",))
    assert {p.namespace: p.wanted for p in found} == {"n1": True, "n2": False, None: False}
