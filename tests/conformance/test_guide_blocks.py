"""Does every code block of the GPU Fleet Optimizer guide do what the manifest says, unedited?

The manifest (tests/data/guide_blocks.json) puts each block in one of four classes: runs as written; runs after the
guide's own import line; is data that loads; is refused with a message, and why.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.errors import FactError
from gpuledger.plan.guide.asking import Form, form_of, plan_configured
from gpuledger.plan.guide.config import init_config, load_config

ROOT = Path(__file__).parents[2]
MANIFEST = json.loads((ROOT / "tests" / "data" / "guide_blocks.json").read_text(encoding="utf-8"))
BLOCKS = MANIFEST["blocks"]
IMPORT = MANIFEST["import_line"]
CLASSES = {"runs as written", "runs after the document's import line", "data that loads", "refused"}


def of(category: str = "", where: str = "") -> list:
    found = [b for b in BLOCKS if category in b["category"] and where == b.get("in", "")]
    return [pytest.param(b, id=f"{b['index']:02d} {b['label']}") for b in found]


def test_the_manifest_puts_every_block_in_one_class():
    assert [b["index"] for b in BLOCKS] == list(range(21))
    assert {b["category"] for b in BLOCKS} == CLASSES
    for block in BLOCKS:
        assert block["label"]
        if block["category"] == "refused":
            assert block["message"]
            assert block["why"]
        assert hashlib.sha256(block["text"].encode()).hexdigest() == block["sha256"]


@pytest.fixture(scope="module")
def printed() -> dict[int, str]:
    """What each Python block prints, run in order in one namespace after the import line."""
    space: dict[str, object] = {}
    exec(IMPORT, space)
    said = {}
    for param in of(where="python"):
        block = param.values[0]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block["text"], block["label"], "exec"), space)
        said[block["index"]] = out.getvalue()
    return said


class TestPython:
    """Every Python block, in order, in one namespace, after the import line."""

    @pytest.mark.parametrize("block", of(where="python"))
    def test_it_runs_and_prints_what_it_says(self, block, printed):
        said = printed[block["index"]]
        for line in block.get("prints", ()):
            assert line in said.splitlines()
        prints = "print(report)" in block["text"] or "run_" in block["text"]
        assert ("Options, best first" in said or "No option can run this" in said) == prints

    def test_a_block_that_needs_the_import_line_says_so_without_it(self):
        for block in BLOCKS:
            if block["category"].startswith("runs after") and block.get("in") == "python":
                with contextlib.redirect_stdout(io.StringIO()), pytest.raises(NameError):
                    exec(block["text"], {})

    def test_one_with_its_own_import_line_needs_no_other(self):
        for block in BLOCKS:
            if block["category"] == "runs as written" and block.get("in") == "python":
                assert block["text"].startswith(IMPORT)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """The guide's layout: a folder with config/ and two scripts, and a `python3` that has gpuledger."""
    above = tmp_path_factory.mktemp("guide")
    init_config(above / "gpu-migration-analyzer", scripts=True)
    shim = above / "bin" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    return above


def shell(project: Path, text: str) -> subprocess.CompletedProcess[str]:
    inside = "cd gpu-migration-analyzer" not in text
    env = {**os.environ, "PATH": f"{project / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", text], cwd=project / "gpu-migration-analyzer" if inside else project, env=env,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("block", of("runs as written", "shell"))
def test_a_shell_block_runs_as_written(block, project):
    ended = shell(project, block["text"])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Options, best first" in ended.stdout


@pytest.mark.parametrize("block", of("import line", "shell"))
def test_a_shell_block_without_its_import_line_runs_after_it(block, project):
    bare = shell(project, block["text"])
    assert bare.returncode == 1
    assert block["message"] in bare.stderr
    assert "Workload sets" in bare.stdout, "its first command runs as written"
    whole = shell(project, block["text"].replace('-c "\n', f'-c "\n{IMPORT}\n'))
    assert (whole.returncode, whole.stderr) == (0, "")
    assert "Options, best first" in whole.stdout


class TestData:
    @pytest.mark.parametrize("block", of("data that loads"))
    def test_it_loads_over_the_reference(self, block, tmp_path):
        (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
        config = load_config(tmp_path)
        assert len(config.instances) >= 9
        assert len(config.workloads) >= 7

    def load(self, index: int, tmp_path: Path):
        (tmp_path / BLOCKS[index]["file"]).write_text(BLOCKS[index]["text"], encoding="utf-8")
        return load_config(tmp_path)

    def test_new_prices_take_effect(self, tmp_path):
        config = self.load(12, tmp_path)
        assert config.instances["P5"].on_demand_cost_per_hour == 45.0
        assert config.instances["P5"].gpus == 8
        form = Form(instance="P5", gpus=1, workload="inference", size="small", monthly_h=720)
        assert plan_configured(config, form).current.monthly_usd == 45 * 720 / 8

    def test_a_new_instance_of_an_unknown_gpu_is_planned_with_its_own_figures(self, tmp_path):
        config = self.load(13, tmp_path)
        assert config.instances["NewGPU"].price_scope is None
        plan = plan_configured(config, Form(instance="P5", gpus=1, workload="inference", size="small"))
        assert not [g for g in plan.refused_groups if g.gpu_name == "CustomGPU" and g.kind == "GPU"]
        assert "CustomGPU" in {o.candidate.gpu_name for o in plan.options}
        assert any("NewGPU: no price_scope is given" in a for a in plan.assumptions)

    def test_a_new_workload_can_be_planned(self, tmp_path):
        config = self.load(14, tmp_path)
        plan = plan_configured(config, form_of(config.workloads["my_custom_workload"]), "my_custom_workload")
        assert plan.job.expected_outcome == "Significant performance gains with newer P-series"
        assert "CANNOT FIT MODEL" in plan.warnings[0]

    def test_a_new_size_can_be_planned(self, tmp_path):
        config = self.load(15, tmp_path)
        plan = plan_configured(config, Form(instance="P6", gpus=4, workload="inference", size="extra_large"))
        assert plan.job.model.params_total == 200_000_000_000


def test_the_drawing_of_folders_is_refused(tmp_path):
    (block,) = [b for b in BLOCKS if b["category"] == "refused"]
    (tmp_path / "gpu_instances.json").write_text(block["text"], encoding="utf-8")
    with pytest.raises(FactError) as refused:
        load_config(tmp_path)
    assert block["message"] in refused.value.message
