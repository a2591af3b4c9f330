"""A real Prometheus: what it scraped or holds comes into the lake as a direct import of the same samples would."""

import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import gpuledger
from dcgm_names import FIELDS
from gpuledger.telemetry.servers.prometheus import Prometheus
from gpuledger.telemetry.synthetic import FleetSpec, batches
from servers.real_prometheus import LABELS, Exporter, RealPrometheus, line, needs_prometheus

pytestmark = needs_prometheus

SCRAPES = 8
OWN = {"namespace": "monitoring", "pod": "exporter-x7x7x", "container": "exporter"}
FIRST = {"namespace": "ml", "pod": "train-0", "container": "main"}
SECOND = {"namespace": "vision", "pod": "eval-1", "container": "main"}
OWNERS = (FIRST, {}, FIRST, FIRST)
# A field of the exporter that is not read.
NOT_READ = "DCGM_FI_DEV_OF_TOMORROW"


def fleet(gpus, days, step_s, start="2026-01-20"):
    """The synthetic fleet's export as one table."""
    rows = [b.to_pandas() for b in batches(FleetSpec(gpus=gpus, days=days, step_s=step_s, start=start, seed=11))]
    table = pd.concat(rows, ignore_index=True)
    for column in table.select_dtypes("category"):
        table[column] = table[column].astype(object)
    return table


def pages(table, prefix):
    """A page per instant. GPU 0 changes its owner halfway, GPU 1 has none, GPU 2 vanishes halfway, GPU 3 has one.

    The exporter of "R" is a current one: its fields have the names and units of dcgm-exporter 4.9.
    """
    current = {old: (new, by) for old, new, by, _ in FIELDS} if prefix == "R" else {}
    metrics = [c for c in table.columns if c.startswith("DCGM_")]
    out = []
    for number, (_, rows) in enumerate(table.groupby("SCRAPETIME", sort=True)):
        lines = []
        for index, row in enumerate(rows.to_dict("records")):
            late = number >= SCRAPES // 2
            if index == 2 and late:
                continue
            owner = SECOND if index == 0 and late else OWNERS[index]
            labels = {"gpu": str(index), **{new: row[old] for old, new in LABELS.items()}, **owner}
            labels["UUID"] = f"{prefix}-{index}"
            for metric in metrics:
                name, by = current.get(metric, (metric, 1))
                lines.append(line(name, labels, row[metric] * by))
        lines.append(line(NOT_READ, {"gpu": "0", "UUID": f"{prefix}-0"}, 1))
        out.append("\n".join(lines) + "\n")
    return out


def scrapes(honored, renamed):
    target = "{targets: ['%s'], labels: {namespace: monitoring, pod: exporter-x7x7x, container: exporter}}"
    return (
        f"\n- {{job_name: honored, honor_labels: true, static_configs: [{target % honored}]}}"
        f"\n- {{job_name: renamed, honor_labels: false, static_configs: [{target % renamed}]}}"
    )


@pytest.fixture(scope="module")
def scraped(tmp_path_factory):
    """A lake imported from a Prometheus that scraped two exporters, and the samples by promtool."""
    folder = tmp_path_factory.mktemp("scraped")
    table = fleet(gpus=4, days=SCRAPES * 60 / 86_400, step_s=60)
    with Exporter(pages(table, "H")) as honored, Exporter(pages(table, "R")) as renamed:
        prometheus = RealPrometheus(folder / "prometheus", scrapes(honored.at, renamed.at))
        with prometheus:
            for _ in range(400):
                if min(honored.served, renamed.served) > SCRAPES + 1:
                    break
                time.sleep(0.05)
            lake = gpuledger.open(folder / "lake")
            result = lake.pull(prometheus.address, since=round(time.time() * 1000) - 600_000, delay="1s")
    return lake, result, samples(prometheus.dump()), table


def rows_of(lake):
    """The samples of a lake in order, labels as plain text."""
    rows = lake.samples().df()
    for column in rows.select_dtypes("category"):
        rows[column] = rows[column].astype(object).where(rows[column].notna(), "")
    return rows.sort_values(["gpu_uuid", "at_ms"]).reset_index(drop=True)


def samples(dump):
    """What promtool dumped, as one row per device and instant, with the owner by the rules of the test's own labels."""
    rows = []
    for found in re.finditer(r"^\{(.*)\} (\S+) (\d+)$", dump, re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[1]))
        if not labels["__name__"].startswith("DCGM_") or found[2] == "NaN" or labels["__name__"] == NOT_READ:
            continue
        plain = {name: labels.get(name, "") for name in OWN}
        if labels["job"] == "renamed":
            plain = {name: labels.get(f"exported_{name}", "") for name in OWN}
        elif plain["pod"] == OWN["pod"]:
            plain = dict.fromkeys(OWN, "")
        kept = {
            "UUID": labels["UUID"],
            "modelName": labels["modelName"],
            "Hostname": labels["Hostname"],
            "gpu": labels["gpu"],
        }
        rows.append({**kept, **plain, "time": int(found[3]), "metric": labels["__name__"], "value": float(found[2])})
    table = pd.DataFrame(rows)
    keys = [c for c in table.columns if c not in ("metric", "value")]
    return table.pivot(index=keys, columns="metric", values="value").reset_index()


def test_each_sample_comes_once_at_its_own_time(scraped):
    lake, result, wanted, _ = scraped
    rows = rows_of(lake)
    wanted = wanted[wanted["time"] <= rows["at_ms"].max()]
    assert len(rows) > 8 * SCRAPES // 2
    assert result.rows_rejected == 0
    key = rows[["gpu_uuid", "at_ms"]].values.tolist()
    assert key == wanted[["UUID", "time"]].sort_values(["UUID", "time"]).values.tolist()


def test_metrics_of_the_exporters_that_are_not_read_are_named(scraped):
    _, result, _, _ = scraped
    assert f"1 metric not read: {NOT_READ}" in result.notes


def test_what_was_served_is_what_was_imported(scraped):
    lake, _, _, table = scraped
    rows = rows_of(lake)
    served = table.groupby("SCRAPETIME", sort=True)["DCGM_FI_DEV_POWER_USAGE"].nth(0).tolist()
    for device in ("H-0", "R-0"):
        assert rows[rows["gpu_uuid"] == device]["power_w"].tolist()[:SCRAPES] == served


@pytest.mark.parametrize("job", ["H", "R"], ids=["honor_labels", "exported"])
def test_owners_under_both_settings_of_honor_labels(scraped, job):
    lake, _, _, _ = scraped
    rows = rows_of(lake)
    owners = {d: [tuple(o) for o in g[list(FIRST)].values.tolist()] for d, g in rows.groupby("gpu_uuid")}
    none, first, second = ("", "", ""), tuple(FIRST.values()), tuple(SECOND.values())
    assert owners[f"{job}-0"][: SCRAPES // 2] == [first] * (SCRAPES // 2)
    assert set(owners[f"{job}-0"][SCRAPES // 2 :]) == {second}
    assert set(owners[f"{job}-1"]) == {none}
    assert set(owners[f"{job}-3"]) == {first}
    assert len(owners[f"{job}-2"]) == SCRAPES // 2


def test_the_statement_is_that_of_a_direct_import(scraped, tmp_path):
    lake, _, wanted, _ = scraped
    last = lake.samples().df()["at_ms"].max()
    file = tmp_path / "direct.csv"
    wanted[wanted["time"] <= last].to_csv(file, index=False)
    direct = gpuledger.open(tmp_path / "direct")
    direct.ingest(file)
    assert lake.analyze().to_dict() == direct.analyze().to_dict()
    assert lake.audit(prices=2).to_dict() == direct.audit(prices=2).to_dict()


def in_ms(stamps):
    return stamps.astype("datetime64[ms, UTC]").astype("int64")


def openmetrics(table, file, more=()):
    """The export as OpenMetrics text with its own times."""
    metrics = [c for c in table.columns if c.startswith("DCGM_")]
    stamps = in_ms(table["SCRAPETIME"]).tolist()
    names = {**LABELS, "NAMESPACE": "namespace", "POD": "pod", "CONTAINER": "container", "CLUSTERNAME": "cluster"}
    labels = [dict(zip(names.values(), row, strict=True)) for row in table[list(names)].itertuples(index=False)]
    with file.open("w") as out:
        for metric in metrics:
            for own, value, at in zip(labels, table[metric].tolist(), stamps, strict=True):
                out.write(line(metric, own, value, at) + "\n")
        out.writelines(f"{text}\n" for text in more)
        out.write("# EOF\n")


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory):
    """A Prometheus with a day of a fleet, with kube-state-metrics for one of its pods, and the fleet's export."""
    folder = tmp_path_factory.mktemp("backfilled")
    table = fleet(gpus=4, days=0.5, step_s=60)
    at = int(in_ms(table["SCRAPETIME"]).min())
    row = table.iloc[0]
    own = {"namespace": row["NAMESPACE"], "pod": row["POD"]}
    by_set = {"owner_kind": "ReplicaSet", "owner_name": "web-5d9"}
    by_deployment = {"replicaset": "web-5d9", "owner_kind": "Deployment", "owner_name": "web"}
    kube = [
        line("kube_pod_owner", {**own, **by_set}, 1, at),
        line("kube_replicaset_owner", {"namespace": own["namespace"], **by_deployment}, 1, at),
    ]
    openmetrics(table, folder / "fleet.om", kube)
    prometheus = RealPrometheus(folder / "prometheus")
    prometheus.backfill(folder / "fleet.om")
    table.to_parquet(folder / "fleet.parquet")
    with prometheus:
        yield prometheus, folder / "fleet.parquet", own


def test_the_workload_of_a_pod_comes_from_kube_state_metrics(backfilled, tmp_path):
    prometheus, _, own = backfilled
    lake = gpuledger.open(tmp_path / "lake")
    lake.pull(prometheus.address, since="2026-01-20", until="2026-01-21")
    rows = rows_of(lake)
    mine = (rows["pod"] == own["pod"]) & (rows["namespace"] == own["namespace"])
    assert mine.any()
    assert set(rows["workload"][mine]) == {"web"}
    assert "web" not in set(rows["workload"][~mine])


def test_windows_cut_otherwise_give_the_same_rows(backfilled, tmp_path, monkeypatch):
    prometheus, _, _ = backfilled
    lake = gpuledger.open(tmp_path / "lake")
    first = lake.pull(prometheus.address, since="2026-01-20", until="2026-01-21")
    next((tmp_path / "lake/servers").iterdir()).unlink()
    monkeypatch.setattr("gpuledger.lake.pulling.FIRST_WINDOW_MS", 1_000_000)
    again = lake.pull(prometheus.address, since="2026-01-20", until="2026-01-21")
    assert (again.rows_added, again.rows_duplicate, again.rows_rejected) == (0, first.rows_added, 0)


def test_ranges_with_a_step_give_the_same_rows(backfilled, tmp_path, monkeypatch):
    prometheus, _, _ = backfilled
    lakes = [gpuledger.open(tmp_path / name) for name in ("raw", "stepped")]
    window = {"since": "2026-01-20T01:00Z", "until": "2026-01-20T03:00Z"}
    lakes[0].pull(prometheus.address, **window)
    monkeypatch.setattr(Prometheus, "_samples", Prometheus._stepped)
    lakes[1].pull(prometheus.address, step="60s", **window)
    pd.testing.assert_frame_equal(*(rows_of(lake) for lake in lakes))


def started(prometheus, folder, *options):
    """The command that imports from a server, running."""
    command = [sys.executable, "-m", "gpuledger", "import", prometheus.address, "--lake", str(folder), *options]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def test_an_import_that_was_killed_goes_on_where_it_was(backfilled, tmp_path):
    prometheus, export, _ = backfilled
    folder = tmp_path / "lake"
    window = ("--since", "2026-01-20", "--until", "2026-01-21")
    with started(prometheus, folder, *window) as first:
        while first.poll() is None and not list(folder.glob("servers/*.json")):
            time.sleep(0.002)
        first.send_signal(signal.SIGKILL)
    with started(prometheus, folder, *window) as second:
        assert second.wait(120) == 0, second.stderr.read()
    direct = gpuledger.open(tmp_path / "direct")
    direct.ingest(export)
    columns = ["at_ms", "gpu_uuid", "power_w", "gpu_util_ratio", "energy_mj", "tensor_ratio", "pod", "namespace"]
    pd.testing.assert_frame_equal(rows_of(gpuledger.open(folder))[columns], rows_of(direct)[columns])


def following(prometheus, exporter, *options):
    """The import, started once there is something to import."""
    while exporter.served < 4:
        time.sleep(0.05)
    return started(prometheus, *options)


def test_follow_goes_on_until_it_is_stopped(tmp_path):
    table = fleet(gpus=2, days=40 * 60 / 86_400, step_s=60)
    with Exporter(pages(table, "F")) as exporter:
        prometheus = RealPrometheus(
            tmp_path / "prometheus", scrapes(exporter.at, exporter.at).split("\n- {job_name: ren")[0]
        )
        with (
            prometheus,
            following(prometheus, exporter, tmp_path / "lake", "--follow", "--poll", "1s", "--delay", "1s") as run,
        ):
            lake = gpuledger.open(tmp_path / "lake")
            counts = set()
            for _ in range(300):
                counts.add(len(lake.samples().df()) if lake.lake.exists() else 0)
                if len(counts) > 3 or run.poll() is not None:
                    break
                time.sleep(0.1)
            run.send_signal(signal.SIGINT)
            said = run.communicate(timeout=30)
        assert run.returncode == 0, said
        assert len(counts) > 3, said
        rows = rows_of(lake)
        assert not rows.duplicated(["gpu_uuid", "at_ms"]).any()
        at = rows[rows["gpu_uuid"] == "F-0"]["at_ms"].diff().dropna()
        assert at.max() < 1900  # scraped every second: nothing is missing between two rounds


def test_utilization_that_may_be_percent_is_left_out_with_a_note(tmp_path):
    start = 1_768_896_000_000
    readings = {"DCGM_FI_DEV_GPU_UTIL_RATIO": 1, "DCGM_FI_DEV_BOARD_POWER_WATTS": 500}
    labels = {"gpu": "0", "UUID": "GPU-0", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node01"}
    lines = [line(n, labels, value, start + 15_000 * i) for n, value in readings.items() for i in range(4)]
    (tmp_path / "gpu.om").write_text("\n".join([*lines, "# EOF\n"]))
    prometheus = RealPrometheus(tmp_path / "prometheus")
    prometheus.backfill(tmp_path / "gpu.om")
    lake = gpuledger.open(tmp_path / "lake")
    with prometheus:
        result = lake.pull(prometheus.address, since=start, until=start + 60_000)
    assert lake.samples().df()["gpu_util_ratio"].isna().all()
    assert [note for note in result.notes if "1 may be 1 % or 100 %" in note]
