"""Does the Python API answer as the command line does, and take what people have at hand?"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.api import OpenLake
from gpuledger.errors import GpuledgerError, InputError, UnknownName
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

SPEC = FleetSpec(gpus=4, days=2, step_s=300)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("export") / "fleet.parquet"
    write_fleet(SPEC, file, "parquet")
    return file


@pytest.fixture(scope="module")
def lake(export: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenLake:
    books = gpuledger.open(tmp_path_factory.mktemp("lake") / "books")
    books.ingest(export)
    return books


def test_opening_touches_nothing(tmp_path: Path) -> None:
    lake = gpuledger.open(tmp_path / "none")
    assert "empty" in repr(lake)
    assert not (tmp_path / "none").exists()
    with pytest.raises(GpuledgerError, match="none"):
        lake.analyze()


def test_files_globs_frames_and_tables_are_the_same_samples(export: Path, lake: OpenLake, tmp_path: Path) -> None:
    table = pq.read_table(export)
    given = {
        "glob": str(export.parent / "*.parquet"), "list": [export], "frame": table.to_pandas(), "arrow": table,
    }  # fmt: skip
    for name, data in given.items():
        other = gpuledger.open(str(tmp_path / name))
        assert other.ingest(data).rows_added == SPEC.rows, name
    assert gpuledger.open(tmp_path / "frame").analyze().fleet == lake.analyze().fleet


def test_the_same_figures_as_the_command_line(lake: OpenLake, capfd: pytest.CaptureFixture[str]) -> None:
    import json
    import sys

    from gpuledger.cli import main

    def run(*args: str) -> dict[str, object]:
        sys.argv = ["gpuledger", *args, "--lake", str(lake.lake.root), "--json"]
        capfd.readouterr()
        assert main() == 0
        return json.loads(capfd.readouterr().out)

    audit = run("audit", "--price", "2.5", "--last", "1d")
    assert {k: v for k, v in audit.items() if k not in ("files", "failed")} == json.loads(
        json.dumps(lake.audit(prices=2.5, last="1d").to_dict())
    )
    analyzed = run("analyze", "--since", "2026-01-21")
    assert analyzed["fleet"] == lake.analyze(since=dt.date(2026, 1, 21)).to_dict()["fleet"]


def test_settings_hold_for_audits_and_moves_too(
    lake: OpenLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = lake.audit(prices=3)
    models = ("H100-SXM5-80GB", "A100-SXM4-40GB", "A10G")
    namespace = plain.cost.by_namespace[0].name
    prices = "".join(f"{gpu} = 3\n" for gpu in models)
    file = tmp_path / "gpuledger.toml"
    file.write_text(f'[teams]\n{namespace} = "A team"\n[prices]\n{prices}[budgets]\n"A team" = 1\n')
    monkeypatch.setenv("GPULEDGER_CONFIG", str(file))
    found = lake.audit()
    assert found.cost.paid_usd == plain.cost.paid_usd
    assert "A team" in {row.name for row in found.cost.by_team}
    assert [b.over for b in found.budgets] == [True]
    assert {p.basis for p in found.cost.prices} == {"given"}
    assert lake.moves().month_now_usd == lake.moves(prices=3).month_now_usd
    with pytest.raises(GpuledgerError, match="price and instance both"):
        lake.audit(prices=3, instance="p5.48xlarge")


def test_times_may_be_written_in_any_way(lake: OpenLake) -> None:
    ways = ("2026-01-21", dt.date(2026, 1, 21), dt.datetime(2026, 1, 21, tzinfo=dt.UTC), 1768953600000)
    assert len({lake.analyze(since=way).samples for way in ways}) == 1
    lengths = ("6h", dt.timedelta(hours=6), "360m")
    assert len({lake.audit(prices="1", last=length).cost.samples for length in lengths}) == 1


def test_a_statement_shows_itself(lake: OpenLake, tmp_path: Path) -> None:
    audit = lake.audit(prices={"H100-SXM5-80GB": 3, "A100-SXM4-40GB": 2, "A10G": 1})
    assert repr(audit).startswith("Cost audit: $")
    assert "<html" not in audit._repr_html_()
    assert "Paid in this window" in audit._repr_html_()
    assert audit.to_html(charts=False).startswith("<!DOCTYPE html>")
    assert audit.to_markdown().startswith("# ")
    assert {"audit.html", "audit.json", "cost_by_gpu.csv"} <= set(audit.save(tmp_path, charts=False))
    assert audit.cost.gpus == SPEC.gpus
    with pytest.raises(AttributeError):
        audit.nothing_of_that_name  # noqa: B018


def test_tables_of_a_statement(lake: OpenLake) -> None:
    audit = lake.audit(prices=1)
    frame = audit.df("by_gpu")
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == SPEC.gpus
    assert frame["paid_usd"].astype(float).sum() == pytest.approx(float(audit.to_dict()["paid_usd"]))
    assert frame["host"].notna().all()
    with pytest.raises(UnknownName, match="did you mean by_gpu"):
        audit.df("by_gpus")


def test_what_is_not_a_price_or_a_time_is_refused(lake: OpenLake) -> None:
    with pytest.raises(InputError, match="'x' is not a price"):
        lake.audit(prices="x")
    with pytest.raises(InputError, match="is not a time"):
        lake.analyze(since=3.5)  # type: ignore[arg-type]


def test_recommendations_name_gpus_with_their_host(lake: OpenLake) -> None:
    audit = lake.audit(prices=1)
    hosts = set(audit.df("by_gpu")["host"])
    named = [line for line in audit.to_markdown().splitlines() if "GPUs: " in line and "No GPU" not in line]
    assert any(host in line for host in hosts for line in named), named


def test_wrong_arguments_are_errors_with_a_next_step(lake: OpenLake) -> None:
    with pytest.raises(GpuledgerError, match="is not a length of time"):
        lake.analyze(last=5)
    with pytest.raises(GpuledgerError, match="both say where the window starts"):
        lake.analyze(since="2026-01-21", last="1d")
    with pytest.raises(GpuledgerError, match="not telemetry"):
        lake.ingest(5)
    with pytest.raises(UnknownName, match="micro_batch"):
        gpuledger.plan.fit("llama-3.1-8b", "l4", microbatch=2)
    assert set(lake.samples(namespace="research").df()["namespace"]) == {"research"}
    assert gpuledger.plan.run("fit", model="llama-3.1-8b", gpu="h100-sxm5-80gb").fits is False


def test_samples_and_lines_come_out_as_tables(lake: OpenLake) -> None:
    assert len(lake.samples()) == SPEC.rows
    hour = lake.samples(last="1h")
    assert len(hour) == SPEC.gpus * 12
    lines = lake.lines()
    total = lines.relation().aggregate("sum(observed_ms)").fetchall()
    assert total == [(SPEC.gpus * 2 * 86_400_000,)]
    con = duckdb.connect()
    assert lake.lines(namespace="research").relation(con).filter("namespace <> 'research'").fetchall() == []
    assert "rows x" in repr(lines)
    assert "<table" in lines._repr_html_()
    cut = lake.lines(since="2026-01-21T00:30", until="2026-01-21T01:30")
    assert cut.df()["observed_ms"].sum() == SPEC.gpus * 3_600_000


def test_wrong_arguments_are_refused_in_words(lake: OpenLake) -> None:
    wrong = {
        "the budget is -5": lambda: lake.budget(-5),
        "the budget of ml is NaN": lambda: lake.budget({"ml": float("nan")}),
        "by is ['user'], not text": lambda: lake.analyze(by=["user"]),  # type: ignore[arg-type]
        "n='3' is not a number of GPUs": lambda: lake.give_back("3"),  # type: ignore[arg-type]
        "3 is not a name": lambda: lake.analyze(namespace=3),  # type: ignore[arg-type]
    }
    for words, ask in wrong.items():
        with pytest.raises(GpuledgerError) as raised:
            ask()
        assert words in raised.value.message
        assert raised.value.hint


def test_files_are_read_with_job_tables(tmp_path: Path) -> None:
    file, jobs = tmp_path / "smi.csv", tmp_path / "jobs.csv"
    rows = [f"2026/01/20 08:0{i}:00.000, GPU-1, NVIDIA H100 80GB HBM3, 50 %" for i in range(6)]
    file.write_text("\n".join(["timestamp, uuid, name, utilization.gpu [%]", *rows, ""]))
    jobs.write_text("job,user,gpu,host,start,end\n1,ann,GPU-1,,2026-01-20 08:00,2026-01-20 09:00\n")
    for given in (jobs, [jobs]):
        audit = gpuledger.read(file, jobs=given, jobs_tz="UTC").audit(by="user", prices=2)
        assert [row.name for row in audit.statement.cost.by_asked] == ["ann"]


@pytest.mark.parametrize("name", ["report.pdf", "report.html"])
def test_a_kind_of_file_that_cannot_be_written_is_refused(lake: OpenLake, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"a .{name.partition('.')[2]} file cannot be written"):
        lake.analyze().save(tmp_path / name)
    assert not (tmp_path / name).exists()
    assert lake.analyze().save(tmp_path / "report.v2", charts=False)
