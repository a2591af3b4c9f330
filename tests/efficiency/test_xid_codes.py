"""Are driver errors shown with their codes where samples are kept, and is it said where they are not?"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuledger
from cost.fleets import DAY, MINUTE, POWER, UTIL, lake_of, mig, samples
from gpuledger.cli.app import run
from gpuledger.efficiency import xid_codes
from gpuledger.efficiency.health import HealthRow, faults_of
from gpuledger.efficiency.xid_codes import MOST, NOT_KEPT
from gpuledger.lake.layout import Lake
from gpuledger.units import Unknown
from gpuledger.web.contract import Ask, Filters
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views

XID = "DCGM_FI_DEV_XID_ERRORS"
MIDNIGHT = 1440


def rows(codes: Sequence[int | None], gpu: str = "GPU-a", start: int = MIDNIGHT - 5, **labels: str) -> list[dict]:
    """A sample each minute, from shortly before midnight, with these codes."""
    own = ({} if code is None else {XID: code} for code in codes)
    return [
        row
        for i, code in enumerate(own)
        for row in samples([start + i], gpu, **{UTIL: 90, POWER: 300}, **code, **labels)
    ]


def health(lake: Lake, **asked: object) -> tuple[HealthRow, ...]:
    found: tuple[HealthRow, ...] = gpuledger.open(lake.root).analyze(**asked).statement.health.rows
    return found


@given(codes=st.lists(st.sampled_from([None, 0, 0, 31, 79]), min_size=2, max_size=12))
@settings(max_examples=25, deadline=None)
def test_the_codes_are_those_of_the_errors_that_posting_counts(codes: list[int | None]) -> None:
    appeared = [now for before, now in pairwise(codes) if now and before is not None and now != before]
    with tempfile.TemporaryDirectory() as folder:
        found = health(lake_of(Path(folder), rows(codes) + rows([0] * len(codes), "GPU-b")))
    assert sum(row.xid_events for row in found) == len(appeared)
    if found:
        assert (found[0].gpu_uuid, found[0].xid_codes) == ("GPU-a", tuple(sorted(set(appeared))))


def test_a_window_has_the_codes_of_its_own_errors(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, rows([0, 79, 79, 0, 0, 0, 31, 31, 0, 0]))
    edge = DAY + (MIDNIGHT - 2) * MINUTE
    assert health(lake)[0].xid_codes == (31, 79)
    assert health(lake, until=edge)[0].xid_codes == (79,)
    assert health(lake, since=edge)[0].xid_codes == (31,)


def test_slices_repeat_the_errors_of_their_board(tmp_path: Path) -> None:
    sliced = [row for s in "12" for row in rows([0, 79, 0, 0], **mig(s, "2g.20gb"))]
    (row,) = health(lake_of(tmp_path, sliced))
    assert (row.xid_events, row.xid_codes) == (1, (79,))


def test_without_samples_the_code_is_not_kept(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, rows([0, 79, 0, 0]))
    aged = ("--fold-older-than", "1h", "--drop-samples-older-than", "1h", "--yes")
    assert run(["tidy", "--lake", str(lake.root), *aged]) == 0
    (row,) = health(lake)
    assert (row.xid_events, row.xid_codes) == (1, NOT_KEPT)
    assert faults_of(row) == ["1 XID error (code not kept)"]


def test_errors_of_other_owners_are_not_shown_as_ones_own(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path, rows([0, 79, 0, 0, 0], namespace="a") + rows([0, 31, 0], start=MIDNIGHT - 60, namespace="b")
    )
    (row,) = health(lake, namespace="a")
    assert row.xid_events == 1
    assert isinstance(row.xid_codes, Unknown)
    assert "other owners" in row.xid_codes.why


@pytest.mark.parametrize("code", [13, 79, 119])
def test_every_place_that_names_the_error_has_its_code(tmp_path: Path, code: int) -> None:
    lake = lake_of(tmp_path, rows([0, code, 0, 0]))
    (row,) = health(lake)
    assert row.codes == str(code)
    made = gpuledger.open(lake.root).analyze()
    assert f"1 XID error (code {code})" in " ".join(made.statement.findings)
    assert made.to_dict()["health"]["rows"][0]["xid_codes"] == [code]


def test_the_page_of_a_gpu_has_the_code_also_where_many_are_worse(tmp_path: Path) -> None:
    """Of a fleet only the worst GPUs are looked up in the samples."""
    worse = [row for i in range(MOST) for row in rows([0, 79, 0, 31, 0], f"GPU-worse-{i}")]
    lake = lake_of(tmp_path, worse + rows([0, 119, 0, 0, 0]))
    last = health(lake)[-1]
    assert last.gpu_uuid == "GPU-a"
    assert isinstance(last.xid_codes, Unknown)
    assert "on the page of a GPU" in last.xid_codes.why
    views = Views(LiveLake(lake.root))
    views.refresh()
    page = views.view(Ask("page", "/gpus/one", Filters(), (("device", "GPU-a"),))).body.decode()
    assert "1 XID error (code 119)" in page


def test_the_files_of_a_report_have_the_codes(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, rows([0, 79, 0, 31, 0]))
    assert run(["analyze", "--lake", str(lake.root), "--out", str(tmp_path / "report"), "--quiet"]) == 0
    (file,) = (f for f in (tmp_path / "report").glob("*.csv") if "health" in f.name)
    with file.open(newline="") as text:
        (row,) = csv.DictReader(text)
    assert row["xid_codes"] == "31; 79"


def test_codes_of_very_many_gpus_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xid_codes, "MANY", 1)
    one, other = health(lake_of(tmp_path, [row for name in ("GPU-a", "GPU-b") for row in rows([0, 79, 0], name)]))
    assert one.xid_codes == other.xid_codes
    assert isinstance(one.xid_codes, Unknown)
    assert "filter them" in one.xid_codes.why
