"""Does a failed import leave files open for as long as its error is kept?"""

from __future__ import annotations

import errno
import gc
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from gpuledger.errors import GpuledgerError, LakeError, let_go
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What is closed is closed by us, not by the collector."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A day of two GPUs as Parquet."""
    write_fleet(FleetSpec(gpus=2, days=1, step_s=60), tmp_path / "fleet", files="day")
    return next((tmp_path / "fleet").rglob("*.parquet"))


def as_csv(fleet: Path) -> Path:
    """The same as text."""
    target = fleet.with_name("fleet.csv")
    pacsv.write_csv(pq.read_table(fleet), target)
    return target


def cut_gzip(fleet: Path) -> Path:
    """Packed text without its end."""
    packed = gzip.compress(as_csv(fleet).read_bytes())
    target = fleet.with_name("cut.csv.gz")
    target.write_bytes(packed[: len(packed) // 2])
    return target


def without_footer(fleet: Path) -> Path:
    """Parquet that begins well and ends badly."""
    target = fleet.with_name("cut.parquet")
    target.write_bytes(fleet.read_bytes()[:-100])
    return target


def two_pages(fleet: Path) -> Path:
    """Metric text that is refused at its second page, half-way through the lines."""
    target = fleet.with_name("pages.prom")
    target.write_text('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 45\n' * 1000, encoding="utf-8")
    return target


def open_below(folder: Path) -> set[str]:
    """The files under a folder that this process holds open or mapped."""
    names = set()
    for handle in Path("/proc/self/fd").iterdir():
        try:
            names.add(os.readlink(handle))  # noqa: PTH115 - of a pipe it is not a path
        except FileNotFoundError:  # the handle of this listing
            continue
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()}
    return {name for name in names | mapped if name.startswith(str(folder))}


@pytest.mark.parametrize("broken", [cut_gzip, without_footer, two_pages])
@pytest.mark.usefixtures("uncollected")
def test_a_refused_file_is_closed_while_its_error_is_kept(
    broken: Callable[[Path], Path], fleet: Path, tmp_path: Path
) -> None:
    with pytest.raises(GpuledgerError) as kept:
        import_files(Lake(tmp_path / "lake"), [broken(fleet)])
    assert open_below(tmp_path) == set()
    assert "next:" in str(kept.value)


@pytest.mark.parametrize("form", [as_csv, lambda fleet: fleet], ids=["csv", "parquet"])
@pytest.mark.usefixtures("uncollected")
def test_a_full_disk_half_way_closes_what_was_read(
    form: Callable[[Path], Path], fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def full(*_given: object) -> None:
        seen.extend(open_below(tmp_path / "fleet"))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(DaySorter, "add", full)
    file = form(fleet)
    with pytest.raises(LakeError, match="disk is full") as kept:
        import_files(Lake(tmp_path / "lake"), [file])
    assert str(file) in seen  # it was open when the disk was full
    assert open_below(tmp_path) == set()
    assert isinstance(kept.value.__cause__, OSError)


def test_a_fault_of_our_own_keeps_its_values_for_a_debugger() -> None:
    def failing(value: int) -> None:
        raise AssertionError(value)

    with pytest.raises(AssertionError) as kept:
        failing(7)
    let_go(kept.value)
    assert kept.traceback[-1].frame.f_locals["value"] == 7
