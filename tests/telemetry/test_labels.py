"""Is the owner of a row the workload that held the GPU, never the exporter that read it?"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from gpuledger.errors import FactError
from gpuledger.lake import pieces
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.telemetry.convert import convert
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.labels import label_notes
from gpuledger.telemetry.mapping import bind, load_mapping
from gpuledger.telemetry.stamps import StampReader

EXPORTER = {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x1", "container": "nvidia-dcgm-exporter"}


def read(rows: list[dict[str, str]]) -> tuple[list[dict], list[str]]:
    """Rows of a Prometheus export as samples, and what the import says of their labels."""
    names = ["timestamp", "UUID", "DCGM_FI_DEV_GPU_UTIL", *dict.fromkeys(k for r in rows for k in r)]
    given = [
        {"timestamp": f"2026-01-20T00:0{i}:00Z", "UUID": "GPU-1", "DCGM_FI_DEV_GPU_UTIL": "50"} | r
        for i, r in enumerate(rows)
    ]
    batch = pa.RecordBatch.from_pydict({n: [r.get(n, "") for r in given] for n in names})
    bound = bind("f.csv", names)
    made = convert(batch, bound, StampReader(()))
    return made.table.to_pylist(), label_notes(bound.labels, made.label_rows)


def owners(rows: list[dict]) -> list[tuple]:
    return [tuple(r.get(n) for n in ("namespace", "pod", "container")) for r in rows]


def test_exported_labels_win_where_they_are_filled():
    workload = {"exported_namespace": "ml", "exported_pod": "trainer-0", "exported_container": "main"}
    rows, notes = read([EXPORTER | workload, EXPORTER])
    assert owners(rows) == [("ml", "trainer-0", "main"), (None, None, None)]
    assert "exported_namespace" in notes[0]
    assert "honor_labels: false" in notes[0]
    assert "gpu-operator" not in str(rows)
    assert "1 row names only the exporter's own pod" in notes[1]


def test_with_honor_labels_the_plain_columns_name_the_workload():
    rows, notes = read([{"namespace": "ml", "pod": "trainer-0", "container": "main"}])
    assert owners(rows) == [("ml", "trainer-0", "main")]
    assert notes == []
    rows, notes = read([{"namespace": "ml", "pod": "trainer-0", "exported_namespace": "", "exported_pod": " "}])
    assert owners(rows) == [("ml", "trainer-0", None)]
    assert "come from namespace, pod" in notes[0]


def test_both_ways_in_one_file_are_told_apart_cell_by_cell():
    rows, notes = read([
        {"namespace": "monitoring", "exported_namespace": "a"},
        {"namespace": "b", "exported_namespace": "N/A"},
        {"namespace": "c"},
    ])  # fmt: skip
    assert [r["namespace"] for r in rows] == ["a", "b", "c"]
    assert "where they are empty, namespace" in notes[0]


def test_a_namespace_without_a_pod_keeps_its_name_next_to_the_exporters_pod():
    rows, notes = read([EXPORTER | {"exported_namespace": "ml"}])
    assert owners(rows) == [("ml", None, None)]
    assert not any("exporter's own pod" in n for n in notes)


@pytest.mark.parametrize(
    ("column", "label"),
    [("team", "team"), ("user", "user"), ("account", "account"), ("hpc_job", "run_id"), ("slurm_account", "account")],
)
def test_owners_of_every_kind_are_read(column, label):
    rows, _ = read([{column: "x"}])
    assert rows[0][label] == "x"


def test_the_first_filled_of_several_columns_counts_for_every_label():
    rows, _ = read([{"Hostname": "h1", "instance": "10.0.0.1:9400"}, {"instance": "10.0.0.2:9400"}])
    assert [r["host"] for r in rows] == ["h1", "10.0.0.2"]


def test_a_mistyped_label_of_a_mapping_file_is_refused(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "o"\ntitle = "o"\ndetect = ["t"]\nrequired = ["time"]\n'
        '[time]\nsources = ["t"]\n[labels]\nuserr = ["u"]\n'
    )
    with pytest.raises(FactError, match="no label is called 'userr'"):
        load_mapping(str(own))


def test_the_import_says_which_labels_were_used(tmp_path):
    file = tmp_path / "p.csv"
    head = "timestamp,UUID,DCGM_FI_DEV_GPU_UTIL,namespace,pod,exported_namespace,exported_pod\n"
    rows = [f"2026-01-20T00:0{i}:00Z,GPU-1,50,gpu-operator,dcgm-exporter-1,ml,p{i}\n" for i in range(3)]
    file.write_text(head + "".join(rows))
    lake = Lake(tmp_path / "lake")
    result = import_files(lake, [file])
    assert [n for n in result.notes if "exported_namespace, exported_pod" in n]
    assert samples_table(lake)["namespace"].to_pylist() == ["ml"] * 3


def test_pieces_of_a_file_give_one_note_with_the_rows_of_all(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_ROWS", 20)
    head = "timestamp,UUID,pod,exported_pod,DCGM_FI_DEV_GPU_UTIL\n"
    rows = [f"2026-01-20T00:{m:02}:00Z,GPU-1,dcgm-exporter-x,{'p' if m % 3 else ''},50\n" for m in range(60)]
    (tmp_path / "f.csv").write_text(head + "".join(rows))
    pq.write_table(csv.read_csv(tmp_path / "f.csv"), tmp_path / "f.parquet", row_group_size=20)
    done = import_files(Lake(tmp_path / "lake"), [tmp_path / "f.parquet"], processes=2)
    assert [n for n in done.notes if "own pod" in n] == [n for n in done.notes if "20 rows name only" in n]
    assert sum("20 rows name only" in n for n in done.notes) == 1


def test_explaining_a_file_shows_what_each_column_of_a_label_gives(tmp_path):
    head = "timestamp,UUID,namespace,exported_namespace,DCGM_FI_DEV_GPU_UTIL\n"
    rows = "2026-01-20T00:00:00Z,GPU-1,gpu-operator,ml,50\n2026-01-20T00:01:00Z,GPU-1,web,,50\n"
    (tmp_path / "f.csv").write_text(head + rows)
    found = {c.source: (c.cell, c.read) for c in explain(tmp_path / "f.csv").columns if c.column == "namespace"}
    assert found == {"exported_namespace": ("ml", "ml"), "namespace": ("web", "web")}


@pytest.mark.parametrize("name", ["Namespace", "k8s_namespace", "label-namespace"])
def test_a_label_written_otherwise_is_named(tmp_path, name):
    file = tmp_path / "rows.csv"
    file.write_text(f"timestamp,UUID,{name},DCGM_FI_DEV_GPU_UTIL\n2026-01-20T00:00:00Z,GPU-1,ml,50\n")
    done = import_files(Lake(tmp_path / "lake"), [file])
    assert any(f"column {name!r} is not used; did you mean" in note for note in done.notes)


@pytest.mark.parametrize(
    ("labels", "host"),
    [
        ({"Hostname": "nvidia-dcgm-exporter-x1", "node": "node-3"}, "node-3"),
        ({"Hostname": "nvidia-dcgm-exporter-x1", "node": "", "instance": "10.0.0.7:9400"}, "10.0.0.7"),
        ({"Hostname": "nvidia-dcgm-exporter-x1"}, "nvidia-dcgm-exporter-x1"),  # nothing better is known
        ({"Hostname": "node-3", "node": "node-4"}, "node-3"),
        ({"instance": "node-3:9400"}, "node-3"),
        ({"instance": "[fd00::7]:9400"}, "[fd00::7]"),
    ],
)
def test_a_host_is_the_machine_not_its_exporter(labels, host):
    (row,), _ = read([labels])
    assert row["host"] == host
