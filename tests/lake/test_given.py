"""What a file does not say and the user does: its time, its host, its GPU."""

import pytest

import gpuledger
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import FileFault, InputError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.lake.taking import Reading
from gpuledger.ledger.straight import post_files
from gpuledger.telemetry.mapping import given

HEADER = "gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE\n"


def test_host_and_time_given_by_the_user_name_the_gpu_and_the_instant(tmp_path):
    file = tmp_path / "page.csv"
    file.write_text(HEADER + "0,50,300\n1,100,600\n")
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(file, at="2026-01-20T08:30Z", host="node7", gpu_model="NVIDIA H100 80GB HBM3")
    rows = lake.samples().arrow().to_pylist()
    assert [r["gpu_uuid"] for r in rows] == ["node7:gpu0", "node7:gpu1"]
    assert {r["at_ms"] for r in rows} == {1_768_897_800_000}
    assert {r["gpu_model"] for r in rows} == {"NVIDIA H100 80GB HBM3"}
    assert {r["host"] for r in rows} == {"node7"}


def test_the_file_wins_over_what_was_given_cell_by_cell(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(
        "timestamp,UUID,Hostname,DCGM_FI_DEV_GPU_UTIL\n"
        "2026-01-20T00:00:00Z,GPU-1,a,50\n2026-01-20T00:00:00Z,GPU-2,,50\n"
    )
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(file, host="b", at="2020-01-01")
    rows = {r["gpu_uuid"]: r for r in lake.samples().arrow().to_pylist()}
    assert (rows["GPU-1"]["host"], rows["GPU-2"]["host"]) == ("a", "b")
    assert rows["GPU-1"]["at_ms"] == 1_768_867_200_000


def test_without_a_time_the_file_is_refused(tmp_path):
    file = tmp_path / "page.csv"
    file.write_text(HEADER + "0,50,300\n")
    with pytest.raises(FileFault, match="time"):
        gpuledger.open(tmp_path / "lake").ingest(file, host="node7")
    with pytest.raises(InputError, match="not a time"):
        gpuledger.open(tmp_path / "lake").ingest(file, host="node7", at="yesterday")


@pytest.mark.parametrize(("first", "noted"), [("00:00:30", True), ("00:02:00", False)])
@pytest.mark.parametrize("device", ["index", "UUID"])
def test_files_of_the_same_time_under_one_host_that_was_given_are_noted(tmp_path, first, noted, device):
    """Logs of several hosts, imported with the name of one, would become one GPU."""
    rows = {"a.csv": ["00:00:00", "00:01:00"], "b.csv": [first, "00:03:00"]}
    for name, times in rows.items():
        lines = [f"2026-01-20T{t}Z,{'0' if device == 'index' else f'GPU-{name}'},50,300" for t in times]
        head = HEADER if device == "index" else HEADER.replace("gpu,", "UUID,")
        (tmp_path / name).write_text("timestamp," + head + "\n".join(lines) + "\n")
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest([tmp_path / name for name in rows], host="node7", gpu_model="NVIDIA H100 80GB HBM3")
    assert any("names one host for all files" in note for note in result.notes) == (noted and device == "index")


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("day", ["20", "21"])
def test_one_index_with_two_models_is_two_gpus(tmp_path, day, processes):
    """Two hosts' logs with the name of one: GPU 0 is an A100 in one and an L4 in the other."""
    head = HEADER.replace("gpu,", "timestamp,gpu,modelName,")
    for name, model, of_day in (("a.csv", "NVIDIA A100-SXM4-80GB", "20"), ("b.csv", "NVIDIA L4", day)):
        rows = [f"2026-01-{of_day}T00:{n:02d}:00Z,0,{model},50,60" for n in range(30)]
        (tmp_path / name).write_text(head + "\n".join(rows) + "\n")
    files, said = [tmp_path / "a.csv", tmp_path / "b.csv"], given(host="n1")
    with pytest.raises(InputError, match=r"n1:gpu0 has two models .*NVIDIA A100-SXM4-80GB' and 'NVIDIA L4'") as refused:
        import_files(Lake(tmp_path / "lake"), files, given=said, processes=processes)
    assert "with its --host" in refused.value.hint
    assert not (tmp_path / "lake").exists()
    with pytest.raises(InputError, match="has two models"):
        post_files(Lake(tmp_path / "books"), files, load_thresholds(), Reading(given=said), processes=processes)
    for file, host in zip(files, ("n1", "n2"), strict=True):
        import_files(Lake(tmp_path / "apart"), [file], given=given(host=host))
    assert samples_table(Lake(tmp_path / "apart"))["gpu_uuid"].unique().to_pylist() == ["n1:gpu0", "n2:gpu0"]


def test_one_model_by_two_names_is_one_gpu(tmp_path):
    head = HEADER.replace("gpu,", "timestamp,gpu,modelName,")
    for name, model, day in (("a.csv", "A100-SXM4-80GB", "20"), ("b.csv", "NVIDIA A100-SXM4-80GB", "21")):
        (tmp_path / name).write_text(f"{head}2026-01-{day}T00:00:00Z,0,{model},50,60\n")
    done = gpuledger.open(tmp_path / "lake").ingest([tmp_path / "a.csv", tmp_path / "b.csv"], host="n1")
    assert done.rows_added == 2
