"""Do source columns become schema columns, and do faulty rows stand apart with the reason?"""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpuledger.errors import FileFault, UnknownName
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import devices_of
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import convert
from gpuledger.telemetry.mapping import bind, load_mapping, shipped
from gpuledger.telemetry.stamps import StampReader


def run(columns: dict[str, list], mapping: str | None = None):
    batch = pa.RecordBatch.from_pydict(columns)
    bound = bind("f.csv", list(columns), load_mapping(mapping) if mapping else None)
    return convert(batch, bound, StampReader(bound.mapping.time.formats))


def s0(n: int = 1, **more: list) -> dict[str, list]:
    base = {
        "SCRAPETIME": ["01/20/26 00:01"] * n,
        "UUID": ["GPU-1"] * n,
        "MODELNAME": ["NVIDIA A10G"] * n,
        "DCGM_FI_DEV_GPU_UTIL": ["50"] * n,
        "DCGM_FI_DEV_POWER_USAGE": ["150.5"] * n,
    }
    return base | more


def test_units_are_converted_once():
    made = run(s0(DCGM_FI_DEV_FB_USED=["2"], DCGM_FI_PROF_PIPE_TENSOR_ACTIVE=["0.25"], POD=["p"], CONTAINER=[""]))
    (row,) = made.table.to_pylist()
    assert row["at_ms"] == 1_768_867_260_000
    assert (row["gpu_util_ratio"], row["power_w"], row["tensor_ratio"]) == (0.5, 150.5, 0.25)
    assert row["fb_used_bytes"] == 2 * 1024 * 1024
    assert (row["pod"], row["container"]) == ("p", None)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("DCGM_FI_DEV_POWER_USAGE", "lots", "not_a_number"),
        ("DCGM_FI_DEV_POWER_USAGE", "-5", "out_of_range"),
        ("DCGM_FI_DEV_POWER_USAGE", "inf", "out_of_range"),
        ("DCGM_FI_DEV_GPU_UTIL", "250", "out_of_range"),
        ("DCGM_FI_DEV_GPU_UTIL", "5O", "not_a_number"),
        ("SCRAPETIME", "13/45/26 00:01", "wrong_time"),
        ("SCRAPETIME", "yesterday", "wrong_time"),
        ("SCRAPETIME", "1899-01-01T00:00:00Z", "wrong_time"),
        ("UUID", "", "no_device"),
    ],
)
def test_a_fault_costs_its_row_only(column, value, reason):
    rows = s0(3)
    rows[column] = [rows[column][0], value, rows[column][0]]
    made = run(rows)
    assert made.table.num_rows == 2
    assert made.kept.tolist() == [0, 2]
    assert made.faults == [(1, reason, column, value)]


@pytest.mark.parametrize("blank", ["", "N/A", " ", "nan", "1.8446744073709551e19", "140737488355328"])
def test_blanks_of_dcgm_are_silence_not_faults(blank):
    made = run(s0(DCGM_FI_DEV_MEMORY_TEMP=[blank]))
    assert made.table["mem_temp_c"].to_pylist() == [None]
    assert not made.faults


def test_general_dcgm_names_and_mig_profiles():
    made = run(
        {
            "timestamp": [1_768_867_260.5],
            "UUID": ["GPU-1"],
            "GPU_I_ID": ["3"],
            "GPU_I_PROFILE": ["3g.40gb"],
            "modelName": ["NVIDIA H100 80GB HBM3"],
            "exported_namespace": ["ml"],
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": [0.75],
        }
    )
    (row,) = made.table.to_pylist()
    assert row["at_ms"] == 1_768_867_260_500
    assert (row["gpu_instance_id"], row["namespace"], row["engine_ratio"]) == ("3", "ml", 0.75)
    assert row["slice_ratio"] == pytest.approx(3 / 7)


@pytest.mark.parametrize(
    ("text", "zone", "expected", "zoneless"),
    [
        ("2026-01-20T00:01:00Z", "UTC", 1_768_867_260_000, False),
        ("2026-01-20T02:01:00+02:00", "Asia/Tokyo", 1_768_867_260_000, False),
        ("2026-01-20 01:01:00", "Europe/Berlin", 1_768_867_260_000, True),
        ("01/20/26 00:01", "UTC", 1_768_867_260_000, True),
        ("1768867260", "UTC", 1_768_867_260_000, False),
        ("1768867260000000", "UTC", 1_768_867_260_000, False),
    ],
)
def test_instants_with_and_without_a_zone(text, zone, expected, zoneless):
    reader = StampReader(("%m/%d/%y %H:%M",), zone)
    at, wrong = reader.read(pa.array([text]))
    assert (at.tolist(), wrong.tolist(), reader.zoneless) == ([expected], [False], zoneless)


def test_typed_instants():
    naive = pa.array([1_768_867_260_000], pa.timestamp("ms"))
    assert StampReader((), "Europe/Berlin").read(naive)[0].tolist() == [1_768_867_260_000 - 3_600_000]
    assert StampReader((), "Europe/Berlin").read(naive.cast(pa.timestamp("us", "UTC")))[0].tolist() == [
        1_768_867_260_000
    ]


def test_an_unknown_zone_is_refused():
    with pytest.raises(Exception, match="no time zone is called"):
        StampReader((), "Mars/Olympus")


def test_a_renamed_required_column_names_the_nearest():
    columns = s0()
    columns["DCGM_FI_DEV_POWER_USGE"] = columns.pop("DCGM_FI_DEV_POWER_USAGE")
    with pytest.raises(FileFault, match=r"DCGM_FI_DEV_POWER_USAGE.*nearest in the file: 'DCGM_FI_DEV_POWER_USGE'"):
        run(columns)


def test_an_optional_column_under_another_name_is_suggested():
    bound = bind("f.csv", [*s0(), "DCGM_FI_DEV_MEMORY_TMP"])
    assert bound.suggestions == {"DCGM_FI_DEV_MEMORY_TMP": "DCGM_FI_DEV_MEMORY_TEMP"}


def test_strange_columns_are_refused():
    with pytest.raises(FileFault, match=r"a table of no tool that is known.*not understood: 'when', 'who'") as caught:
        bind("f.csv", ["when", "who", "what"])
    assert "--map" in str(caught.value)


def test_every_mapping_names_schema_columns_only():
    for mapping in shipped().values():
        assert {r.column for r in mapping.values} <= set(schema.readings())
        assert set(mapping.labels) <= set(schema.labels())
    assert {"export36", "dcgm", "gpuledger"} <= set(shipped())
    with pytest.raises(UnknownName, match="mapping"):
        load_mapping("dcgn")


def test_a_users_own_mapping_file(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "own"\ntitle = "own"\ndetect = ["ts"]\nrequired = ["time", "gpu_uuid"]\n[time]\nsources = ["ts"]\n'
        '[labels]\ngpu_uuid = ["card"]\n[[values]]\ncolumn = "power_w"\nsources = ["kw"]\nmultiply = 1000\n'
    )
    made = run({"ts": ["2026-01-20T00:00:00Z"], "card": ["x"], "kw": ["0.5"]}, str(own))
    assert made.table["power_w"].to_pylist() == [500.0]
    own.write_text(own.read_text().replace("power_w", "powr_w"))
    with pytest.raises(Exception, match="no schema column is called 'powr_w'"):
        load_mapping(str(own))


def test_the_schema_has_units_meanings_and_bounds():
    for column in schema.columns().values():
        assert column.meaning
        if column.kind != "label":
            assert column.unit
            assert column.min is not None
            assert column.max is not None
            assert column.min < column.max


@pytest.mark.parametrize(
    ("model", "profile", "share"),
    [
        ("NVIDIA A30", "4g.24gb", 1.0),
        ("NVIDIA A30", "1g.6gb", 0.25),
        ("NVIDIA A100-SXM4-40GB", "3g.20gb", 3 / 7),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "3g.20gb", 3 / 7),
        ("NVIDIA H200", "7g.141gb", 1.0),
        ("NVIDIA B200", "1g.23gb", 1 / 7),
    ],
)
def test_the_share_of_a_mig_profile_depends_on_its_board(model, profile, share):
    made = run(s0(MODELNAME=[model], GPU_I_PROFILE=[profile]))
    assert made.table["slice_ratio"].to_pylist() == [pytest.approx(share)]
    assert made.notes == ()


@pytest.mark.parametrize(
    ("model", "profile", "why"),
    [
        ("NVIDIA X9000", "3g.40gb", "not in the catalog"),
        ("NVIDIA A10G", "3g.40gb", "not among the GPUs known to support MIG"),
        ("NVIDIA A30", "7g.40gb", "does not fit"),
        ("", "3g.40gb", "name no model"),
    ],
)
def test_a_profile_of_an_unknown_board_has_an_unknown_share(model, profile, why):
    made = run(s0(2, MODELNAME=[model, "NVIDIA H100 80GB HBM3"], GPU_I_PROFILE=[profile, "1g.10gb"]))
    assert made.table["slice_ratio"].to_pylist() == [None, pytest.approx(1 / 7)]
    (note,) = made.notes
    assert why in note


def test_gpus_known_by_index_are_named_by_their_host_too():
    made = run(s0(5, UUID=["0", "0", "gpu1", "nvidia1", "GPU-8f2a"], HOSTNAME=["a", "b", "b", "rack/2", "b"]))
    assert made.table["gpu_uuid"].to_pylist() == ["a:gpu0", "b:gpu0", "b:gpu1", "rack_2:gpu1", "GPU-8f2a"]
    assert made.notes == ()
    alone = run(s0(1, UUID=["0"]))
    assert alone.table["gpu_uuid"].to_pylist() == ["0"]
    assert "by its index only" in alone.notes[0]


def test_two_hosts_with_a_gpu_0_are_two_gpus(tmp_path):
    lines = [f"01/20/26 00:{m:02d},0,NVIDIA H100 80GB HBM3,{h},50,300" for m in range(10) for h in ("a", "b")]
    header = "SCRAPETIME,UUID,MODELNAME,HOSTNAME,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE"
    (tmp_path / "f.csv").write_text("\n".join([header, *lines, ""]))
    lake = Lake(tmp_path / "lake")
    assert import_files(lake, [tmp_path / "f.csv"]).rows_added == 20
    (part,) = lake.manifest().parts
    assert devices_of(lake.path(part)) == {"a:gpu0", "b:gpu0"}


@pytest.mark.parametrize(
    ("name", "cells", "index"),
    [
        ("gpu", ["0", "11", ""], ["0", "11", None]),
        ("device", ["nvidia0", "nvidia3", "N/A"], ["0", "3", None]),
        ("minor_number", [0, 7, None], ["0", "7", None]),
        ("index", [0.0, 7.0, None], ["0", "7", None]),
        ("GPU", ["H100", "2", "4096"], [None, "2", None]),  # a model is not an index, nor is a large number
    ],
)
def test_the_index_of_a_gpu_on_its_host(name, cells, index):
    rows = {"timestamp": [1_768_867_260] * 3, "UUID": ["GPU-1", "GPU-2", "GPU-3"], "DCGM_FI_DEV_GPU_UTIL": ["5"] * 3}
    made = run(rows | {name: cells})
    assert not made.faults
    assert made.table["gpu_index"].to_pylist() == index
    # dcgm-exporter gives both; a column without any index leaves it unknown.
    assert run(rows | {"gpu": ["4", "5", "6"], name: cells} | {"gpu_index": ["1", "2", "3"]}).table[
        "gpu_index"
    ].to_pylist() == ["1", "2", "3"]
    assert "gpu_index" not in run(rows | {"gpu": ["H100"] * 3}).table.column_names


def test_a_gpu_without_a_uuid_has_its_index():
    made = run(s0(4, UUID=["0", "gpu1", "nvidia12", "GPU-8f2a"], HOSTNAME=["a", "a", "rack/2", "b"]))
    assert made.table["gpu_index"].to_pylist() == ["0", "1", "12", None]


def test_one_source_column_may_fill_two(tmp_path):
    (tmp_path / "own.toml").write_text(
        'name = "own"\ntitle = "own"\ndetect = ["slot"]\nrequired = ["time", "gpu_uuid"]\nincludes = "dcgm"\n'
        '[time]\nsources = ["t"]\n[labels]\ngpu_uuid = ["slot"]\ngpu_index = ["slot"]\nhost = ["box"]\n'
    )
    (tmp_path / "f.csv").write_text("t,slot,box,DCGM_FI_DEV_GPU_UTIL\n1768867260,3,a,50\n1768867320,3,a,50\n")
    lake = Lake(tmp_path / "lake")
    assert import_files(lake, [tmp_path / "f.csv"], mapping=load_mapping(str(tmp_path / "own.toml"))).rows_added == 2
    (part,) = lake.manifest().parts
    assert devices_of(lake.path(part)) == {"a:gpu3"}
