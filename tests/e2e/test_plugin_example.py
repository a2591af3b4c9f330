"""Does the example package work as it is installed: one rule, chart, source and planner, from outside?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed as any package is, into a folder of its own."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(EXAMPLE, folder / "source")
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-deps", "--offline"]
    target = folder / "installed"
    subprocess.run(
        [*command, "--no-build-isolation", "--python", sys.executable, "--target", str(target), str(source)], check=True
    )
    return target


def test_the_four_things_of_the_example(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(installed), str(ROOT / "src")))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*command, "-c", os.devnull, str(EXAMPLE / "tests")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_each_thing_is_one_file_and_one_test() -> None:
    things = sorted(p.stem for p in (EXAMPLE / "src" / "gpuledger_example").glob("*.py") if p.stem != "__init__")
    tests = sorted(p.stem.removeprefix("test_") for p in (EXAMPLE / "tests").glob("test_*.py"))
    assert things == tests == ["cool_down", "paid_by_model", "power_bill", "watts_log"]
