"""Is the wheel the same bytes wherever it is built, and are its types of use to a project that installs it?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT_FROM = ("src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
CONSUMER = """
import gpuledger


def audited(lake: str) -> object:
    answer = gpuledger.open(lake).audit(last="7d")
    reveal_type(answer)
    return answer.statement.cost


reveal_type(gpuledger.plan.fit("llama-3.1-70b", "h100-sxm5-80gb", count=8))
reveal_type(gpuledger.scaling.judge("results.jsonl"))
reveal_type(gpuledger.train.mfu("llama-3.1-8b", "h100-sxm5-80gb", tokens_per_s=90_000.0))
lake: int = gpuledger.open("books")
"""


def build(folder: Path, at: float) -> Path:
    """The wheel of a copy of the project whose files carry another time."""
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_kernels.so"))
        else:
            shutil.copy(source, folder / name)
    for file in folder.rglob("*"):
        os.utime(file, (at, at))
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=folder, check=True, capture_output=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
    )  # fmt: skip
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    places = (("one", 1_600_000_000.0), ("another/place", 1_750_000_000.0))
    made = []
    for name, at in places:
        folder = tmp_path_factory.mktemp("wheel") / name
        folder.mkdir(parents=True)
        made.append(build(folder, at))
    return made


def test_it_is_the_same_bytes_whenever_and_wherever_it_is_built(wheels: list[Path]) -> None:
    one, other = (wheel.read_bytes() for wheel in wheels)
    assert one == other


@pytest.mark.parametrize("compiler", ["/nonexistent/cc", "/bin/true", "/bin/false"])
def test_a_compiler_that_makes_nothing_leaves_a_wheel_for_any_machine(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    wheel = build(tmp_path, 1_600_000_000.0)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="no C compiler, or not Linux")
def test_with_a_compiler_it_is_for_this_machine_and_older_ones(wheels: list[Path]) -> None:
    assert "-py3-none-manylinux_2_" in wheels[0].name
    assert "gpuledger/native/_kernels.so" in zipfile.ZipFile(wheels[0]).namelist()


def test_it_holds_the_package_its_data_and_its_licence_alone(wheels: list[Path]) -> None:
    names = zipfile.ZipFile(wheels[0]).namelist()
    assert {"gpuledger/py.typed", "gpuledger/telemetry/columns.toml"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "gpuledger",
        "gpu_migration_analyzer",
        "config_viewer",
    }


def test_a_project_that_installs_it_is_checked_by_its_types(wheels: list[Path], tmp_path: Path) -> None:
    """Unpacked as an installer does, away from the sources: what mypy knows comes from the wheel."""
    site, project = tmp_path / "site", tmp_path / "project"
    zipfile.ZipFile(wheels[0]).extractall(site)
    project.mkdir()
    (project / "uses.py").write_text(CONSUMER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent", "uses.py"],
        check=False, cwd=project, capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(site)},
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'expression has type "OpenLake"' in errors[0]
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert revealed == [
        "gpuledger.answers.Answer[gpuledger.advice.statement.AuditStatement]",
        "gpuledger.answers.Answer[gpuledger.plan.fitting.build.Fit]",
        "gpuledger.answers.Answer[gpuledger.scaling.statement.ScalingStatement]",
        "typing.Mapping[str, Any]",
    ]
