"""Is what a file takes of memory bounded, and does the refusal say how to allow more?"""

from __future__ import annotations

import gzip
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

import gpuledger
from gpuledger import bounds, settings
from gpuledger.cost.inventories.kinds import read_stock
from gpuledger.devices.replay.doors import load_tapes
from gpuledger.errors import FileFault, InputError, ServerFault
from gpuledger.lake import rejects
from gpuledger.lake.jobs.reading import read_jobs
from gpuledger.plan.autoscale.demand import reading
from gpuledger.plan.autoscale.demand.reading import read_trace
from gpuledger.plan.capacity.demand_file import read_demand
from gpuledger.telemetry import spreadsheet

MIB = 1 << 20


@pytest.fixture
def small(monkeypatch):
    """Limits that small files reach."""
    monkeypatch.setenv(bounds.VARIABLE, "1")
    monkeypatch.setattr(bounds, "BOMB_BYTES", MIB)
    monkeypatch.setattr(bounds, "LINE_BYTES", MIB)
    monkeypatch.setattr(bounds, "MOST_ROWS", 1000)
    monkeypatch.setattr(bounds, "ROWS_PER_BYTE", 10)


def zipped(path, data, times=8):
    path.write_bytes(gzip.compress(data, mtime=0) * times)
    return path


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "a", "٣", "99999999999"])
def test_a_limit_that_is_not_a_number_is_refused_by_name(text, monkeypatch):
    monkeypatch.setenv(bounds.VARIABLE, text)
    with pytest.raises(InputError, match=bounds.VARIABLE):
        bounds.most_bytes()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("read", [read_jobs, load_tapes, read_demand, settings.read_toml], ids=lambda r: r.__name__)
def test_a_file_held_whole_names_the_limit_and_how_to_raise_it(read, tmp_path):
    path = tmp_path / "large.csv"
    path.write_bytes(b"a" * (2 * MIB))
    with pytest.raises(FileFault, match="larger than 1 MiB") as caught:
        read(path)
    assert f"export {bounds.VARIABLE}=4" in caught.value.hint


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "jobs.csv"
    path.write_text("job,host,start,end\n" + "a,n,2026-01-20T00:00:00Z,2026-01-20T01:00:00Z\n" * 40_000)
    monkeypatch.setenv(bounds.VARIABLE, "1")
    with pytest.raises(FileFault, match="larger"):
        read_jobs(path)
    monkeypatch.setenv(bounds.VARIABLE, "4")
    assert read_jobs(path).rows == 40_000


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("block", [b"\n" * MIB, b"a,b\n1,2\n" + b" " * MIB, b"# HELP x y\n" + b"\n" * MIB])
@pytest.mark.parametrize("read", [gpuledger.read, lambda p: read_stock([p]), read_trace, read_demand, load_tapes])
def test_a_packed_bomb_is_refused(read, block, tmp_path):
    with pytest.raises(FileFault) as caught:
        read(zipped(tmp_path / "bomb.csv.gz", block))
    assert caught.value.hint


@pytest.mark.usefixtures("small")
def test_an_endless_run_of_rows_is_refused_as_a_bomb(tmp_path):
    head, row = b"timestamp,Hostname,gpu,UUID,DCGM_FI_DEV_GPU_UTIL\n", b"2026-01-20T10:00:00Z,n,0,GPU-0,50\n"
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(head) + gzip.compress(row * 300_000, 9))
    with pytest.raises(FileFault, match="300 times its size"):
        gpuledger.read(path)


@pytest.mark.usefixtures("small")
def test_a_line_without_an_end_is_refused(tmp_path):
    path = tmp_path / "page.prom"
    path.write_bytes(b"# HELP DCGM_FI_DEV_GPU_UTIL x\n" + b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1' + b" " * (2 * MIB))
    with pytest.raises(FileFault, match="a line is longer than 1 MiB"):
        gpuledger.read(path)


def test_a_document_of_one_long_line_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "LINE_BYTES", 100)
    monkeypatch.setattr("gpuledger.cost.inventories.content.LINE_BYTES", 100)
    node = '{"kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"nvidia.com/gpu": "8"}}}'
    path = tmp_path / "nodes.json"
    path.write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [{node}, {node.replace("n1", "n2")}]}}')
    assert len(read_stock([path]).found[0].nodes) == 2


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("read", [gpuledger.read, lambda p: read_stock([p]), read_trace])
def test_a_parquet_file_that_claims_more_rows_than_it_can_hold_is_refused(read, tmp_path):
    zero = pa.array(np.zeros(2_000_000, np.int8))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"timestamp": zero, "UUID": zero, "DCGM_FI_DEV_GPU_UTIL": zero}), path, compression="zstd")
    with pytest.raises(FileFault, match="claims 2,000,000 rows"):
        read(path)


def test_a_trace_of_too_many_rows_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROWS", 1000)
    monkeypatch.setattr(reading.pq.ParquetFile, "read", lambda *_a: pytest.fail("it was read"))
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.table({"timestamp": np.arange(1001), "req_per_s": np.ones(1001)}), path)
    with pytest.raises(FileFault, match="1,001 rows are more than 1,000"):
        read_trace(path)


def test_a_sheet_of_too_many_rows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheet, "_MOST_ROWS", 100)
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    for rows in (100, 101):
        with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as book:
            cells = "<row><c><v>7</v></c></row>" * rows
            book.writestr("xl/worksheets/sheet1.xml", f"<worksheet {ns}><sheetData>{cells}</sheetData></worksheet>")
        if rows == 100:
            assert spreadsheet.sheet_rows(str(tmp_path / "x.xlsx")) == [["7"]] * 100
        else:
            with pytest.raises(FileFault, match="more than 100 rows"):
                spreadsheet.sheet_rows(str(tmp_path / "x.xlsx"))


@given(
    wrong=st.lists(st.sampled_from(["time", "number", "power", ""]), min_size=1, max_size=40),
    most=st.integers(1, 12),
)
@settings_of(max_examples=25, deadline=None)
def test_rejected_rows_beyond_a_bound_are_counted_and_not_listed(tmp_path_factory, wrong, most):
    """The same rows are left out for the same reasons, however many are listed."""
    folder = tmp_path_factory.mktemp("rejects")
    at = [f"2026-01-20T10:00:{s:02d}Z" if why != "time" else "soon" for s, why in enumerate(wrong)]
    power = [{"number": "much", "power": "5000"}.get(why, "300") for why in wrong]
    rows = [f"{a},n,GPU-0,NVIDIA H100 80GB HBM3,50,{p}" for a, p in zip(at, power, strict=True)]
    head = "timestamp,Hostname,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE"
    good = "2026-01-20T11:00:00Z,n,GPU-0,NVIDIA H100 80GB HBM3,50,300"
    (folder / "a.csv").write_text("\n".join([head, *rows, good]) + "\n")
    whole = gpuledger.open(folder / "whole").ingest(folder / "a.csv")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rejects, "LISTED", most)
        found = gpuledger.open(folder / "bounded").ingest(folder / "a.csv")
    refused = sum(why != "" for why in wrong)
    assert (found.rows_added, found.rejects, found.rows_rejected) == (whole.rows_added, whole.rejects, refused)
    lines = Path(found.rejects_file).read_text().splitlines()[1:] if min(refused, most) else []
    every = Path(whole.rejects_file).read_text().splitlines()[1:] if refused else []
    assert (len(lines), len(every)) == (min(refused, most), refused)
    assert lines == every[: len(lines)]
    assert any("were rejected; the file" in note for note in found.notes) == (refused > most)


class _Bomb(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(gzip.compress(b" " * MIB) * 64)

    def log_message(self, *_):
        pass


@pytest.mark.usefixtures("small")
def test_an_answer_that_unpacks_without_end_is_refused(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Bomb)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(ServerFault, match="more than 1 MiB"):
            gpuledger.open(tmp_path).pull(f"prometheus://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def test_a_long_quote_of_a_file_does_not_fill_the_screen():
    error = FileFault("x.csv", "a" * 100_000, hint="b" * 100_000)
    assert len(error.message) < 1400
    assert len(error.hint) < 1400
    assert str(error).startswith("x.csv: aaa")
