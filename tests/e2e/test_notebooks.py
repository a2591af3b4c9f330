"""Do the notebooks and the examples run from top to bottom, and say what they should?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


@pytest.mark.filterwarnings("default")  # the kernel's own libraries warn about themselves
def test_the_efficiency_notebook_runs():
    notebook = nbformat.read(ROOT / "notebooks" / "gpu_efficiency_analysis.ipynb", as_version=4)
    NotebookClient(notebook, timeout=900, startup_timeout=300, iopub_timeout=120, kernel_name="python3").execute()
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    text = "".join(o.get("text", "") for o in outputs)
    assert "504,000 samples, 50 GPUs, 3 clusters" in text
    charts = [o for o in outputs if "image/svg+xml" in o.get("data", {})]
    assert len(charts) == 6


@pytest.mark.filterwarnings("default")  # the kernel's own libraries warn about themselves
def test_the_audit_notebook_runs():
    notebook = nbformat.read(ROOT / "notebooks" / "gpu_cost_audit.ipynb", as_version=4)
    NotebookClient(notebook, timeout=900, startup_timeout=300, iopub_timeout=120, kernel_name="python3").execute()
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    text = "".join(o.get("text", "") for o in outputs)
    assert "60 % spot and a 40 % fix: naive 100 %, honest 76 %" in text
    assert "First: " in text
    assert sum("image/svg+xml" in o.get("data", {}) for o in outputs) == 3
    # Its checks are asserts: taken out, the notebook would prove nothing.
    code = "".join(c.source for c in notebook.cells if c.cell_type == "code")
    assert code.count("assert ") >= 12


def test_the_quick_start_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "quick_start.py")], capture_output=True, text=True, check=True
    )
    assert "504,000 samples of 50 GPUs, 0 rows rejected" in done.stdout
    report = Path(done.stdout.strip().splitlines()[-1].removeprefix("report: "))
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_generator_of_synthetic_data_writes_the_fleet(tmp_path):
    script, out = ROOT / "examples" / "generate_synthetic_data.py", tmp_path / "fleet.parquet"
    done = subprocess.run([sys.executable, str(script), str(out)], capture_output=True, text=True, check=True)
    assert "504,000 rows" in done.stdout
    assert out.stat().st_size > 0


@pytest.mark.parametrize("name", ["gpu_cost_audit", "gpu_efficiency_analysis"])
def test_a_notebook_uses_public_names_only(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    assert "import gpuledger" in code
    assert "from gpuledger." not in code
    assert "import gpuledger." not in code
