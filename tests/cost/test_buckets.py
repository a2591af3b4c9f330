from __future__ import annotations

from typing import Any

import pytest
from handmade import BUSY, H100, HOUR, START, Books, line

from gpuledger.cost.buckets import WAITS
from gpuledger.cost.pieces import Piece, Segment, read_pieces
from gpuledger.ledger.read.books import Books as Reader
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.calibration import Calibration, MeasuredGpu
from gpuledger.physics.evidence import ModelFacts, PipeRates
from gpuledger.units import PPM

MIN = 60_000
NOBODY_KNOWS = {"gpu_model": "Banana 9000", "limit_mw": None}


def pieces(books: Books, *rows: dict[str, Any], calibration: Calibration | None = None, **scope: Any) -> list[Piece]:
    lake = books(*rows)
    found = {(r["gpu_uuid"], r["gpu_instance_id"]) for r in rows}
    segments = [Segment(i, *device, START, START + 48 * HOUR) for i, device in enumerate(sorted(found, key=str))]
    return read_pieces(Reader(lake, Scope(**scope)), segments, calibration)[0]


def shape(**work: Any) -> list[dict[str, Any]]:
    """An hour in its states: 6 minutes idle, 6 idle-held, 6 unstated, and 42 of work of which 30 are busy."""
    return [
        line(observed_ms=6 * MIN, idle_ms=6 * MIN),
        line(observed_ms=6 * MIN, idle_held_ms=6 * MIN),
        line(observed_ms=6 * MIN, unstated_ms=6 * MIN, state="unstated"),
        line(observed_ms=42 * MIN, busy_ppm_ms=30 * MIN * PPM, **work),
    ]


def minutes(piece: Piece) -> dict[str, float]:
    names = ("productive", "stalled", "unrated", "underused", "idle", "idle_held", "unstated")
    return {n: piece.sums[f"{n}_ms"] / MIN for n in names}


def tensor_for(ratio: float, known_ms: int, state: str = "matrix", **more: Any) -> dict[str, Any]:
    """Tensor activity that proves this share of the dense peak over the time it was recorded; vector pipes at rest."""
    rates = ModelFacts(H100).rates(None)
    assert isinstance(rates, PipeRates)
    activity = round(ratio * known_ms / float(rates.per_activity["matrix"][1]))
    recorded = {"tensor_ms": known_ms, "tensor_ppm_mhz_ms": activity, "fp32_ms": known_ms}
    return recorded | {"state": state} | more


def test_counters_say_what_of_the_busy_time_was_productive(books: Books) -> None:
    # A quarter of the peak over 42 working minutes is 10.5 minutes of full work; 30 - 10.5 stalled.
    (piece,) = pieces(books, *shape(**tensor_for(0.25, 42 * MIN)))
    assert minutes(piece) == pytest.approx(
        {
            "productive": 10.5, "stalled": 19.5, "unrated": 0, "underused": 12, "idle": 6, "idle_held": 6,
            "unstated": 6,
        },
        abs=1e-4,
    )  # fmt: skip
    assert sum(minutes(piece).values()) == 60
    assert piece.sums["by_counters_ms"] == 42 * MIN


def test_the_tensor_pipe_by_pencil(books: Books) -> None:
    # Half the pipe, at the clock the peak is rated at, issuing at 0.95: 0.475 of the peak (printed peaks are rounded).
    gpu = ModelFacts(H100).gpu
    mhz = round(gpu.tensor_rated_mhz.value)  # type: ignore[union-attr]
    work = {"tensor_ms": HOUR, "tensor_ppm_mhz_ms": PPM // 2 * mhz * HOUR, "fp32_ms": HOUR, "state": "matrix"}
    (piece,) = pieces(books, line(busy_ppm_ms=HOUR * PPM, **work))
    assert piece.sums["productive_ms"] / HOUR == pytest.approx(0.475, rel=0.03)
    # The work itself: 0.475 x 989 TFLOP/s x 3600 s.
    assert piece.sums["middle_gflop"] == pytest.approx(0.475 * 989e3 * 3600, rel=0.03)
    assert piece.sums["low_gflop"] < piece.sums["middle_gflop"] < piece.sums["high_gflop"]


def test_memory_bound_time_is_rated_by_the_memory_interface(books: Books) -> None:
    busy = line(
        busy_ppm_ms=HOUR * PPM, dram_ms=HOUR, dram_ppm_ms=HOUR * PPM * 8 // 10, **tensor_for(0.1, HOUR, "memory")
    )
    (piece,) = pieces(books, busy)
    assert piece.sums["productive_ms"] == HOUR * 8 // 10
    measured = Calibration({"GPU-a": MeasuredGpu("GPU-a", "2026-01", bandwidth_bytes_per_s=3.35e12 * 0.9)})
    (over_measured,) = pieces(books, busy, calibration=measured)
    assert over_measured.sums["productive_ms"] / HOUR == pytest.approx(0.8 / 0.9, rel=1e-3)


def test_each_state_is_rated_by_what_limits_it(books: Books) -> None:
    # Half an hour of products at 0.8 of the peak with the memory at 0.1; half an hour of copies at 0.8 of the
    # interface with the pipe at 0.1: 24 + 24 minutes. The means of the hour (0.45 and 0.45) would give 27.
    half = HOUR // 2
    rows = [
        line(observed_ms=half, busy_ppm_ms=half * PPM, dram_ms=half, dram_ppm_ms=half * PPM * dram // 10, **work)
        for dram, work in ((1, tensor_for(0.8, half)), (8, tensor_for(0.1, half, "memory")))
    ]
    (piece,) = pieces(books, *rows)
    assert minutes(piece)["productive"] == pytest.approx(48, abs=1e-3)
    assert minutes(piece)["stalled"] == pytest.approx(12, abs=1e-3)


def test_productive_time_is_never_more_than_busy_time(books: Books) -> None:
    (piece,) = pieces(books, *shape(**tensor_for(0.9, 42 * MIN)))
    assert minutes(piece)["productive"] == 30
    assert minutes(piece)["stalled"] == 0


def test_power_alone_is_corrected_for_idle_power_and_flagged(books: Books) -> None:
    # 385 W of 700 W with 70 W idle: (385 - 70) / (700 - 70) = 1/2 of the 42 working minutes.
    (piece,) = pieces(books, *shape(pif_ms=42 * MIN, pif_uj=385_000 * 42 * MIN))
    assert minutes(piece)["productive"] == 21
    assert minutes(piece)["stalled"] == 9
    assert (piece.sums["by_power_ms"], piece.sums["by_counters_ms"]) == (42 * MIN, 0)


def test_measured_idle_power_replaces_the_catalogs(books: Books) -> None:
    measured = Calibration({"GPU-a": MeasuredGpu("GPU-a", "2026-01", idle_power_w=100)})
    row = line(busy_ppm_ms=HOUR * PPM, pif_ms=HOUR, pif_uj=400_000 * HOUR)
    (piece,) = pieces(books, row, calibration=measured)
    assert piece.sums["productive_ms"] == HOUR // 2


def test_without_any_evidence_busy_time_is_unrated_and_flagged(books: Books) -> None:
    (piece,) = pieces(books, *shape(**NOBODY_KNOWS))
    assert minutes(piece)["unrated"] == 30
    assert (minutes(piece)["productive"], minutes(piece)["stalled"]) == (0, 0)
    assert piece.sums["by_none_ms"] == 42 * MIN


def test_power_without_a_known_idle_power_rates_nothing(books: Books) -> None:
    row = line(busy_ppm_ms=HOUR * PPM, pif_ms=HOUR, pif_uj=400_000 * HOUR, gpu_model="Banana 9000")
    (piece,) = pieces(books, row)
    assert (piece.sums["unrated_ms"], piece.sums["productive_ms"]) == (HOUR, 0)
    # A measured idle power is as good as the catalog's: (400 - 100) / (700 - 100) = 1/2.
    measured = Calibration({"GPU-a": MeasuredGpu("GPU-a", "2026-01", idle_power_w=100)})
    (rated,) = pieces(books, row, calibration=measured)
    assert (rated.sums["unrated_ms"], rated.sums["productive_ms"]) == (0, HOUR // 2)


def test_a_model_the_catalog_cannot_rate_is_unrated_whatever_its_tensor_pipe_does(books: Books) -> None:
    row = line(gpu_model="Banana 9000", busy_ppm_ms=HOUR * PPM, tensor_ms=HOUR, tensor_ppm_ms=HOUR * PPM * 3 // 10)
    (piece,) = pieces(books, row)
    assert (piece.sums["unrated_ms"], piece.sums["productive_ms"]) == (HOUR, 0)
    assert (piece.sums["by_counters_ms"], piece.sums["by_none_ms"], piece.sums["counted_ms"]) == (0, HOUR, 0)


def test_memory_activity_alone_proves_use_and_no_waste(books: Books) -> None:
    row = line(**NOBODY_KNOWS, busy_ppm_ms=HOUR * PPM, dram_ms=HOUR, dram_ppm_ms=HOUR * PPM // 4)
    (piece,) = pieces(books, row)
    assert (piece.sums["productive_ms"], piece.sums["unrated_ms"], piece.sums["stalled_ms"]) == (
        HOUR // 4, HOUR * 3 // 4, 0,
    )  # fmt: skip


def test_where_a_pipe_is_not_recorded_the_rest_is_unrated_not_stalled(books: Books) -> None:
    row = line(busy_ppm_ms=HOUR * PPM, **tensor_for(0.25, HOUR, "matrix-unseen", fp32_ms=0))
    (piece,) = pieces(books, row)
    assert minutes(piece)["productive"] == pytest.approx(15, abs=1e-3)
    assert minutes(piece)["unrated"] == pytest.approx(45, abs=1e-3)
    assert minutes(piece)["stalled"] == 0
    assert piece.sums["tensor_only_ms"] == HOUR


def test_at_a_power_limit_below_the_boards_own_all_busy_time_is_productive(books: Books) -> None:
    (piece,) = pieces(books, *shape(**tensor_for(0.25, 42 * MIN, "capped"), limit_mw=450_000))
    assert (minutes(piece)["productive"], minutes(piece)["stalled"]) == (30, 0)
    assert piece.sums["capped_ms"] == 42 * MIN


def test_waits_are_underused_time(books: Books) -> None:
    waits = dict(zip(WAITS, (MIN, 2 * MIN, 3 * MIN), strict=True))
    (piece,) = pieces(
        books, line(observed_ms=6 * MIN, state="wait", **waits), line(observed_ms=54 * MIN, idle_ms=54 * MIN)
    )
    assert (minutes(piece)["underused"], minutes(piece)["idle"]) == (6, 54)
    assert piece.sums["waiting_ms"] == 6 * MIN


def test_idle_time_with_memory_not_recorded_is_idle_and_counted_apart(books: Books) -> None:
    (piece,) = pieces(books, line(idle_unknown_ms=HOUR))
    assert (piece.sums["idle_ms"], piece.sums["idle_held_ms"], piece.sums["idle_unknown_ms"]) == (HOUR, 0, HOUR)


def test_productive_time_does_not_mix_lines(books: Books) -> None:
    # One busy hour without work and one at full work: not two half-productive hours with half the busy time.
    rows = [
        line(0, busy_ppm_ms=HOUR * PPM // 2, **tensor_for(0.9, HOUR)),
        line(1, busy_ppm_ms=HOUR * PPM, **tensor_for(0, HOUR, "light")),
    ]
    (piece,) = pieces(books, *rows)
    assert piece.sums["productive_ms"] == HOUR // 2
    assert piece.sums["stalled_ms"] == HOUR


def test_lines_without_a_state_are_rated_by_the_better_of_pipes_and_memory(books: Books) -> None:
    # As version 1 of the ledger left them, where the samples are gone.
    work = tensor_for(0.25, HOUR, dram_ms=HOUR, dram_ppm_ms=HOUR * PPM // 2) | {"state": None}
    (piece,) = pieces(books, line(busy_ppm_ms=HOUR * PPM, **work))
    assert (piece.sums["productive_ms"], piece.sums["stalled_ms"]) == (HOUR // 2, HOUR // 2)
    (blind,) = pieces(books, line(busy_ppm_ms=HOUR * PPM, **(work | {"fp32_ms": 0})))
    assert (blind.sums["productive_ms"], blind.sums["unrated_ms"]) == (HOUR // 2, HOUR // 2)


def test_a_line_is_cut_where_a_segment_ends_and_loses_nothing(books: Books) -> None:
    lake = books(line(idle_ms=HOUR // 2 + 1, busy_ppm_ms=HOUR // 2 * PPM, energy_mj=10**10 + 7))
    cut = START + 1_234_567
    segments = [Segment(0, "GPU-a", None, START, cut), Segment(1, "GPU-a", None, cut, START + HOUR)]
    first, second = read_pieces(Reader(lake, Scope()), segments)[0]
    assert first.sums["observed_ms"] == 1_234_567
    assert first.sums["observed_ms"] + second.sums["observed_ms"] == HOUR
    assert first.sums["idle_ms"] + second.sums["idle_ms"] == HOUR // 2 + 1
    assert first.sums["energy_mj"] + second.sums["energy_mj"] == 10**10 + 7


def test_only_the_owners_asked_for_are_wanted(books: Books) -> None:
    rows = line(0, **BUSY), line(1, namespace="n2", **BUSY), line(2, namespace=None, **BUSY)
    found = pieces(books, *rows, namespaces=("n1",))
    assert {p.namespace: p.wanted for p in found} == {"n1": True, "n2": False, None: False}
