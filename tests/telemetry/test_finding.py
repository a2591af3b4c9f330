"""Are the files found that the user means: folders, patterns, packed files, addresses?"""

from __future__ import annotations

import gzip
import http.server
import json
import shutil
import sys
import threading
from functools import partial
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault, InputError, MissingExtra, UnknownKind
from gpuledger.telemetry.finding import shown

FIXTURES = Path(__file__).parent / "fixtures"
QUERY = FIXTURES / "nvidia_smi_query" / "units.csv"
ROWS = len(QUERY.read_text().splitlines()) - 1
MORE = "timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL\n2026-01-20T00:00:00Z,GPU-1,NVIDIA H200,50\n"


@pytest.fixture
def logs(tmp_path):
    """A folder with telemetry of two kinds among other files."""
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    shutil.copy(QUERY, folder / "a.log")
    (folder / "deep" / "b.csv").write_text(MORE)
    (folder / "README.md").write_text("# Logs\n\nOf the cluster.\n")
    (folder / "prices.csv").write_text("model,usd\nH200,2.50\n")
    (folder / "core").write_bytes(bytes(range(256)) * 20)
    (folder / ".hidden").write_text("secret")
    return folder


def rows(lake: Path) -> int:
    return len(gpuledger.open(lake).samples().df())


def test_a_folder_takes_what_it_recognizes_and_names_the_rest(logs, tmp_path, capsys):
    assert run(["import", str(logs), "--lake", str(tmp_path / "lake"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows_added"] == ROWS + 1
    named = [note.partition(": not imported: ")[0] for note in said["notes"] if ": not imported: " in note]
    assert named == [str(logs / name) for name in ("README.md", "core", "prices.csv")]
    assert rows(tmp_path / "lake") == ROWS + 1


def test_a_statement_of_a_folder_without_a_lake(logs, capsys):
    assert run(["analyze", str(logs), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["statement"] == "efficiency"


def test_a_folder_without_telemetry_is_refused(logs, tmp_path):
    (logs / "a.log").unlink()
    (logs / "deep" / "b.csv").unlink()
    with pytest.raises(InputError, match="none of 3 files is telemetry"):
        gpuledger.open(tmp_path / "lake").ingest(logs)
    assert not (tmp_path / "lake").exists()


def test_what_only_the_user_knows_is_asked_for_in_a_folder_too(logs, tmp_path):
    shutil.copy(FIXTURES / "nvidia_smi_dmon" / "DT.txt", logs)
    with pytest.raises(FileFault, match="which host"):
        gpuledger.open(tmp_path / "lake").ingest(logs)


def test_a_broken_file_of_a_known_kind_stops_a_folder(logs, tmp_path):
    (logs / "cut.parquet").write_bytes(b"PAR1 and no footer")
    with pytest.raises(FileFault, match=r"cut\.parquet"):
        gpuledger.open(tmp_path / "lake").ingest(logs)


def test_the_samples_of_another_lake(logs, tmp_path):
    gpuledger.open(tmp_path / "one").ingest(logs)
    gpuledger.open(tmp_path / "one").analyze()
    assert gpuledger.open(tmp_path / "two").ingest(tmp_path / "one").rows_added == ROWS + 1


def test_patterns(logs, tmp_path):
    result = gpuledger.open(tmp_path / "lake").ingest(f"{logs}/**/*.csv")
    assert result.rows_added == 1
    assert [note for note in result.notes if "prices.csv: not imported" in note]
    with pytest.raises(FileFault, match="no such file"):
        gpuledger.open(tmp_path / "lake").ingest(f"{logs}/*.none")
    (logs / "x[1].csv").write_text(MORE)
    assert gpuledger.open(tmp_path / "other").ingest(logs / "x[1].csv").rows_added == 1


def test_one_named_file_that_is_not_telemetry_is_refused(logs, tmp_path):
    with pytest.raises(UnknownKind):
        gpuledger.open(tmp_path / "lake").ingest(logs / "core")


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("name", ["nvidia_smi_query/units.csv", "nvidia_smi_dmon/DT.txt", "zeus/power.txt"])
def test_packed_files_give_the_same_rows(tmp_path, kind, name):
    text = (FIXTURES / name).read_bytes()
    packed = gzip.compress(text) if kind == "gzip" else pa.compress(text, codec="zstd", asbytes=True)
    (tmp_path / "packed").write_bytes(packed)
    said = {"host": "n1", "gpu_model": "NVIDIA H200"}
    plain = gpuledger.open(tmp_path / "a").ingest(FIXTURES / name, **said)
    assert plain.rows_added
    gpuledger.open(tmp_path / "b").ingest(tmp_path / "packed", **said)
    first, second = (gpuledger.open(tmp_path / lake).samples().df() for lake in ("a", "b"))
    assert first.equals(second)
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FileFault, match="cannot be unpacked"):
        gpuledger.open(tmp_path / "c").ingest(tmp_path / "cut", **said)


@pytest.fixture
def address(logs):
    """A server of the folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(logs))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_file_from_the_web(address, tmp_path, capsys):
    assert run(["import", f"{address}/a.log?token=abc", "--lake", str(tmp_path / "lake")]) == 0
    assert rows(tmp_path / "lake") == ROWS
    assert not list((tmp_path / "lake").glob("staging/*"))
    with pytest.raises(FileFault, match="no such file") as caught:
        gpuledger.open(tmp_path / "lake").ingest(f"{address}/none.csv?token=abc")
    assert "token" not in str(caught.value)


def test_faults_name_the_address_not_the_copy(address, tmp_path):
    with pytest.raises(FileFault) as caught:
        gpuledger.open(tmp_path / "lake").ingest(f"{address}/prices.csv")
    assert caught.value.message.startswith(f"{address}/prices.csv: ")


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(FileFault, match="cannot be read") as caught:
        gpuledger.open(tmp_path / "lake").ingest("http://127.0.0.1:9/a.csv")
    assert "curl" in caught.value.hint


def test_a_bucket(logs, tmp_path):
    bucket = fsspec.filesystem("memory")
    for file in ("a.log", "deep/b.csv", "prices.csv"):
        bucket.pipe_file(f"/bucket/day/{file}", (logs / file).read_bytes())
    (tmp_path / "lake").mkdir()
    result = gpuledger.open(tmp_path / "lake").ingest("memory://bucket/day")
    assert result.rows_added == ROWS + 1
    assert any("prices.csv: not imported" in note for note in result.notes)
    assert gpuledger.open(tmp_path / "b").ingest("memory://bucket/day/*.log").rows_added == ROWS
    with pytest.raises(FileFault, match="no such file"):
        gpuledger.open(tmp_path / "b").ingest("memory://bucket/none.csv")


def test_rejected_rows_name_the_address(tmp_path):
    bad = MORE + "2026-01-20T00:01:00Z,GPU-1,NVIDIA H200,lots\n"
    fsspec.filesystem("memory").pipe_file("/rejects/bad.csv", bad.encode())
    result = gpuledger.open(tmp_path / "lake").ingest("memory://rejects/bad.csv")
    assert "memory://rejects/bad.csv,2," in Path(result.rejects_file).read_text()


def test_addresses_without_the_extra_name_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtra) as caught:
        gpuledger.open(tmp_path / "lake").ingest("s3://bucket/a.csv")
    assert caught.value.hint == 'pip install "gpuledger[remote]"'


def test_unknown_addresses_are_refused(tmp_path):
    with pytest.raises(FileFault, match="nosuch://"):
        gpuledger.open(tmp_path / "lake").ingest("nosuch://bucket/a.csv")


def test_addresses_are_shown_without_secrets():
    assert shown("https://me:pass@host/a.csv?sig=1") == "https://host/a.csv"
    assert shown("s3://bucket/a.csv") == "s3://bucket/a.csv"
