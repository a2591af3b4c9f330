"""Do the shipped figures follow from the files they were collected or measured from?"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuledger.bench.load import read_trace
from gpuledger.catalog.prices import offers
from gpuledger.plan.speed.facts import factors

ROOT = Path(__file__).parents[2]


def test_the_shipped_prices_are_the_collected_ones(outside):
    (original,) = (outside / "data" / "prices").glob("cloud_gpu_catalog_*.csv")
    shipped = gzip.decompress(offers._folder().joinpath(offers.facts().offers).read_bytes()).decode("utf-8")
    assert shipped.splitlines() == original.read_text(encoding="utf-8").splitlines()


def test_a_real_trace_is_read(outside):
    file = outside / "data" / "serving" / "azure_llm_2023_conv.csv"
    rows = list(read_trace(file))
    assert len(rows) == len(file.read_text(encoding="utf-8").splitlines()) - 1
    assert rows[0][1:] == (374, 44)
    assert rows[-1][0] - rows[0][0] == pytest.approx(3_600, rel=0.05)


def test_the_shipped_quantiles_of_decoding_are_those_found(outside):
    command = [sys.executable, str(ROOT / "benchmarks" / "plan_errors.py"), "--json", "--shared", str(outside / "data")]
    held = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["serving"]["held_out"]
    for error in factors().decode.errors:
        assert error.rows == held[error.of]["rows"]
        for name in ("p10", "p50", "p90"):
            assert getattr(error, name) == pytest.approx(held[error.of][name], abs=0.002)


def test_the_manifest_holds_exactly_the_blocks_of_the_guide(outside):
    (guide,) = (outside / "seeds").glob("003_*.txt")
    text = guide.read_text(encoding="utf-8")
    found = [(m[1], m[2]) for m in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    manifest = json.loads((ROOT / "tests" / "data" / "guide_blocks.json").read_text(encoding="utf-8"))
    assert [(b["language"], b["sha256"]) for b in manifest["blocks"]] == [
        (language, hashlib.sha256(body.encode()).hexdigest()) for language, body in found
    ]
