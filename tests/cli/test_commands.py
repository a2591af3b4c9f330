"""Do synth, catalog and tidy do what their help says?"""

from __future__ import annotations

import csv
import os
import re
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gpuledger.ledger import lines
from gpuledger.units import MS_PER_DAY, day_start_ms


class TestSynth:
    def test_parquet_and_json(self, cli):
        said = cli("synth", "f.parquet", "--gpus", 4, "--days", 0.5, "--step", "10m", "--seed", 3, "--json").json()
        assert (said["rows"], said["columns"], said["format"]) == (4 * 72, 36, "parquet")
        assert (said["gpus"], said["days"], said["step_s"], said["seed"]) == (4, 0.5, 600.0, 3)
        assert said["files"] == ["f.parquet"]
        assert said["size_bytes"] == Path("f.parquet").stat().st_size
        assert pq.read_metadata("f.parquet").num_rows == said["rows"]

    def test_csv_by_suffix_or_option(self, cli):
        assert cli("synth", "f.csv", "--gpus", 2, "--days", 0.01).code == 0
        assert cli("synth", "f.txt", "--gpus", 2, "--days", 0.01, "--format", "csv").code == 0
        assert Path("f.csv").read_bytes() == Path("f.txt").read_bytes()
        assert len(next(csv.reader(Path("f.csv").read_text().splitlines()))) == 36

    def test_by_day(self, cli):
        said = cli("synth", "days", "--gpus", 2, "--days", 2, "--step", "1h", "--by-day", "--json").json()
        assert said["files"] == ["days/2026-01-20.parquet", "days/2026-01-21.parquet"]

    def test_what_is_said(self, cli):
        out = cli("synth", "f.parquet", "--gpus", 2, "--days", 1, "--step", "1h").out
        assert "48 samples of 2 GPUs over 1 day" in out
        assert "next: gpuledger import f.parquet" in out

    @pytest.mark.parametrize(
        "args", [["--gpus", 0], ["--days", -1], ["--start", "soon"], ["--step", "0s"], ["--seed", -1]]
    )
    def test_bad_wishes(self, cli, args):
        ended = cli("synth", "f.parquet", *args)
        assert ended.code == 2
        assert "next: " in ended.err
        assert not Path("f.parquet").exists()


def test_one_gpu_is_written_in_the_singular(cli):
    assert cli("synth", "f.parquet", "--gpus", 1, "--days", 1 / 24, "--step", "1m").code == 0
    assert cli("import", "f.parquet", "--lake", "lake").code == 0
    out = cli("analyze", "--lake", "lake").out
    assert "1 GPU; 1 cluster; 1 namespace; 60 samples" in out
    assert "1 GPUs" not in out


class TestCatalog:
    @pytest.mark.parametrize("width", [80, 100, 160])
    def test_no_figure_of_a_model_is_cut(self, cli, monkeypatch, width):
        monkeypatch.setenv("COLUMNS", str(width))
        out = cli("catalog", "models").out.partition("sources: ")[0]
        assert max(map(len, out.splitlines())) <= width
        line = next(line for line in out.splitlines() if line.startswith("deepseek-r1"))
        assert line.split()[:6] == ["deepseek-r1", "671.0", "37.6", "671.0", "163,840", "2026-11"]
        assert ("Source" in out.splitlines()[2]) == (width >= 100)

    def test_list(self, cli):
        said = cli("catalog", "gpus", "--json").json()["gpus"]
        keys = [g["key"] for g in said]
        assert {"h100-sxm5-80gb", "a100-sxm4-40gb", "a10g"} <= set(keys)
        powers = [g["board_power_w"] for g in said if g["board_power_w"]]
        assert len(powers) > len(said) / 2
        assert all(power["source"] and power["as_of"] for power in powers)
        out = cli("catalog", "gpus").out
        assert all(key in out for key in keys)
        assert max(map(len, out.splitlines())) <= 100

    def test_one_by_any_exact_name(self, cli):
        by_key = cli("catalog", "gpu", "h100-sxm5-80gb", "--json").json()
        assert by_key == cli("catalog", "gpu", "NVIDIA H100 80GB HBM3", "--json").json()
        assert by_key["reference_precision"] == "bf16"
        out = cli("catalog", "gpu", "h100-sxm5-80gb").out
        for field in ("board_power_w", "peak_tflops.bf16", "achievable.published"):
            assert field in out
        assert by_key["board_power_w"]["source"].split()[0] in out

    def test_unknown_gpu(self, cli):
        ended = cli("catalog", "gpu", "h100-smx5")
        assert (ended.code, ended.out) == (2, "")
        assert "H100-SXM5-80GB" in ended.err

    def test_unknown_kind(self, cli):
        assert "did you mean" in cli("catalog", "gpuz").err


@pytest.fixture
def lake(cli, fleet_parquet):
    """Two days, 2026-01-20 and 21, six samples an hour of three GPUs."""
    assert cli("import", fleet_parquet, "--lake", "lake").code == 0


@pytest.fixture
def at(monkeypatch):
    """Set the clock."""

    def to(day: str) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: day_start_ms(day) * 1_000_000)

    return to


class TestTidy:
    FOLD = ("tidy", "--lake", "lake", "--fold-older-than", "1d")

    def test_fold(self, cli, lake, at):
        at("2026-01-22")
        assert cli("analyze", "--lake", "lake", "-q").code == 0
        (posted,) = Path("lake/ledger/2026-01-20").glob("*.lines.parquet")
        # One line for each hour and state of a GPU and owner; folded, one for each such state of the day.
        kept = [name for name in lines.names("key") if name not in {"hour_ms", "grain_ms"}]
        hours = pq.read_table(posted, columns=["hour_ms", *kept]).to_pylist()
        days = {tuple(row[name] for name in kept) for row in hours}
        assert 3 * 24 <= len(hours) > len(days) >= 3
        said = cli(*self.FOLD, "--json").json()
        assert said["days_folded"] == ["2026-01-20"]
        assert (said["lines_before"], said["lines_after"]) == (len(hours), len(days))
        assert (said["days_dropped"], said["closed_before"]) == ([], None)
        assert said["now_ms"] == day_start_ms("2026-01-21") + MS_PER_DAY
        at("2026-01-23")
        assert re.search(r"1 day folded: \d+ hour lines became \d+", cli(*self.FOLD).out)
        assert cli(*self.FOLD).out == "nothing to fold\n"

    def test_dropping_needs_a_yes(self, cli, lake, at, monkeypatch):
        at("2026-01-23")
        drop = (*self.FOLD, "--drop-samples-older-than", "2d")
        before = sorted(Path("lake/samples").iterdir())
        for args in (drop, (*drop, "--json")):
            ended = cli(*args)
            assert ended.code == 2
            assert "432 samples of 1 day up to 2026-01-20" in ended.err
            assert "--yes" in ended.err
        assert sorted(Path("lake/samples").iterdir()) == before
        said = cli(*drop, "--yes", "--json").json()
        assert (said["days_dropped"], said["rows_dropped"]) == (["2026-01-20"], 432)
        assert said["closed_before"] == "2026-01-21"
        assert [f.name for f in Path("lake/samples").iterdir()] == ["day=2026-01-21"]

    def test_late_rows_of_closed_days_are_rejected(self, cli, lake, at, fleet_parquet):
        at("2026-01-23")
        assert cli(*self.FOLD, "--drop-samples-older-than", "2d", "--yes").code == 0
        said = cli("import", fleet_parquet, "--lake", "lake", "--json").json()
        assert said["rejects"] == {"day_is_closed": 432}
        at("2026-02-23")
        assert cli(*self.FOLD, "--drop-samples-older-than", "2d", "--yes").code == 0
        ended = cli("import", fleet_parquet, "--lake", "lake")
        assert ended.code == 2
        assert "days that are closed" in ended.err

    def test_a_dry_run_changes_nothing_and_names_what_would_go(self, cli, lake, at):
        at("2026-02-20")
        before = sorted((f, f.stat().st_mtime_ns) for f in Path("lake").rglob("*"))
        said = cli("tidy", "--lake", "lake", "--dry-run", "--json").json()
        assert (said["days_to_drop"], said["rows_to_drop"]) == (["2026-01-20"], 432)
        assert said["days_to_fold"] == ["2026-01-20"]
        assert "would delete 432 samples of 1 day up to 2026-01-20" in cli("tidy", "--lake", "lake", "--dry-run").out
        assert sorted((f, f.stat().st_mtime_ns) for f in Path("lake").rglob("*")) == before

    def test_by_itself_it_keeps_30_days_of_samples_and_asks_before_it_deletes(self, cli, lake, at):
        at("2026-02-19")  # the first day ended 29 days ago
        assert cli("tidy", "--lake", "lake", "--json").json()["days_dropped"] == []
        at("2026-02-20")
        refused = cli("tidy", "--lake", "lake")
        assert refused.code == 2
        assert "--keep-samples" in refused.err
        assert cli("tidy", "--lake", "lake", "--keep-samples", "--json").json()["days_dropped"] == []
        assert cli("tidy", "--lake", "lake", "--yes", "--json").json()["days_dropped"] == ["2026-01-20"]
        both = cli("tidy", "--lake", "lake", "--keep-samples", "--drop-samples-older-than", "9d")
        assert both.code == 2

    def test_small_files_become_one_a_day(self, cli, lake):
        small = Path("small")
        small.mkdir()
        table = pq.read_table(next(Path("lake/samples/day=2026-01-20").glob("*.parquet")), partitioning=None)
        for k in range(0, table.num_rows, 50):
            pq.write_table(table.slice(k, 50), small / f"{k:04d}.parquet")
            assert cli("import", small / f"{k:04d}.parquet", "--lake", "other").code == 0
        assert len(list(Path("other/samples/day=2026-01-20").glob("*.parquet"))) == 9
        said = cli("tidy", "--lake", "other", "--keep-samples", "--json").json()
        assert (said["parts_merged"], said["days_merged"]) == (9, ["2026-01-20"])
        (part,) = Path("other/samples/day=2026-01-20").glob("*.parquet")
        assert pq.read_metadata(part).num_rows == table.num_rows
        assert cli("tidy", "--lake", "other", "--keep-samples", "--json").json()["parts_merged"] == 0

    def test_ages_in_the_wrong_order(self, cli, lake):
        ended = cli("tidy", "--lake", "lake", "--fold-older-than", "30d", "--drop-samples-older-than", "7d", "--yes")
        assert ended.code == 2
        assert "before their hour lines are folded" in ended.err

    def test_no_lake(self, cli):
        ended = cli("tidy", "--fold-older-than", "30d")
        assert ended.code == 2
        assert "gpuledger import FILE" in ended.err


class TestImport:
    HEADER = "when,card,model,team,milliwatts,busy_percent"

    @pytest.fixture
    def ours(self, cli, tmp_path):
        """A file in a layout of its own, and the mapping file that docs/getting-data-in.md gives for it."""
        docs = Path(__file__).parents[2] / "docs" / "getting-data-in.md"
        (tmp_path / "ours.toml").write_text(docs.read_text().split("```toml\n")[1].split("```")[0])
        rows = [f"20.01.2026 10:{m:02d},card-1,NVIDIA A10G,team-a,150000,50" for m in range(60)]
        (tmp_path / "ours.csv").write_text("\n".join([self.HEADER, *rows]) + "\n")
        return "ours.csv"

    def test_a_mapping_file_of_ones_own(self, cli, ours):
        assert "read by its names and values" in cli("import", ours, "--lake", "by-itself").out
        said = cli("import", ours, "--lake", "lake", "--map", "ours.toml", "--json").json()
        assert (said["rows_added"], said["rejects"]) == (60, {})
        fleet = cli("analyze", "--lake", "lake", "--json").json()
        assert fleet["gpu_util_pct"] == pytest.approx(50)
        assert fleet["pif"] == pytest.approx(150 / 300)
        assert [r["name"] for r in fleet["by_namespace"]] == ["team-a"]

    def test_a_broken_mapping_file_names_the_field(self, cli, ours, tmp_path):
        text = (tmp_path / "ours.toml").read_text()
        (tmp_path / "ours.toml").write_text(text.replace('column = "power_w"', 'column = "power_kw"'))
        ended = cli("import", ours, "--map", "ours.toml")
        assert ended.code == 2
        assert "power_kw" in ended.err
        assert "power_w" in ended.err.split("next:")[1]

    def test_a_near_name_is_noted(self, cli, fleet_csv, tmp_path):
        (tmp_path / "f.csv").write_text(fleet_csv.read_text().replace("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TMP", 1))
        out = " ".join(cli("import", "f.csv", "--lake", "lake").out.split())
        assert "column 'DCGM_FI_DEV_GPU_TMP' is not used; did you mean 'DCGM_FI_DEV_GPU_TEMP'?" in out
        assert "stated: zone UTC (--tz)" in out

    def test_others_may_read_the_lake(self, cli, fleet_parquet):
        before = os.umask(0o022)
        try:
            assert cli("import", fleet_parquet, "--lake", "lake").code == 0
            assert cli("analyze", "--lake", "lake", "-q").code == 0
        finally:
            os.umask(before)
        files = [f for f in Path("lake").rglob("*") if f.is_file()]
        assert {oct(f.stat().st_mode & 0o777) for f in files} == {"0o644"}

    def test_a_path_with_brackets_is_printed_as_it_is(self, cli, fleet_csv, tmp_path):
        (tmp_path / "[bold]f.csv").write_text(fleet_csv.read_text().replace("01/20/26 00:05", "never"))
        ended = cli("import", "[bold]f.csv", "--lake", "[red]lake")
        assert ended.code == 0
        assert "to [red]lake" in ended.out
        assert "[bold]f.csv row" in " ".join(ended.out.split())
        assert "[b]x.parquet" in cli("synth", "[b]x.parquet", "--gpus", 1, "--days", 0.1).out


def test_quiet_says_nothing(cli, fleet_parquet):
    assert cli("import", fleet_parquet, "--lake", "lake", "-q").out == ""
    assert cli("catalog", "gpus", "-q").out == ""
    assert cli("synth", "f.parquet", "--gpus", 1, "--days", 0.1, "--quiet").out == ""
