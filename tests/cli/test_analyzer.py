"""Do the guide's own names work: their defaults, what they print, what they return, what they refuse?"""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import config_viewer
from gpu_migration_analyzer import AWSGPUMigrationAnalyzer, MigrationReport, ModelSize, WorkloadType
from gpuledger.cli.analyzer import main
from gpuledger.errors import FactError, GpuledgerError, UnknownName


@pytest.fixture(scope="module")
def analyzer():
    return AWSGPUMigrationAnalyzer()


def test_defaults_are_720_hours_on_demand_fp16():
    found = inspect.signature(AWSGPUMigrationAnalyzer.generate_migration_report).parameters
    assert {n: p.default for n, p in found.items() if p.default is not inspect.Parameter.empty} == {
        "monthly_hours": 720, "use_spot": False, "precision": "fp16",
    }  # fmt: skip
    assert list(found)[1:] == [
        "current_instance", "current_gpu_count", "workload_type", "model_size", "monthly_hours", "use_spot",
        "precision",
    ]  # fmt: skip


def test_sizes_in_gb_are_whole_where_they_are(analyzer):
    assert repr(analyzer.get_model_size_gb(ModelSize.MEDIUM, "fp16")) == "70"
    assert analyzer.get_model_size_gb("small") == 26
    assert [m.value for m in ModelSize] == ["small", "medium", "large", "massive"]


def test_a_report_is_text_with_its_figures_behind_it(analyzer):
    report = analyzer.generate_migration_report("P5", 1, WorkloadType.INFERENCE, ModelSize.SMALL)
    assert isinstance(report, str)
    assert isinstance(report, MigrationReport)
    assert report.plan.current.monthly_usd == 4500
    assert report.as_dict()["current"]["monthly_usd"] == "4500"
    for word in ("$4,500", "Saves", "Speed", "Risk", "effort", "CANNOT", "use case"):
        assert word in report
    assert max(map(len, report.splitlines())) <= 100


def test_run_and_list_print_and_return(analyzer, capsys):
    report = analyzer.run_workload_by_id("inference_small_p5")
    assert report in capsys.readouterr().out
    reports = analyzer.run_workload_set("research_academic")
    out = capsys.readouterr().out
    assert list(reports) == ["research_training_g6e", "batch_inference_g5"]
    assert all(r in out for r in reports.values())
    assert "research_academic: Budget-Conscious" in out
    listed = analyzer.list_available_workloads()
    out = capsys.readouterr().out
    assert len(listed) == 7
    assert all(key in out for key in listed)
    assert "expected: Significant cost savings with G6/G6e instances" in out


def test_tags_choose_workloads(analyzer, capsys):
    assert list(analyzer.list_available_workloads("research")) == ["research_training_g6e"]
    assert "batch_inference_g5" not in capsys.readouterr().out.partition("Workload sets")[0]
    reports = analyzer.run_workloads_by_tag("inference", "batch")
    assert list(reports) == ["batch_inference_g5"]
    assert reports["batch_inference_g5"] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"current_instance": "P9"}, GpuledgerError, ("'P9'", "P5")),
        ({"current_gpu_count": 0}, GpuledgerError, ("GPU count 0", "from 1")),
        ({"current_gpu_count": 1.5}, GpuledgerError, ("1.5", "whole number")),
        ({"workload_type": "DANCING"}, GpuledgerError, ("'DANCING'", "training")),
        ({"model_size": "TINY"}, GpuledgerError, ("'TINY'", "small")),
        ({"precision": "fp7"}, GpuledgerError, ("'fp7'", "fp16")),
        ({"monthly_hours": -1}, GpuledgerError, ("-1", "above 0")),
    ],
)
def test_bad_input_says_what_is_allowed(analyzer, change, kind, words):
    asked = {"current_instance": "P5", "current_gpu_count": 1, "workload_type": WorkloadType.INFERENCE,
             "model_size": ModelSize.SMALL}  # fmt: skip
    with pytest.raises(kind) as refused:
        analyzer.generate_migration_report(**asked | change)
    for word in words:
        assert word in str(refused.value)


def test_unknown_workloads_and_folders_are_named(analyzer, tmp_path):
    with pytest.raises(UnknownName, match="did you mean inference_small_p5"):
        analyzer.run_workload_by_id("inference_smal_p5")
    with pytest.raises(UnknownName):
        analyzer.run_workload_set("nobody")
    (tmp_path / "workloads.json").write_text("{")
    with pytest.raises(FactError, match=r"workloads.json: syntax"):
        AWSGPUMigrationAnalyzer(str(tmp_path))


def test_the_module_ends_with_2_on_a_wrong_set(capsys):
    assert main(arguments=["nobody"]) == 2
    assert "error: no workload set is called 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["gpu_migration_analyzer", "config_viewer"])
def test_a_reader_who_leaves_gets_no_traceback(module):
    with subprocess.Popen(
        [sys.executable, "-m", module], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        running.stdout.close()  # before anything is written
        said = running.stderr.read()
    assert said == ""
    assert running.returncode == 141


def test_the_viewer_shows_the_shipped_configuration(capsys):
    assert config_viewer.main(arguments=[]) == 0
    out = capsys.readouterr().out
    for word in ("G4dn", "P6", "comprehensive_suite", "illustrative", "gpuledger config init DIR"):
        assert word in out
    assert config_viewer.main(arguments=["nowhere"]) == 2
    assert str(config_viewer.ConfigViewer()) == out


def test_importing_the_names_loads_no_chart_or_table_library():
    code = "import gpu_migration_analyzer, sys; "
    code += "print([m for m in ('altair', 'torch', 'pandas', 'duckdb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
