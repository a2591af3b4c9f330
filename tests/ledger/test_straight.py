"""Are the books of files made without a lake those that a lake of their samples makes?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import cost_statement
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.lake import pieces
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.straight import post_files
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet


def without_codes(statement: EfficiencyStatement) -> Any:
    """As JSON, but for the codes of driver errors: they are in samples alone, which only a lake keeps."""
    text = re.sub(r" \(codes? [^)]*\)", "", json.dumps(to_json(statement)))
    found = json.loads(text)
    found["not_known"] = [one for one in found["not_known"] if "xid_codes" not in one["figure"]]
    for row in found["health"]["rows"]:
        row.pop("xid_codes")
    return found


def assert_close(ours: Any, theirs: Any) -> None:
    """Equal but for the rounding of sums over devices that come in another order."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert_close(ours[name], theirs[name])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=1e-9)
    else:
        assert ours == theirs


@pytest.mark.parametrize("processes", [1, 2])
def test_statements_are_those_of_a_lake(tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 2000)
    file = tmp_path / "fleet.parquet"
    write_fleet(FleetSpec(gpus=9, days=3, step_s=120), file)
    limits = load_thresholds()
    kept, straight = Lake(tmp_path / "kept"), Lake(tmp_path / "straight")
    import_files(kept, [file])
    post_lake(kept, limits)
    done = post_files(straight, [file], limits, processes=processes)
    assert done.rows_added == 9 * 3 * 720
    ours, theirs = (without_codes(efficiency_statement(lake, thresholds=limits)) for lake in (straight, kept))
    assert_close(ours, theirs)
    assert cost_statement(straight).dollars == cost_statement(kept).dollars
    assert not list((tmp_path / "straight").rglob("part-*.parquet"))


def test_books_of_files_posted_by_other_limits_are_reported(tmp_path: Path) -> None:
    file, lake, limits = tmp_path / "fleet.parquet", Lake(tmp_path / "straight"), load_thresholds()
    write_fleet(FleetSpec(gpus=2, days=1, step_s=120), file)
    post_files(lake, [file], limits)
    activity = msgspec.structs.replace(limits.activity, active_util_above_ratio=0.11)
    others = msgspec.structs.replace(limits, activity=activity)
    assert others.fingerprint() != limits.fingerprint()
    same, other = (efficiency_statement(lake, thresholds=t).assumptions for t in (limits, others))
    assert not [words for words in same if "other limits" in words]
    assert [words for words in other if "other limits" in words]
