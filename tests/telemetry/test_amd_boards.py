"""Is a board with two dies counted right: two GPUs, the power of both once, half of the board's peak each?

The pages follow AMD Device Metrics Exporter 1.4 on MI250X: one serial number for both dies of a board, partitions
"none", power on the first die only. The lines of rocm-smi are those of its secondary dies.
"""

import contextlib
import json

import pytest

import gpuledger
from cost.fleets import H100, UTIL, samples, write
from gpuledger.advice.asking import asked
from gpuledger.catalog.gpus import get_gpu
from gpuledger.cli.app import run
from gpuledger.cost.emissions.build import Placing, energy_statement
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.ledger.read.scope import Scope
from gpuledger.live.focus.build import focus_export
from gpuledger.live.metrics import read_window
from gpuledger.live.otel import ENERGY, POWER, points_of
from gpuledger.physics.states import credible
from gpuledger.units import Unknown

START_S = 1_768_899_600
LABELS = {
    "card_model": "D65209", "card_series": "AMD Instinct MI250X", "card_vendor": "AMD", "container": "trainer",
    "gpu_compute_partition_type": "none", "gpu_memory_partition_type": "none", "gpu_partition_id": "0",
    "hostname": "lumi-1", "job_id": "77", "namespace": "hpc", "pod": "train-0",
}  # fmt: skip

DAY_MIN = 24 * 60


def page(
    uuids=True, minutes=120, power=(430.0, 0.0), series="AMD Instinct MI250X", energy=None, spaces=("hpc", "hpc"),
    busy=(90, 90), vram=60_000,
):  # fmt: skip
    """Dies of boards with two, minute by minute; as many as `busy` has. `energy`: watts they count."""
    dies = len(busy)
    metrics = {
        "gpu_gfx_activity": busy, "gpu_package_power": power * (dies // 2), "gpu_used_vram": (vram,) * dies,
        "gpu_free_vram": (65_488 - vram,) * dies, "gpu_junction_temperature": (70, 68) * (dies // 2),
    }  # fmt: skip
    metrics |= {} if energy is None else {"gpu_energy_consumed": energy}
    out = []
    for name, values in metrics.items():
        out.append(f"# TYPE {name} gauge")
        for die, value in enumerate(values):
            own = LABELS | {
                "card_series": series,
                "gpu_id": str(die),
                "serial_number": f"PCB{1 + die // 2}",
                "namespace": spaces[die % 2],
            }
            if uuids:
                own["gpu_uuid"] = f"aa00740{die}-0000-1000-8000-00000000000{die}"
            text = ",".join(f'{k}="{v}"' for k, v in sorted(own.items()))
            counts = name == "gpu_energy_consumed"
            now = [1e9 + value * 60e6 * m if counts else value for m in range(minutes)]
            out += [f"{name}{{{text}}} {v} {(START_S + 60 * m) * 1000}" for m, v in enumerate(now)]
    return "\n".join(out) + "\n"


def lake_of(tmp_path, **made):
    file = tmp_path / "amd.prom"
    file.write_text(page(**made))
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(file)
    return lake


@pytest.mark.parametrize("uuids", [True, False])
def test_two_dies_are_two_gpus_and_not_slices(tmp_path, uuids):
    """Also where only the serial number of the board names them."""
    rows = lake_of(tmp_path, uuids=uuids).samples().df()
    assert rows["gpu_uuid"].nunique() == 2
    assert rows["gpu_instance_id"].isna().all()
    assert len(rows) == 240


def test_a_serial_number_of_its_own_still_names_a_gpu(tmp_path):
    file = tmp_path / "amd.prom"
    file.write_text("\n".join(line for line in page(uuids=False).splitlines() if 'gpu_id="1"' not in line))
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(file)
    assert set(lake.samples().df()["gpu_uuid"]) == {"PCB1"}


def test_a_die_has_half_of_the_boards_peak_and_memory():
    gpu = get_gpu("AMD Instinct MI250X")
    assert gpu.dies == 2
    assert gpu.peak("bf16") * gpu.dies == 383
    assert gpu.memory_bytes.value * gpu.dies == 128e9
    assert get_gpu("MI300X").dies == 1


def test_a_board_goes_through_analyze_and_audit(tmp_path):
    lake = lake_of(tmp_path)
    made = lake.analyze().statement
    assert made.fleet.gpus == 2
    # The power of both dies over the board's limit, seen on the first; the second says nothing of it.
    assert made.fleet.pif == pytest.approx(430 / 560)
    bill = lake.audit(prices=1.0).statement.cost
    assert bill.gpus == 2
    assert float(bill.paid_usd) == pytest.approx(2 * 2.0, rel=0.02)
    # 430 W for two hours, once.
    assert not isinstance(bill.energy_kwh, Unknown)
    assert bill.energy_kwh == pytest.approx(0.86, rel=0.02)


def test_the_mi250_has_two_dies_too():
    die = get_gpu("AMD Instinct MI250")
    assert (die.key, die.dies) == ("mi250", 2)
    assert die.peak("bf16") * die.dies == pytest.approx(362.1)


def test_a_counter_that_stands_still_is_unknown_and_not_0_kwh(tmp_path):
    lake = lake_of(tmp_path, energy=(430.0, 0.0), series="AMD Instinct MI300X")  # two boards, not two dies
    first, second = sorted(lake.analyze().statement.per_gpu, key=lambda row: row.gpu_index)
    assert first.means.energy_kwh == pytest.approx(0.86, rel=0.02)
    assert isinstance(second.means.energy_kwh, Unknown)


@pytest.mark.parametrize("energy", [None, (430.0, 0.0)])
def test_the_owners_of_two_dies_share_the_energy_of_their_board(tmp_path, energy):
    lake = lake_of(tmp_path, energy=energy, spaces=("idle", "busy"))
    lake.analyze()
    made = energy_statement(lake.lake, price=1)
    assert {row.name: row.energy_kwh for row in made.by_owner} == pytest.approx({"idle": 0.43, "busy": 0.43}, rel=0.02)
    assert sum(row.energy_kwh for row in made.by_owner) == made.fleet.energy_kwh == pytest.approx(0.86, rel=0.02)


@pytest.mark.parametrize("energy", [None, (430.0, 0.0)])
def test_the_dies_of_a_board_share_its_power_and_energy_everywhere(tmp_path, energy):
    lake = lake_of(tmp_path, energy=energy, spaces=("idle", "busy"), busy=(0, 90))
    for row in lake.analyze().statement.per_gpu:
        assert row.means.power_w == pytest.approx(215, rel=0.02)
        assert row.means.energy_kwh == pytest.approx(0.43, rel=0.02)
    assert lake.analyze().statement.fleet.energy_kwh == pytest.approx(0.86, rel=0.02)
    rows = focus_export(lake.lake, price=1).rows
    drawn = {row["x_Namespace"]: row["x_EnergyKwh"] for row in rows}
    assert drawn == pytest.approx({"idle": 0.43, "busy": 0.43}, rel=0.02)
    (points,) = points_of(read_window(lake.lake, Scope(), asked(lake.lake.root, price=1))).values()
    assert [p.value for p in points[POWER]] == pytest.approx([215, 215], rel=0.02)
    assert [p.value for p in points[ENERGY]] == pytest.approx([0.43 * 3.6e6] * 2, rel=0.02)
    hours = energy_statement(lake.lake, placing=Placing(by_hour=True), price=1)
    assert sum(hour.energy_kwh for hour in hours.by_hour) == pytest.approx(hours.fleet.energy_kwh)


@pytest.mark.parametrize("space", ["idle", "busy"])
def test_one_owner_alone_has_its_die_s_part_of_the_board(tmp_path, space):
    lake = lake_of(tmp_path, spaces=("idle", "busy"), busy=(0, 90))
    only = Scope(namespaces=(space,))
    lake.analyze()
    (row,) = efficiency_statement(lake.lake, only).per_gpu
    assert row.means.energy_kwh == pytest.approx(0.43, rel=0.02)
    assert row.means.power_w == pytest.approx(215, rel=0.02)
    assert energy_statement(lake.lake, only, price=1).fleet.energy_kwh == pytest.approx(0.43, rel=0.02)
    (charge,) = focus_export(lake.lake, only, price=1).rows
    assert charge["x_EnergyKwh"] == pytest.approx(0.43, rel=0.02)


def test_how_intensely_one_die_worked_is_unknown_and_of_the_board_it_is_known(tmp_path):
    made = lake_of(tmp_path, spaces=("idle", "busy"), busy=(0, 90)).analyze().statement
    by_space = [row.means for row in made.by_namespace]
    for means in (*(row.means for row in made.per_gpu), *by_space):
        for figure in (means.pif, means.rfu_power_pct, means.rfu_power_idle_corrected_pct, means.efficiency_gap_pp):
            assert isinstance(figure, Unknown)
        assert "several dies" in means.rfu_power_pct.why
    assert made.fleet.rfu_power_pct == pytest.approx(100 * 430 / 560)
    (model,) = made.by_model
    assert model.means.rfu_power_pct == pytest.approx(100 * 430 / 560)


def test_power_of_0_w_is_not_known():
    import numpy as np

    found = credible({"power_w": np.array([430.0, 0.0])})["power_w"]
    assert found[0] == 430
    assert np.isnan(found[1])


def test_the_secondary_die_of_rocm_smi_loses_no_rows(tmp_path):
    head = "device,sclk clock speed:,Average Graphics Package Power (W),GPU use (%),Card Series"
    rounds = "card0,(1700Mhz),412.0,82,AMD Instinct MI250X\ncard1,(1700Mhz),N/A (Secondary die),81,AMD Instinct MI250X"
    file = tmp_path / "rocm.csv"
    file.write_text("\n".join([f"{head}\n{rounds}"] * 3) + "\n")
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest(file, at="2026-01-20", every="1s", host="h")
    assert result.rows_rejected == 0
    rows = lake.samples().df().sort_values(["gpu_uuid", "at_ms"])
    assert rows["power_w"].isna().tolist() == [False] * 3 + [True] * 3


def proposed(tmp_path, busy, **made):
    """What moving to fewer GPUs comes to, as `plan migrate --lake` says it."""
    lake_of(tmp_path, busy=busy, vram=6_000, **made)
    out = tmp_path / "plan.json"
    with out.open("w") as file, contextlib.redirect_stdout(file):
        assert run(["plan", "migrate", "--lake", str(tmp_path / "lake"), "--price", "2", "--json"]) == 0
    return out.read_text(), json.loads(out.read_text())["namespaces"][0]["holdings"][0]


def test_a_plan_gives_back_whole_boards_only(tmp_path):
    """Loads of 60, 45, 35 and 10 % fit on three dies: one die cannot be given back without the other of its board."""
    text, plan = proposed(tmp_path, (60, 45, 35, 10))
    assert plan["move"] is None
    refused = next(r for r in plan["refused"] if r["kind"] == "fewer")
    assert refused["why"].startswith("3 of 4 dies would do, but a board of MI250X has 2 dies")
    assert "DCGM" not in text


def test_a_plan_of_two_boards_that_fit_on_one_says_what_it_rounds(tmp_path):
    text, plan = proposed(tmp_path, (20, 15, 15, 10))
    assert plan["move"]["gpus_after"] == [2, 2, 2]
    assert "only whole boards are bought, rented or given back" in plan["move"]["fits"]
    assert "which dies share a board is not in the samples" in text


def test_what_is_not_recorded_is_not_asked_for_in_the_words_of_another_vendor(tmp_path):
    text, plan = proposed(tmp_path, (90, 90))
    others = {r["gpu_name"]: r for r in plan["refused"] if r["reason"] == "not measured"}
    assert others["MI300X"]["why"] == "which pipes are busy is not recorded"
    assert "DCGM" not in text
    assert "MPS" not in text


def test_a_move_without_a_price_is_in_the_headline_too(tmp_path, capsys):
    lake = lake_of(tmp_path, busy=(20, 15, 15, 10), vram=6_000, minutes=DAY_MIN)
    lake.ingest(write(tmp_path / "h100.csv", samples(range(DAY_MIN), "GPU-h", H100, **{UTIL: 95})))
    assert run(["plan", "migrate", "--lake", str(tmp_path / "lake"), "--price", "h100-sxm=2"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "4 GPUs without a price not included. Of those hpc: put 4 GPUs together on 2" in words


def test_a_die_to_give_back_comes_with_a_warning_that_boards_go_whole(tmp_path, capsys):
    lake_of(tmp_path, busy=(90, 0), vram=0, minutes=DAY_MIN)
    assert run(["ask", "give-back", "--lake", str(tmp_path / "lake"), "--price", "2"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "1 GPU to give back" in words
    assert "A board of MI250X has 2 dies, and only whole boards are bought, rented or given back" in words
