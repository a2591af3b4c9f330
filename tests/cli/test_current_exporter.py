"""dcgm-exporter 4.9 renamed its fields and changed units: a file, page or answer of it gives what one of 4.8 gives."""

from __future__ import annotations

import pytest

import gpuledger
from dcgm_names import FIELDS, MIB, OWNER, SAME, START_MS, answer, labels, minutes, readings, series, wide

N = 12
WRITERS = {"minutes.txt": minutes, "answer.json": answer, "wide.csv": wide}
HISTORIES = {"4.9": [True] * N, "upgraded at half": [i >= N // 2 for i in range(N)], "4.8": [False] * N}


def audited(cli, file, *more):
    done = cli("audit", file, "--price", 3.6, "--json", *more)
    assert done.code == 0, done.err
    return done.json()


def samples(tmp_path, text, name, **said):
    file = tmp_path / name
    file.write_text(text)
    lake = gpuledger.open(tmp_path / f"{name}.lake")
    result = lake.ingest(file, **said)
    return lake.samples().df().sort_values(["gpu_uuid", "at_ms"]).reset_index(drop=True), result


def utilization(values, beside="", **devices):
    """CSV with the field that is percent in DCGM 4.6 and a share in 4.7: a row per minute."""
    gpus = devices or {"GPU-0": values}
    lines = [f"timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL_RATIO{',' * bool(beside)}{beside}"]
    for gpu, cells in gpus.items():
        for i, cell in enumerate(cells):
            at = f"{START_MS + 60_000 * i},{gpu},NVIDIA H100 80GB HBM3,{cell}"
            lines.append(at + (",1755000000" if beside else ""))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("history", ["4.9", "upgraded at half"])
def test_no_dollar_depends_on_the_exporters_version(cli, tmp_path, name, history):
    found = {}
    for kind in ("4.8", history):
        (tmp_path / name).write_text(WRITERS[name](HISTORIES[kind]))
        made = audited(cli, name)
        found[kind] = made["buckets"], made["energy_kwh"], made["samples"]
    assert found["4.8"] == found[history]
    buckets = {bucket: float(usd) for bucket, usd in found[history][0].items()}
    assert buckets["unobserved"] == 0
    assert sum(buckets.values()) == pytest.approx(N / 60 * 3.6)
    assert buckets["underused"] == pytest.approx(0.05 * N / 60 * 3.6)  # the engine was active for 95 %


@pytest.mark.parametrize("opt_in", [False, True])
def test_a_page_of_new_names_is_the_same_row(tmp_path, opt_in):
    pages = [
        "".join(series(name, labels(), value) + "\n" for name, value in readings(new).items())
        + "".join(series((old, now)[new], labels(), value) + "\n" for old, now, value in SAME if opt_in)
        for new in (False, True)
    ]
    (old, _), (new, result) = (samples(tmp_path, page, f"{n}.prom", at=START_MS) for n, page in enumerate(pages))
    assert old.equals(new)
    assert not any("not read" in note for note in result.notes)
    columns = 24 + 11 * opt_in  # every field but the reserved memory; two of the opt-in fields are of the same columns
    kept = [c for c in new.columns if c not in ("at_ms", "gpu_uuid", "gpu_model", "host", "gpu_index")]
    assert int(new[kept].notna().sum(axis=1)[0]) == columns
    assert new["nvlink_bytes_per_s"][0] == 120 * 1_024_000


def test_nvlink_is_the_sum_of_both_ways_and_unknown_without_one(tmp_path):
    sent, received = "DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"
    text = "".join(
        series(name, labels(), value, START_MS + 60_000 * i) + "\n"
        for i, both in enumerate([True, False])
        for name, value in [("DCGM_FI_DEV_GPU_UTIL", 90), (sent, 1e9), *([(received, 2e9)] if both else [])]
    )
    found, _ = samples(tmp_path, text, "nvlink.txt")
    assert found["nvlink_bytes_per_s"][0] == 3e9
    assert found["nvlink_bytes_per_s"].isna().tolist() == [False, True]
    cells = [f"{START_MS},GPU-0,1e9,2e9,90", f"{START_MS + 60_000},GPU-0,1e9,,90"]
    rows = "\n".join([f"timestamp,UUID,{sent},{received},DCGM_FI_DEV_GPU_UTIL", *cells])
    table, _ = samples(tmp_path, rows, "nvlink.csv")
    assert table["nvlink_bytes_per_s"][0] == 3e9
    assert table["nvlink_bytes_per_s"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "beside", "expected"),
    [
        ([0, 1, 97], "", [0.0, 0.01, 0.97]),
        ([0, 0.5, 37.25], "", [0.0, 0.005, 0.3725]),  # percent averaged over time
        ([0, 1, 0.97], "", [0.0, 1.0, 0.97]),
        ([1, 1, 1], "DCGM_FI_DEV_SM_CLOCK_HERTZ", [1.0, 1.0, 1.0]),
        ([0, 0, 0], "", [0.0, 0.0, 0.0]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_values_and_fields_beside_it_decide_whether_utilization_is_percent(tmp_path, kind, values, beside, expected):
    text = utilization(values, beside)
    if kind == "txt":
        pairs = [("DCGM_FI_DEV_GPU_UTIL_RATIO", v, i) for i, v in enumerate(values)]
        pairs += [(beside, 1755000000, i) for i in range(len(values)) if beside]
        text = "".join(series(n, labels(), v, START_MS + 60_000 * i) + "\n" for n, v, i in pairs)
    found, result = samples(tmp_path, text, f"util.{kind}")
    assert found["gpu_util_ratio"].tolist() == expected
    assert not any("1 %" in note for note in result.notes)


def test_each_device_and_day_decides_for_itself(tmp_path):
    gpus = {"GPU-0": [97, 1, 0], "GPU-1": [0.97, 1, 0], "GPU-2": [0, 1, 0]}
    found, result = samples(tmp_path, utilization([], **gpus), "util.csv")
    assert found.groupby("gpu_uuid")["gpu_util_ratio"].apply(list)["GPU-0"] == [0.97, 0.01, 0.0]
    assert found.groupby("gpu_uuid")["gpu_util_ratio"].apply(list)["GPU-1"] == [0.97, 1.0, 0.0]
    assert found[found["gpu_uuid"] == "GPU-2"]["gpu_util_ratio"].isna().all()
    assert [note for note in result.notes if "1 may be 1 % or 100 %" in note]
    day = 24 * 60
    found, _ = samples(tmp_path, utilization([97] + [1] * (day - 1) + [1, 0.5]), "days.csv")
    first = found["at_ms"] < START_MS - START_MS % 86_400_000 + 86_400_000
    assert set(found["gpu_util_ratio"][first]) == {0.97, 0.01}
    assert set(found["gpu_util_ratio"][~first]) == {1.0, 0.5}


def test_text_with_times_needs_no_comment_and_no_known_name(cli, tmp_path):
    (tmp_path / "other.txt").write_text(series("my_metric", labels(), 3, START_MS) + "\n")
    done = cli("import", "other.txt")
    assert done.code == 2
    assert "none of its metrics (my_metric) is a reading of a GPU" in done.err


def extra(names):
    return "".join(series(name, labels(**OWNER), 5, START_MS + 60_000 * i) + "\n" for i in range(N) for name in names)


UNREAD = ["go_goroutines", "zeta", "DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_PROF_NEW", "gpu_my_util", "alpha_total"]
FIRST = "DCGM_FI_DEV_POWER_VIOLATION, gpu_my_util, DCGM_FI_PROF_NEW"
LINE = f"5 metrics not read: {FIRST} and 2 more (import --explain lists all)"


@pytest.mark.parametrize("command", ["import", "analyze", "audit"])
def test_metrics_that_are_not_read_are_named_in_one_line(cli, tmp_path, command):
    (tmp_path / "page.txt").write_text(minutes([False] * N) + extra(UNREAD))
    done = cli(command, "page.txt")
    assert done.code == 0
    said = " ".join((done.out + done.err).split())
    assert said.count("not read") == 1
    assert LINE in said


def test_explain_lists_all_that_is_not_read_and_guesses_nothing_that_is_known(cli, tmp_path):
    (tmp_path / "page.txt").write_text(minutes([True] * N) + extra(UNREAD))
    found = {u["source"]: u["suggestion"] for u in cli("import", "--explain", "page.txt", "--json").json()["unused"]}
    assert set(found) == {*UNREAD, "DCGM_FI_DEV_FB_RESERVED_BYTES"}
    assert found["DCGM_FI_DEV_FB_RESERVED_BYTES"] is None
    assert "known, not needed" in cli("import", "--explain", "page.txt").out


def test_columns_that_are_not_read_are_named_without_guesses(cli, tmp_path):
    names = [n for n in UNREAD if n != "go_goroutines"]
    head, *rows = wide([True] * N).splitlines()
    (tmp_path / "wide.csv").write_text("\n".join([",".join([head, *names]), *(f"{row}{',5' * 5}" for row in rows)]))
    done = cli("import", "wide.csv")
    said = " ".join(done.out.split())
    assert LINE.replace("metrics", "columns") in said
    assert "did you mean" not in said
    typo = head.replace("DCGM_FI_DEV_BOARD_POWER_WATTS", "DCGM_FI_DEV_BOARD_POWER_WATT")
    (tmp_path / "typo.csv").write_text("\n".join([typo, *rows]))
    said = " ".join(cli("import", "typo.csv", "--lake", "other").out.split())
    assert "'DCGM_FI_DEV_BOARD_POWER_WATT' is not used; did you mean 'DCGM_FI_DEV_BOARD_POWER_WATTS'?" in said


def test_every_renamed_field_has_the_units_it_came_with():
    """The table of this test's names is whole: 22 renamed fields, and 11 of them in another unit."""
    renamed = [(by, old) for old, new, by, _ in FIELDS if old != new]
    assert (len(renamed), sum(by != 1 for by, _ in renamed), MIB) == (22, 11, 1048576)


# What exporters and Prometheus write along with the readings, by name and cell.
ALONG = {
    "DCGM_FI_NVML_VERSION": "13.580.95", "DCGM_FI_PROCESS_NAME": "/usr/bin/dcgm-exporter", "DCGM_FI_DEV_NAME": "H100",
    "DCGM_FI_DEV_BRAND": "NvidiaRTX", "DCGM_FI_DEV_SERIAL": "1650", "DCGM_FI_DEV_OEM_INFOROM_VER": "2.1",
    "DCGM_FI_DEV_INFOROM_IMAGE_VER": "G520", "DCGM_FI_DEV_VBIOS_VERSION": "96.00", "prometheus": "monitoring/k8s",
    "prometheus_replica": "k8s-0", "err_code": "0", "err_msg": "No Error",
}  # fmt: skip


def test_what_exporters_write_along_is_neither_named_nor_guessed_at(cli, tmp_path):
    head, *rows = wide([False] * N).splitlines()
    names, cells = ",".join(ALONG), ",".join(ALONG.values())
    (tmp_path / "wide.csv").write_text("\n".join([f"{head},{names}", *(f"{row},{cells}" for row in rows)]))
    done = cli("import", "wide.csv")
    assert done.code == 0
    assert "not read" not in done.out
    assert "did you mean" not in done.out


def test_a_counter_of_the_exporter_is_no_misspelled_reading(cli, tmp_path):
    head, *rows = wide([False] * N).splitlines()
    names = ["DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_XID_ERRORS_COUNT"]
    (tmp_path / "wide.csv").write_text("\n".join([",".join([head, *names]), *(f"{row},0,0" for row in rows)]))
    said = " ".join(cli("import", "wide.csv").out.split())
    assert "2 columns not read: DCGM_EXP_CLOCK_EVENTS_COUNT, DCGM_EXP_XID_ERRORS_COUNT" in said
    assert "did you mean" not in said
