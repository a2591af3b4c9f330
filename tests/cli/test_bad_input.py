"""What happens to bad files and bad rows, through the command line itself?"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuledger.plain_text import csv_cell

UTIL, POWER = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"


def tree(folder: str | Path) -> dict[str, str]:
    """Every file below a folder with a hash of its bytes."""
    files = (f for f in sorted(Path(folder).rglob("*")) if f.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def rows_of(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.read_text())))


def write_rows(file: Path, rows: list[dict[str, str]]) -> Path:
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


@pytest.fixture
def lake_before(cli, fleet_parquet):
    """A lake with samples in it, and its bytes: what a refused import must leave exactly as it was."""
    assert cli("import", fleet_parquet, "--lake", "lake").code == 0
    return tree("lake")


@pytest.fixture
def rows(fleet_csv):
    return rows_of(fleet_csv)


def refused(cli, file, lake_before, *words: str, args=()):
    """The import of `file` ends with 2, says these words and a next step, and the lake is as before."""
    ended = cli("import", file, "--lake", "lake", *args)
    assert ended.code == 2, ended
    assert ended.out == ""
    first, second = ended.err.strip().splitlines()[:2]
    assert first.startswith("error: ")
    assert second.startswith("next: ")
    assert len(second) > len("next: check it")
    assert "Traceback" not in ended.err
    for word in (str(file), *words):
        assert word in ended.err, (word, ended.err)
    assert tree("lake") == lake_before
    assert not Path("lake/staging").exists()
    return ended


@pytest.mark.parametrize("at_row", [0, -1])
def test_text_in_another_encoding_names_the_way_out(cli, rows, lake_before, tmp_path, at_row):
    rows[at_row]["NAMESPACE"] = "café"
    text = write_rows(tmp_path / "latin.csv", rows).read_text(encoding="utf-8")
    file = tmp_path / "latin 1.csv"
    file.write_bytes(text.encode("latin-1"))
    refused(cli, file, lake_before, f"iconv -f LATIN1 -t UTF-8 '{file}' > utf8.csv")
    file = tmp_path / "latin.csv.gz"
    file.write_bytes(gzip.compress(text.encode("latin-1")))
    refused(cli, file, lake_before, "unpack it and save it as UTF-8")


class TestFileFaults:
    """A file that cannot be used at all: exit 2, and the lake exactly as before."""

    def test_missing_column(self, cli, rows, lake_before, tmp_path):
        for row in rows:
            del row["UUID"]
        refused(cli, write_rows(tmp_path / "f.csv", rows), lake_before, "'gpu_uuid'", "UUID", "--map")

    def test_renamed_column_suggests_the_nearest(self, cli, rows, lake_before, tmp_path):
        renamed = [{("DCGM_FI_DEV_POWER_USGE" if k == POWER else k): v for k, v in row.items()} for row in rows]
        file = write_rows(tmp_path / "f.csv", renamed)
        refused(cli, file, lake_before, f"'{POWER}'", "nearest in the file: 'DCGM_FI_DEV_POWER_USGE'")

    def test_unknown_layout(self, cli, lake_before, tmp_path):
        file = tmp_path / "f.csv"
        file.write_text("fruit,price\napple,3\n")
        refused(cli, file, lake_before, "not understood: 'fruit', 'price'", "mapping file")

    def test_empty_file(self, cli, lake_before, tmp_path):
        for name in ("f.csv", "f.parquet"):
            (tmp_path / name).touch()
            refused(cli, tmp_path / name, lake_before, "empty")

    def test_zero_rows(self, cli, rows, lake_before, tmp_path, fleet_parquet):
        text = tmp_path / "f.csv"
        text.write_text(",".join(rows[0]) + "\n")
        refused(cli, text, lake_before, "not one row")
        empty = tmp_path / "f.parquet"
        pq.write_table(pq.read_table(fleet_parquet).slice(0, 0), empty)
        refused(cli, empty, lake_before, "not one row")

    def test_truncated_parquet(self, cli, lake_before, tmp_path, fleet_parquet):
        whole = fleet_parquet.read_bytes()
        for keep in (3, 100, len(whole) // 2, len(whole) - 1):
            file = tmp_path / f"f{keep}.parquet"
            file.write_bytes(whole[:keep])
            refused(cli, file, lake_before, "copy or export the file again")

    def test_parquet_broken_inside(self, cli, lake_before, tmp_path, fleet_parquet):
        whole = bytearray(fleet_parquet.read_bytes())
        middle = len(whole) // 4
        whole[middle : middle + 2000] = b"\xff" * 2000
        file = tmp_path / "f.parquet"
        file.write_bytes(whole)
        refused(cli, file, lake_before, "copy or export the file again")

    def test_truncated_gzip(self, cli, fleet_csv, lake_before, tmp_path):
        packed = gzip.compress(fleet_csv.read_bytes())
        for keep in (5, len(packed) // 2, len(packed) - 4):
            file = tmp_path / f"f{keep}.csv.gz"
            file.write_bytes(packed[:keep])
            refused(cli, file, lake_before)

    @pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.dat"])
    def test_binary_junk(self, cli, lake_before, tmp_path, name):
        file = tmp_path / name
        file.write_bytes(bytes(range(256)) * 64)
        refused(cli, file, lake_before)

    def test_text_that_is_not_utf8(self, cli, fleet_csv, lake_before, tmp_path):
        file = tmp_path / "f.csv"
        file.write_bytes(fleet_csv.read_text().replace("ml-", "ml\xe9-").encode("latin-1"))
        refused(cli, file, lake_before)

    def test_one_bad_byte_far_below(self, cli, fleet_csv, lake_before, tmp_path):
        file = tmp_path / "f.csv"
        whole = fleet_csv.read_bytes()
        at = whole.rindex(b"GPU-")
        file.write_bytes(whole[:at] + b"\xe9" + whole[at + 1 :])
        refused(cli, file, lake_before)

    def test_every_date_wrong(self, cli, rows, lake_before, tmp_path):
        for row in rows:
            row["SCRAPETIME"] = "yesterday"
        refused(
            cli, write_rows(tmp_path / "f.csv", rows), lake_before, "wrong_time", "row 1", "SCRAPETIME", "yesterday"
        )

    def test_two_columns_of_one_name(self, cli, fleet_csv, lake_before, tmp_path):
        file = tmp_path / "f.csv"
        file.write_text(fleet_csv.read_text().replace("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL", 1))
        refused(cli, file, lake_before, "DCGM_FI_DEV_DEC_UTIL")

    def test_a_directory(self, cli, lake_before, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        refused(cli, folder, lake_before, "folder", f"{folder}/*.parquet")

    def test_no_such_file(self, cli, lake_before):
        refused(cli, "nowhere.csv", lake_before, "no such file")

    def test_no_such_zone(self, cli, fleet_csv, lake_before):
        ended = cli("import", fleet_csv, "--lake", "lake", "--tz", "Mars/Olympus")
        assert ended.code == 2
        assert "Mars/Olympus" in ended.err
        assert tree("lake") == lake_before

    def test_no_such_mapping(self, cli, fleet_csv, lake_before):
        ended = cli("import", fleet_csv, "--lake", "lake", "--map", "dcmg")
        assert (ended.code, tree("lake")) == (2, lake_before)
        assert "did you mean dcgm" in ended.err

    def test_one_bad_file_among_good_ones(self, cli, fleet_csv, lake_before, tmp_path):
        (tmp_path / "empty.csv").touch()
        ended = cli("import", fleet_csv, tmp_path / "empty.csv", "--lake", "lake")
        assert (ended.code, tree("lake")) == (2, lake_before)
        assert "empty.csv" in ended.err

    def test_a_new_lake_is_not_left_behind(self, cli, tmp_path):
        (tmp_path / "empty.csv").touch()
        assert cli("import", "empty.csv", "--lake", "fresh").code == 2
        assert not Path("fresh").exists()

    def test_lake_path_is_a_file(self, cli, fleet_csv, tmp_path):
        (tmp_path / "taken").write_text("mine")
        for lake in ("taken", "taken/below"):
            ended = cli("import", fleet_csv, "--lake", lake)
            assert ended.code == 2
            assert "taken" in ended.err
            assert "next: " in ended.err
        assert (tmp_path / "taken").read_text() == "mine"

    def test_broken_manifest(self, cli, fleet_csv, lake_before):
        Path("lake/manifest.json").write_text('{"parts": 3}')
        before = tree("lake")
        ended = cli("import", fleet_csv, "--lake", "lake")
        assert (ended.code, tree("lake")) == (2, before)
        assert "manifest.json" in ended.err

    def test_errors_as_json(self, cli, lake_before):
        ended = cli("import", "nowhere.csv", "--lake", "lake", "--json")
        assert (ended.code, ended.out) == (2, "")
        said = json.loads(ended.err)
        assert said["exit_code"] == 2
        assert "nowhere.csv" in said["error"]
        assert said["next"]


class TestRowFaults:
    """A row that cannot be used: left out, counted by reason, kept in the rejects file, exit 0."""

    def rejects(self, cli, file, lake="new", args=()):
        ended = cli("import", file, "--lake", lake, "--json", *args)
        assert ended.code == 0, ended
        said = ended.json()
        kept = rows_of(Path(said["rejects_file"])) if said["rejects_file"] else []
        assert len(kept) == said["rows_rejected"] == sum(said["rejects"].values())
        assert said["rows_read"] == said["rows_added"] + said["rows_rejected"] + said["rows_duplicate"]
        return said, kept

    @pytest.mark.parametrize(
        ("column", "value", "reason"),
        [
            (UTIL, "lots", "not_a_number"),
            (POWER, "12 to 14", "not_a_number"),
            (POWER, "12 V", "wrong_unit"),
            (POWER, "-5", "out_of_range"),
            (POWER, "1000000000", "out_of_range"),
            (POWER, "inf", "out_of_range"),
            (POWER, "-inf", "out_of_range"),
            (POWER, "1900", "power_over_twice_the_board"),
            (UTIL, "140", "out_of_range"),
            ("DCGM_FI_PROF_DRAM_ACTIVE", "1.5", "out_of_range"),
            ("SCRAPETIME", "13/45/26 10:00", "wrong_time"),
            ("SCRAPETIME", "01/20/1826 10:00", "wrong_time"),
            ("SCRAPETIME", "", "wrong_time"),
            ("UUID", "", "no_device"),
        ],
    )
    def test_reason_row_and_column(self, cli, rows, tmp_path, column, value, reason):
        rows[7][column] = value
        said, kept = self.rejects(cli, write_rows(tmp_path / "f.csv", rows))
        assert said["rejects"] == {reason: 1}
        assert said["rows_added"] == len(rows) - 1
        assert kept[0]["row"] == "8"
        assert kept[0]["file"] == str(tmp_path / "f.csv")
        if reason != "power_over_twice_the_board":
            assert (kept[0]["column"], kept[0]["value"]) == (column, csv_cell(value))

    def test_fail_on_rejects(self, cli, rows, tmp_path):
        good = write_rows(tmp_path / "good.csv", rows)
        assert cli("import", good, "--lake", "a", "--fail-on", "rejects").code == 0
        rows[0][POWER] = "-1"
        bad = write_rows(tmp_path / "bad.csv", rows)
        ended = cli("import", bad, "--lake", "b", "--fail-on", "rejects", "--json")
        assert ended.code == 1
        assert ended.json()["rows_added"] == len(rows) - 1

    def test_said_aloud(self, cli, rows, tmp_path):
        rows[0][POWER], rows[4][POWER], rows[5]["SCRAPETIME"] = "-1", "-2", "never"
        ended = cli("import", write_rows(tmp_path / "f.csv", rows), "--lake", "new")
        assert ended.code == 0
        flat = " ".join(ended.out.split())
        assert "3 rows rejected" in flat
        assert "out of range 2" in flat
        assert "wrong time 1" in flat
        assert "rejects-" in flat

    def test_wrong_number_of_cells_keeps_the_row_numbers_right(self, cli, fleet_csv, tmp_path):
        lines = fleet_csv.read_text().splitlines()
        lines[3] = "a,b"
        lines[6] += ",one too many"
        cells = lines[9].split(",")
        cells[lines[0].split(",").index(POWER)] = "text"
        lines[9] = ",".join(cells)
        (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
        said, kept = self.rejects(cli, tmp_path / "f.csv")
        assert said["rejects"] == {"not_a_number": 1, "wrong_number_of_cells": 2}
        assert sorted((k["reason"], k["row"]) for k in kept) == [
            ("not_a_number", "9"), ("wrong_number_of_cells", "3"), ("wrong_number_of_cells", "6"),
        ]  # fmt: skip

    def test_conflicting_rows_are_named_by_their_own_numbers(self, cli, rows, tmp_path):
        rows[0][POWER] = "text"
        twin = dict(rows[5])
        twin[UTIL] = "3" if twin[UTIL] != "3" else "4"
        rows.append(twin)
        _, kept = self.rejects(cli, write_rows(tmp_path / "f.csv", rows))
        conflicts = sorted(int(k["row"]) for k in kept if k["reason"] == "conflicts_with_another_row")
        assert conflicts == [6, len(rows)]

    def test_absurd_power_in_parquet(self, cli, fleet_parquet, tmp_path):
        table = pq.read_table(fleet_parquet)
        power = table[POWER].to_pylist()
        power[3], power[9] = -1.0, 5e6
        column = table.schema.get_field_index(POWER)
        table = table.set_column(column, table.schema.field(column), pa.array(power, table.schema.field(column).type))
        pq.write_table(table, tmp_path / "f.parquet")
        said, kept = self.rejects(cli, tmp_path / "f.parquet")
        assert said["rejects"] == {"out_of_range": 2}
        assert [k["row"] for k in kept] == ["4", "10"]

    def test_importing_again_adds_nothing(self, cli, fleet_csv, tmp_path):
        first = cli("import", fleet_csv, "--lake", "new", "--json").json()
        samples = tree("new/samples")
        again = cli("import", fleet_csv, "--lake", "new", "--json").json()
        assert first["rows_added"] == again["rows_duplicate"] == first["rows_read"]
        assert again["rows_added"] == 0
        assert tree("new/samples") == samples

    def test_unknown_model_is_taken_and_said(self, cli, rows, tmp_path):
        for row in rows:
            row["MODELNAME"] = "Frobnicator 9000"
        said, _ = self.rejects(cli, write_rows(tmp_path / "f.csv", rows))
        assert said["rows_added"] == len(rows)
        assert said["unknown_models"] == ["Frobnicator 9000"]
        assert any("not in the catalog" in n for n in said["notes"])


class TestOddTypes:
    """Parquet that says the right thing in an unusual type, or the wrong thing in any."""

    def swap(self, fleet_parquet, tmp_path, column, make):
        table = pq.read_table(fleet_parquet)
        place = table.schema.get_field_index(column)
        values = table[column].to_pylist()
        pq.write_table(table.set_column(place, column, make(values)), tmp_path / "odd.parquet")
        return tmp_path / "odd.parquet", table.num_rows

    @pytest.mark.parametrize(
        ("column", "kind"),
        [
            (UTIL, pa.uint64()),
            (UTIL, pa.float16()),
            (UTIL, pa.decimal128(21, 2)),
            (UTIL, pa.string_view()),
            (POWER, pa.large_string()),
            ("UUID", pa.binary()),
            ("UUID", pa.large_string()),
            ("NAMESPACE", pa.null()),
        ],
        ids=str,
    )
    def test_unusual_but_right(self, cli, fleet_parquet, tmp_path, column, kind):
        def make(values):
            if kind == pa.null():
                return pa.nulls(len(values))
            text = pa.types.is_large_string(kind) or kind == pa.string_view()
            plain = pa.array([str(v) for v in values] if text else values)
            return plain.cast(pa.float32()).cast(kind) if kind == pa.float16() else plain.cast(kind)

        file, rows = self.swap(fleet_parquet, tmp_path, column, make)
        said = cli("import", file, "--lake", "odd", "--json").json()
        assert (said["rows_added"], said["rejects"]) == (rows, {})

    @pytest.mark.parametrize("column", ["UUID", "SCRAPETIME", POWER])
    def test_lists_are_a_fault_of_the_file(self, cli, fleet_parquet, lake_before, tmp_path, column):
        file, _ = self.swap(fleet_parquet, tmp_path, column, lambda values: pa.array([[1]] * len(values)))
        refused(cli, file, lake_before, f"'{column}'", "list", "one value per row")

    def test_bytes_that_are_no_text(self, cli, fleet_parquet, lake_before, tmp_path):
        file, _ = self.swap(fleet_parquet, tmp_path, "UUID", lambda values: pa.array([b"\xff\xfe"] * len(values)))
        refused(cli, file, lake_before)

    def test_yes_and_no_are_no_times(self, cli, fleet_parquet, lake_before, tmp_path):
        file, _ = self.swap(fleet_parquet, tmp_path, "SCRAPETIME", lambda values: pa.array([True] * len(values)))
        refused(cli, file, lake_before, "wrong_time")

    @pytest.mark.parametrize("blank", [0x7FFFFFFFFFFFFFF0, 140737488355328])
    def test_blank_whole_numbers_of_dcgm_are_silence(self, cli, fleet_parquet, tmp_path, blank):
        file, rows = self.swap(fleet_parquet, tmp_path, UTIL, lambda v: pa.array([blank, *map(int, v[1:])], pa.int64()))
        said = cli("import", file, "--lake", "odd", "--json").json()
        assert (said["rows_added"], said["rejects"]) == (rows, {})

    def test_absurd_whole_numbers_do_not_wrap_into_range(self, cli, fleet_parquet, tmp_path):
        column = "DCGM_FI_DEV_FB_USED"  # MiB: 2^44 of them are 2^64 bytes, which would wrap to none
        file, _ = self.swap(fleet_parquet, tmp_path, column, lambda v: pa.array([2**44, *map(int, v[1:])], pa.int64()))
        assert cli("import", file, "--lake", "odd", "--json").json()["rejects"] == {"out_of_range": 1}

    def test_a_wrong_cell_changes_nothing_for_its_neighbours(self, cli, rows, tmp_path):
        rows[1][POWER], rows[2][POWER] = "NAN", "Infinity"
        alone = cli("import", write_rows(tmp_path / "a.csv", rows), "--lake", "a", "--json").json()
        rows[3][POWER] = "text"
        beside = cli("import", write_rows(tmp_path / "b.csv", rows), "--lake", "b", "--json").json()
        assert alone["rejects"] == {"out_of_range": 1}
        assert beside["rejects"] == {"out_of_range": 1, "not_a_number": 1}

    def test_a_model_that_changes_within_the_hour(self, cli, rows, tmp_path):
        for row in rows[len(rows) // 2 :]:
            row["MODELNAME"] = "Frobnicator 9000"
        assert cli("import", write_rows(tmp_path / "f.csv", rows), "--lake", "odd").code == 0
        ended = cli("analyze", "--lake", "odd", "--json")
        assert ended.code == 0, ended.err
        assert ended.json()["samples"] == len(rows)


class TestTimes:
    """Times with and without a zone."""

    def first_hour(self, cli, file, *args):
        from gpuledger.lake.layout import Lake
        from gpuledger.units import utc

        said = cli("import", file, "--lake", "times", "--json", *args).json()
        part = Lake("times").manifest().parts[-1]
        shutil.rmtree("times")
        return f"{utc(part.first_ms):%m-%d %H:%M}", any(one["option"] == "--tz NAME" for one in said["stated"])

    def test_zoneless_times_are_utc_unless_told(self, cli, fleet_csv):
        assert self.first_hour(cli, fleet_csv) == ("01-20 00:00", True)
        assert self.first_hour(cli, fleet_csv, "--tz", "America/New_York") == ("01-20 05:00", True)

    @pytest.mark.parametrize(
        ("text", "hour"),
        [("2026-01-20T10:00:00Z", "10:00"), ("2026-01-20 10:00:00+02:00", "08:00"), ("1768903200", "10:00")],
    )
    def test_zoned_times_ignore_tz(self, cli, rows, tmp_path, text, hour):
        one = dict(rows[0], SCRAPETIME=text)
        file = write_rows(tmp_path / "f.csv", [one])
        assert self.first_hour(cli, file, "--tz", "Asia/Tokyo") == (f"01-20 {hour}", False)

    def test_some_dates_wrong(self, cli, rows, tmp_path):
        for i in (2, 3):
            rows[i]["SCRAPETIME"] = "soon"
        ended = cli("import", write_rows(tmp_path / "f.csv", rows), "--lake", "new", "--json")
        assert (ended.code, ended.json()["rejects"]) == (0, {"wrong_time": 2})


def start(*args, cwd, **how):
    command = [sys.executable, "-m", "gpuledger", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120, **how)


class TestTheSystemSaysNo:
    """What the operating system refuses: reading, writing, space."""

    @pytest.fixture
    def somebody(self, cli, fleet_csv):
        """Run a command as a user who may be refused; root never is, so root becomes somebody else for the while."""
        assert cli("import", fleet_csv, "--lake", "warm").code == 0  # imports what needs root's own Python files

        def call(*args):
            was = os.geteuid()
            if was == 0:
                os.seteuid(65534)
            try:
                return cli(*args)
            finally:
                os.seteuid(was)

        return call

    @pytest.fixture
    def open_folder(self):
        """A folder anybody may look into."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            yield Path(folder)

    def test_no_permission_to_read(self, somebody, fleet_csv, open_folder):
        secret, closed = open_folder / "secret.csv", open_folder / "closed"
        lake = open_folder / "lake"
        lake.mkdir(mode=0o777)
        lake.chmod(0o777)
        shutil.copy(fleet_csv, secret)
        secret.chmod(0)
        closed.mkdir(mode=0o700)
        shutil.copy(fleet_csv, closed / "f.csv")
        closed.chmod(0)
        for file in (secret, closed / "f.csv"):
            ended = somebody("import", file, "--lake", lake)
            assert ended.code == 2
            assert f"error: {file}: cannot read: permission denied" in ended.err
            assert "next: " in ended.err
            assert tree(lake) == {}
        closed.chmod(0o700)

    def test_no_permission_to_write(self, somebody, fleet_csv, open_folder):
        shutil.copy(fleet_csv, open_folder / "f.csv")
        open_folder.chmod(0o555)
        ended = somebody("import", open_folder / "f.csv", "--lake", open_folder / "lake")
        open_folder.chmod(0o755)
        assert ended.code == 2
        assert f"error: {open_folder / 'lake'}: cannot write: permission denied" in ended.err
        assert "next: " in ended.err
        assert not (open_folder / "lake").exists()

    @pytest.fixture
    def small_disk(self, tmp_path):
        """A file system of 1.5 MB, where the one who runs the tests may mount one."""
        folder = tmp_path / "disk"
        folder.mkdir()
        mount = shutil.which("mount")
        done = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=1500k", "tmpfs", folder], check=False)
        if not done or done.returncode:
            pytest.skip("may not mount a small file system here")
        yield folder
        subprocess.run([shutil.which("umount"), folder], check=True)

    def test_full_disk(self, cli, small_disk, tmp_path):
        big, little = tmp_path / "big.parquet", tmp_path / "little.parquet"
        assert cli("synth", big, "--gpus", 50, "--days", 2, "-q").code == 0
        assert cli("synth", little, "--gpus", 2, "--days", 1, "--start", "2026-03-01", "-q").code == 0
        assert cli("import", little, "--lake", small_disk / "lake").code == 0
        before = tree(small_disk / "lake")
        ended = cli("import", big, "--lake", small_disk / "lake")
        assert ended.code == 2
        assert "disk is full" in ended.err
        assert "free some space" in ended.err
        assert tree(small_disk / "lake") == before
        assert cli("analyze", "--lake", small_disk / "lake", "--json").code == 0

    def test_file_size_limit(self, cli, tmp_path):
        big = tmp_path / "big.parquet"
        assert cli("synth", big, "--gpus", 50, "--days", 2, "-q").code == 0

        def small_files_only():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

        ended = start("import", big, "--lake", "lake", cwd=tmp_path, preexec_fn=small_files_only)
        assert ended.returncode == 2
        assert "error: lake" in ended.stderr
        assert "next: " in ended.stderr
        assert not (tmp_path / "lake").exists()

    def test_output_to_a_full_device(self, tmp_path):
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-m", "gpuledger", "catalog", "gpus", "--json"]
            ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert ended.returncode == 2
        assert "disk is full" in ended.stderr
        assert "Traceback" not in ended.stderr


NARROW = "timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE"


def narrow(file: Path, stamps: list[str], device: str = "GPU-0") -> Path:
    """One device at these times, every reading different."""
    lines = [f"{text},{device},NVIDIA H100 80GB HBM3,{i % 100},{100 + i / 10}" for i, text in enumerate(stamps)]
    file.write_text("\n".join([NARROW, *lines, ""]))
    return file


def minutes(first: str, count: int) -> list[str]:
    day, _, clock = first.partition(" ")
    start_at = int(clock[:2]) * 60 + int(clock[3:])
    return [f"{day} {m // 60:02d}:{m % 60:02d}" for m in range(start_at, start_at + count)]


def instants_in(lake: str = "lake") -> list[str]:
    """The times in the lake, in order, UTC."""
    from gpuledger.lake.layout import Lake
    from gpuledger.units import utc

    found = Lake(lake)
    stamps = sorted(t for p in found.manifest().parts for t in pq.read_table(found.path(p))["at_ms"].to_pylist())
    return [f"{utc(t):%Y-%m-%d %H:%M}" for t in stamps]


def _seconds(count):
    """Instants a second apart."""
    start = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    return [start + dt.timedelta(seconds=i) for i in range(count)]


class TestBrokenAndHugeFiles:
    """Files that cannot be unpacked, and small files that hold far too much."""

    @pytest.mark.parametrize("where", [0.1, 0.5, 0.999])
    def test_a_flipped_bit_in_a_gzip(self, cli, lake_before, tmp_path, where):
        raw = bytearray(gzip.compress(narrow(tmp_path / "f.csv", minutes("2026-03-02 00:00", 1200)).read_bytes()))
        raw[max(12, int(where * len(raw)) - 4)] ^= 0x10
        file = tmp_path / "f.csv.gz"
        file.write_bytes(raw)
        refused(cli, file, lake_before, "cannot be unpacked", "export the file again")

    def test_ragged_rows_that_are_not_utf8(self, cli, lake_before, tmp_path):
        file = narrow(tmp_path / "f.csv", minutes("2026-03-02 00:00", 1200))
        file.write_bytes(file.read_bytes() + "caf\u00e9,2,3,4,5,6,7\n".encode("latin-1"))
        ended = refused(cli, file, lake_before, "not UTF-8")
        assert "pyarrow" not in ended.err

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("line", [3000, 5000])
    def test_a_log_of_nvidia_smi_with_a_line_that_is_not_utf8(self, cli, lake_before, tmp_path, line, packed):
        head = "timestamp, name, uuid, utilization.gpu [%], power.draw [W]"
        rows = [f"{at:%Y/%m/%d %H:%M:%S}.000, NVIDIA A100-SXM4-40GB, GPU-1, 50 %, 100 W" for at in _seconds(5000)]
        lines = [text.encode() for text in (head, *rows)]
        lines[line - 1] = lines[line - 1].replace(b"GPU-1", b"GPU-\xff")
        file = tmp_path / f"smi.csv{'.gz' * packed}"
        whole = b"\n".join(lines) + b"\n"
        file.write_bytes(gzip.compress(whole) if packed else whole)
        ended = refused(cli, file, lake_before, "is not UTF-8 text", "UTF-8")
        assert f"line {line:,} is not UTF-8 text" in ended.err
        assert "codec" not in ended.err

    @pytest.mark.scale
    @pytest.mark.parametrize("header", ["", NARROW + "\n"])
    def test_an_endless_line_is_refused_in_bounded_memory(self, tmp_path, header):
        file = tmp_path / "f.csv.gz"
        file.write_bytes(gzip.compress(header.encode()) + gzip.compress(b"x" * 10_000_000) * 120)
        ended, peak_mb = peak("import", file, "--lake", "lake", cwd=tmp_path)
        assert ended.returncode == 2
        assert "longer than" in ended.stderr
        assert not (tmp_path / "lake").exists()
        assert peak_mb < 500

    @pytest.mark.scale
    def test_repeated_rows_are_dropped_in_bounded_memory(self, tmp_path):
        file = tmp_path / "f.csv.gz"
        rows = narrow(tmp_path / "f.csv", minutes("2026-03-02 00:00", 1000)).read_text().splitlines(keepends=True)
        block = gzip.compress("".join(rows[1:]).encode() * 100)
        file.write_bytes(gzip.compress(rows[0].encode()) + block * 60)
        ended, peak_mb = peak("import", file, "--lake", "lake", "--json", cwd=tmp_path)
        said = json.loads(ended.stdout)
        assert (said["rows_read"], said["rows_added"], said["rows_duplicate"]) == (6_000_000, 1_000, 5_999_000)
        assert peak_mb < 750

    def test_a_header_of_one_huge_name(self, cli, lake_before, tmp_path):
        (tmp_path / "f.csv").write_text("x" * 131_071 + "\n1\n")
        refused(cli, tmp_path / "f.csv", lake_before)
        (tmp_path / "f.csv").write_text("a" + "," * 150_000 + "\n1\n")
        refused(cli, tmp_path / "f.csv", lake_before, "longer than")


def peak(*args, cwd):
    """How a command ended, and the most memory it held, in MB."""
    # Not ru_maxrss: that counts what the process held before it became this program, which is all of the test runner.
    code = (
        "import sys; sys.argv[0] = 'gpuledger'\n"
        "from gpuledger.cli import main\n"
        "code = main()\n"
        "status = open('/proc/self/status').read()\n"
        "print(int(status.partition('VmHWM:')[2].split()[0]) // 1024, file=sys.stderr)\n"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *map(str, args)]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    return ended, int(ended.stderr.splitlines()[-1])


class TestLocalTimes:
    """Hours that come twice or never, where times carry no zone."""

    def rejected(self, cli, file):
        return cli("import", file, "--lake", "lake", "--tz", "America/New_York", "--json").json()

    def test_a_repeated_hour_that_is_gone_through_twice(self, cli, tmp_path):
        stamps = minutes("2025-11-02 00:30", 90) + minutes("2025-11-02 01:00", 90)
        said = self.rejected(cli, narrow(tmp_path / "f.csv", stamps))
        assert (said["rows_added"], said["rejects"]) == (180, {})
        assert instants_in() == minutes("2025-11-02 04:30", 180)

    def test_newest_first(self, cli, tmp_path):
        stamps = minutes("2025-11-02 00:30", 90) + minutes("2025-11-02 01:00", 90)
        said = self.rejected(cli, narrow(tmp_path / "f.csv", stamps[::-1]))
        assert (said["rows_added"], said["rejects"]) == (180, {})
        assert instants_in() == minutes("2025-11-02 04:30", 180)

    def test_devices_in_turns(self, cli, tmp_path):
        stamps = minutes("2025-11-02 00:30", 90) + minutes("2025-11-02 01:00", 90)
        lines = [f"{t},GPU-{d},NVIDIA H100 80GB HBM3,{i % 100},300" for i, t in enumerate(stamps) for d in range(3)]
        (tmp_path / "f.csv").write_text("\n".join([NARROW, *lines, ""]))
        said = self.rejected(cli, tmp_path / "f.csv")
        assert (said["rows_added"], said["rejects"]) == (540, {})

    def test_typed_times_without_a_zone(self, cli, tmp_path):
        stamps = minutes("2025-11-02 00:30", 90) + minutes("2025-11-02 01:00", 90)
        table = pa.table(
            {
                "timestamp": pa.array(stamps).cast(pa.timestamp("s")),
                "UUID": ["GPU-0"] * 180,
                UTIL: [float(i % 100) for i in range(180)],
            }
        )
        pq.write_table(table, tmp_path / "f.parquet")
        said = self.rejected(cli, tmp_path / "f.parquet")
        assert (said["rows_added"], said["rejects"]) == (180, {})
        assert instants_in() == minutes("2025-11-02 04:30", 180)

    @pytest.mark.parametrize(
        ("stamps", "first", "count"),
        [
            (minutes("2025-11-02 00:30", 60), "2025-11-02 04:30", 60),
            (minutes("2025-11-02 01:30", 60), "2025-11-02 06:30", 60),
        ],
    )
    def test_half_an_hour_that_joins_one_side_only(self, cli, tmp_path, stamps, first, count):
        said = self.rejected(cli, narrow(tmp_path / "f.csv", stamps))
        assert (said["rows_added"], said["rejects"]) == (count, {})
        assert instants_in() == minutes(first, count)

    def test_a_repeated_hour_gone_through_once_is_not_guessed(self, cli, tmp_path):
        said = self.rejected(cli, narrow(tmp_path / "f.csv", minutes("2025-11-02 00:30", 180)))
        assert (said["rows_added"], said["rejects"]) == (120, {"ambiguous_local_time": 60})
        assert any("occur twice" in n for n in said["notes"])

    def test_an_hour_that_does_not_exist_costs_only_its_own_rows(self, cli, tmp_path):
        said = self.rejected(cli, narrow(tmp_path / "f.csv", minutes("2026-03-08 01:30", 150)))
        assert (said["rows_added"], said["rejects"]) == (90, {"impossible_local_time": 60})
        assert instants_in() == minutes("2026-03-08 06:30", 90)

    @pytest.mark.parametrize("text", ["1e308", "-1e308", "1e20", "9999999999999999999999", "inf"])
    def test_an_absurd_number_costs_only_its_own_row(self, cli, tmp_path, text):
        stamps = [text, *(str(1_772_409_600 + 60 * i) for i in range(9))]
        said = cli("import", narrow(tmp_path / "f.csv", stamps), "--lake", "lake", "--json").json()
        assert (said["rows_added"], said["rejects"]) == (9, {"wrong_time": 1})
        stamps = pa.array([1e308, *(1_772_409_600.0 + 60 * i for i in range(10, 19))])
        pq.write_table(
            pa.table({"timestamp": stamps, "UUID": ["GPU-0"] * 10, UTIL: [1.0] * 10}), tmp_path / "f.parquet"
        )
        said = cli("import", tmp_path / "f.parquet", "--lake", "lake", "--json").json()
        assert (said["rows_added"], said["rejects"]) == (9, {"wrong_time": 1})

    @pytest.mark.parametrize(
        "args",
        [
            ("--since", "0001-01-01"),
            ("--until", "9999-12-31T23:59:59.999999+00:00"),
            ("--last", "99999999999d"),
            ("--last", "9" * 400 + "d"),
        ],
    )
    def test_windows_outside_all_time(self, cli, lake_before, args):
        ended = cli("analyze", "--lake", "lake", *args)
        assert ended.code == 2
        assert "next: " in ended.err

    def test_a_clock_set_back_is_explained(self, cli, tmp_path):
        """100 of 600 seconds come again with other readings: said where, and nothing else is lost."""
        seconds = [*range(300), *range(200, 500)]
        stamps = [f"2026-03-02T00:{s // 60:02d}:{s % 60:02d}.250Z" for s in seconds]
        said = cli("import", narrow(tmp_path / "f.csv", stamps), "--lake", "lake", "--json").json()
        assert (said["rows_added"], said["rejects"]) == (400, {"conflicts_with_another_row": 200})
        kept = rows_of(Path(said["rejects_file"]))
        assert all("the clock was set back" in k["value"] for k in kept)
        assert "row 301 of" in next(k["value"] for k in kept if k["row"] == "201")

    def test_a_clock_set_back_on_whole_seconds_loses_nothing(self, cli, tmp_path):
        seconds = [*range(300), *range(200, 500)]
        stamps = [f"2026-03-02T00:{s // 60:02d}:{s % 60:02d}Z" for s in seconds]
        said = cli("import", narrow(tmp_path / "f.csv", stamps), "--lake", "lake", "--json").json()
        assert (said["rows_added"], said["rows_spread"], said["rejects"]) == (600, 100, {})
