"""What do `analyze` and `audit` answer where each GPU was read once?"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import gpuledger

PAGES = Path(__file__).parents[1] / "golden/inputs/files"
AT = ("--at", "2026-11-18T21:50Z")
HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], power.draw [W], power.limit [W], memory.used [MiB], "
    "memory.free [MiB], temperature.gpu, clocks.current.sm [MHz]"
)
CSV_HEADER = "device,from,to,instance,region,purchase_option,usd_per_h"


def row(gpu: int, util: str, power: float, used: int, at: str = "2026/11/18 21:50:00.000") -> str:
    readings = f"{util}, {power} W, 700.00 W, {used} MiB, {80955 - used} MiB, 40, 1980 MHz"
    return f"{at}, {gpu}, GPU-{gpu:08d}-0000-0000-0000-000000000000, NVIDIA H100 80GB HBM3, {readings}"


def query(folder: Path, *rows: str) -> Path:
    file = folder / "once.csv"
    file.write_text("\n".join([HEADER, *rows, ""]))
    return file


@pytest.fixture
def once(tmp_path: Path) -> Path:
    """Four H100: one at work, one idle, one idle with 40 GiB held, one in MIG mode whose board reports no use."""
    return query(
        tmp_path, row(0, "96 %", 630.0, 60000), row(1, "0 %", 70.0, 1), row(2, "0 %", 110.0, 40960),
        row(3, "[N/A]", 150.0, 11125),
    )  # fmt: skip


def snapshot(ended) -> dict:
    assert ended.code == 0, ended.err
    said = ended.json()
    assert said["statement"] == "snapshot"
    return said


def test_one_query_is_answered_with_what_each_gpu_does(cli, once):
    said = snapshot(cli("analyze", once, "--host", "n1", "--json"))
    assert (said["gpus"], said["at_utc"]) == (4, "2026-11-18T21:50:00Z")
    assert [g["state"] for g in said["by_gpu"]] == ["busy", "idle", "idle, memory held", None]
    assert [g["gpu_util_pct"] for g in said["by_gpu"]] == [96.0, 0.0, 0.0, None]
    assert (said["busy"], said["idle"], said["idle_held"], said["unknown"]) == (1, 2, 1, 1)
    assert said["fleet"] == {"gpu_util_pct": 32.0, "power_w": 240.0}
    first = said["by_gpu"][0]
    assert (first["power_w"], first["power_limit_w"], first["power_of_limit_pct"]) == (630.0, 700.0, 90.0)
    assert (first["memory_used_bytes"], first["memory_free_bytes"]) == (60000 << 20, 20955 << 20)
    assert (first["gpu_temp_c"], first["sm_clock_mhz"]) == (40.0, 1980.0)
    assert {"figure": "by_gpu[].gpu_util_pct", "why": "no utilization in the samples", "count": 1} in said["not_known"]


def test_an_hour_of_idle_gpus_has_its_price(cli, once):
    said = snapshot(cli("audit", once, "--host", "n1", "--price", "4", "--json"))
    assert (said["usd_per_h"], said["idle_usd_per_h"], said["gpus_priced"]) == ("16", "8", 4)
    assert [g["usd_per_h"] for g in said["by_gpu"]] == ["4"] * 4
    assert not {"monthly_usd", "paid_usd", "savings", "recommendations", "projection"} & set(said)


def test_the_terminal_says_it_in_a_sentence_and_a_line_for_each_gpu(cli, once, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ended = cli("audit", once, "--host", "n1", "--price", "4")
    words = " ".join(ended.out.split())
    assert "4 GPUs at 2026-11-18 21:50 UTC: 1 busy, 2 idle, 1 unknown; $16.00 per hour, $8.00 of it idle." in words
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    top = next(n for n, line in enumerate(lines) if line.startswith("GPU "))
    table = [line.split()[0] for line in lines[top + 2 : top + 6]]
    assert table == ["n1/0", "n1/1", "n1/2", "n1/3"]
    assert "idle, held" in lines[top + 4]
    assert "unknown" in lines[top + 5]
    analyzed = cli("analyze", once, "--host", "n1").out
    assert "4 GPUs at 2026-11-18 21:50 UTC: 1 busy, 2 idle, 1 unknown." in analyzed
    assert "$" not in analyzed


def test_a_snapshot_is_written_as_other_statements_are(cli, once):
    assert cli("audit", once, "--host", "n1", "--price", "4", "--out", "out").code == 0
    assert "$16.00 per hour" in Path("out/snapshot.html").read_text()
    assert cli("analyze", once, "--host", "n1", "--out", "gpus.csv").code == 0
    rows = list(csv.DictReader(Path("gpus.csv").read_text().splitlines()))
    assert [r["state"] for r in rows] == ["busy", "idle", "idle, memory held", ""]


@pytest.mark.parametrize(
    ("page", "gpus", "util", "power"),
    [
        ("dcgm_page.prom", 3, (98 + 0) / 2, (642.117 + 71.904 + 301.5) / 3),
        ("amd_page.prom", 2, (97 + 0) / 2, (688 + 141) / 2),
        ("smi_exporter.prom", 2, (98 + 0) / 2, (642.12 + 71.9) / 2),
    ],
)
def test_pages_of_exporters_are_snapshots_by_every_way_to_ask(cli, page, gpus, util, power):
    file = PAGES / page
    found = [snapshot(cli(command, file, *AT, "--json")) for command in ("analyze", "audit")]
    assert cli("import", file, *AT, "--lake", "lake").code == 0
    found += [snapshot(cli(command, "--lake", "lake", "--json")) for command in ("analyze", "audit")]
    here = gpuledger.read(file, at="2026-11-18T21:50Z")
    found += [here.analyze().to_dict(), here.audit().to_dict()]
    for said in found:
        assert (said["statement"], said["gpus"]) == ("snapshot", gpus)
        assert said["fleet"]["gpu_util_pct"] == pytest.approx(util)
        assert said["fleet"]["power_w"] == pytest.approx(power, rel=1e-3)
    assert [found[n]["by_gpu"] for n in (2, 4)] == [found[0]["by_gpu"]] * 2


def test_a_slice_costs_its_share_of_the_board(cli):
    said = snapshot(cli("audit", PAGES / "dcgm_page.prom", *AT, "--price", "7", "--json"))
    assert [g["usd_per_h"] for g in said["by_gpu"]] == ["7", "7", "3"]
    assert (said["usd_per_h"], said["idle_usd_per_h"]) == ("21", "7")


def test_prices_come_from_the_inventory_where_it_pays_at_that_instant(cli, once):
    uuids = [f"GPU-{n:08d}-0000-0000-0000-000000000000" for n in range(3)]
    rows = [
        f"{uuids[0]},2026-11-01,2026-12-01,,,owned,1.5",
        f"{uuids[1]},2026-11-01,2026-12-01,,,owned,2",
        f"{uuids[2]},2026-10-01,2026-11-01,,,owned,9",
    ]
    Path("paid.csv").write_text("\n".join([CSV_HEADER, *rows, ""]))
    window = ("--since", "2026-11-18T21:00Z", "--until", "2026-11-18T22:00Z")
    assert cli("audit", once, "--host", "n1", "--inventory", "paid.csv", *window, "--json").json()["statement"] != (
        "snapshot"
    )  # the inventory and the window say what is paid for
    said = snapshot(cli("audit", once, "--host", "n1", "--inventory", "paid.csv", "--price", "4", "--json"))
    assert [g["usd_per_h"] for g in said["by_gpu"]] == ["1.5", "2", None, "4"]
    assert (said["usd_per_h"], said["idle_usd_per_h"], said["gpus_priced"]) == ("7.5", "2", 3)
    text = " ".join(cli("audit", once, "--host", "n1", "--inventory", "paid.csv", "--price", "4").out.split())
    assert "$7.50 per hour for 3 of them" in text
    assert "1 GPU without a price: the inventory does not pay for it at this instant." in text


def test_a_gpu_without_a_price_is_not_free(cli, tmp_path):
    file = query(tmp_path, row(0, "0 %", 70.0, 1).replace("NVIDIA H100 80GB HBM3", "NVIDIA Nothing 1"))
    said = snapshot(cli("audit", file, "--host", "n1", "--json"))
    assert (said["usd_per_h"], said["idle_usd_per_h"], said["prices"]) == (None, None, [])
    text = " ".join(cli("audit", file, "--host", "n1").out.split())
    assert "1 GPU at 2026-11-18 21:50 UTC: 1 idle." in text
    assert "1 GPU without a price: no price for NVIDIA Nothing 1" in text


def test_what_no_gpu_reports_takes_no_room(cli, tmp_path):
    head = "timestamp, index, uuid, name, utilization.gpu [%]"
    file = tmp_path / "once.csv"
    file.write_text(f"{head}\n2026/11/18 21:50:00.000, 0, GPU-0, NVIDIA H100 80GB HBM3, 20 %\n")
    lines = cli("analyze", file, "--host", "n1").out.splitlines()
    assert next(line for line in lines if line.startswith("GPU ")).split() == [
        "GPU", "State", "Util.", "Power", "Memory", "GiB",
    ]  # fmt: skip
    assert ["n1/0", "busy", "20.0", "%", "unknown", "unknown"] in [line.split() for line in lines]
    assert "power unknown" in " ".join(lines)


def test_gpus_read_at_other_instants_are_named_by_the_first_and_the_last(cli, tmp_path):
    file = query(tmp_path, row(0, "50 %", 300.0, 10), row(1, "50 %", 300.0, 10, "2026/11/18 22:05:00.000"))
    assert "2 GPUs at 2026-11-18 21:50 to 2026-11-18 22:05 UTC: 2 busy." in " ".join(
        cli("analyze", file, "--host", "n1").out.split()
    )


def test_where_one_gpu_was_read_twice_it_is_no_snapshot(cli, tmp_path):
    later = "2026/11/18 21:50:10.000"
    file = query(tmp_path, row(0, "50 %", 300.0, 10), row(0, "50 %", 300.0, 10, later), row(1, "0 %", 70.0, 1))
    for command in ("analyze", "audit"):
        assert cli(command, file, "--host", "n1", "--json").json()["statement"] == (
            "efficiency" if command == "analyze" else "audit"
        )


def test_a_window_and_an_owner_narrow_it(cli, dcgm_csv):
    assert cli("import", dcgm_csv("one.csv", gpus=3, minutes=0), "--lake", "lake").code == 0
    said = snapshot(cli("analyze", "--lake", "lake", "--last", "1h", "--json"))
    assert said["gpus"] == 3
    assert cli("analyze", "--lake", "lake", "--namespace", "nobody", "--json").code == 2
