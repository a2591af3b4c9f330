"""Do the examples of docs/mapping-files.md import as they stand, and does it name every key and every column?"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import gpuledger
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.mapping import Mapping, TimeRule, ValueRule, WideRule, load_mapping

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "mapping-files.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?```csv\n(.*?)```\n\n```toml\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE
)
# What each example gives, calculated by hand: by device and minute the readings that are not empty.
WANTED = {
    "A small map": [
        {"power_w": 150, "gpu_util_ratio": 0.5, "namespace": "vision"},
        {"power_w": 152, "gpu_util_ratio": 0.55, "namespace": "vision"},
    ],
    "Units": [
        {"power_w": 300.12, "fb_used_bytes": 40536 * 2**20, "sm_clock_mhz": 1410, "gpu_util_ratio": 0.45},
        {"power_w": 298.5, "fb_used_bytes": 42_500_000_000, "sm_clock_mhz": 1410, "gpu_util_ratio": 0.47},
    ],
    "Time": [
        {"gpu_uuid": "node-1:gpu0", "power_w": 310, "power_limit_w": 700, "at_ms": 1_768_903_205_000},
        {"gpu_uuid": "node-1:gpu1", "power_w": 120, "power_limit_w": 700, "at_ms": 1_768_903_205_000},
    ],
    "Several GPUs in one row": [
        {"gpu_uuid": "node-1:gpu0", "power_w": 310, "gpu_util_ratio": 0.8},
        {"gpu_uuid": "node-1:gpu0", "power_w": 312, "gpu_util_ratio": 0.82},
        {"gpu_uuid": "node-1:gpu1", "power_w": 120, "gpu_util_ratio": 0.1},
    ],
    "Text that is not a number": [{"slice_ratio": 3 / 7, "throttle_bits": 4, "engine_ratio": 0.5}],
}


def test_every_example_is_checked():
    assert [title for title, _, _ in EXAMPLES] == list(WANTED)


@pytest.mark.parametrize(("title", "rows", "rules"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_an_example_is_read_as_it_says(tmp_path, title, rows, rules):
    (tmp_path / "f.csv").write_text(rows)
    (tmp_path / "m.toml").write_text(rules)
    found = explain(tmp_path / "f.csv", mapping=load_mapping(str(tmp_path / "m.toml")))
    assert (found.problem, found.rejected, found.unused) == ("", [], [])
    lake = gpuledger.open(tmp_path / "lake")
    assert lake.ingest(tmp_path / "f.csv", mapping=str(tmp_path / "m.toml")).rows_rejected == 0
    got = lake.samples().df().sort_values(["gpu_uuid", "at_ms"]).to_dict("records")
    assert len(got) == len(WANTED[title])
    for row, wanted in zip(got, WANTED[title], strict=True):
        assert {name: row[name] for name in wanted} == {
            name: value if isinstance(value, str) else pytest.approx(value, rel=1e-6) for name, value in wanted.items()
        }


def test_every_key_is_documented():
    keys = {f for kind in (Mapping, TimeRule, ValueRule, WideRule) for f in kind.__struct_fields__}
    documented = set(re.findall(r"`(\w+)`", PAGE))
    assert keys - {"file", "own_rules"} <= documented


def test_the_list_of_columns_is_what_the_schema_says():
    spec = importlib.util.spec_from_file_location("columns_reference", DOCS / "reference" / "columns.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run: make reference"
