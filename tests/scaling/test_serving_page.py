"""Do the figures on the page of the served model equal those of the results file beside it?"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.cost.pricing import PriceChoice
from gpuledger.encode import encode
from gpuledger.scaling.build import gather, scaling_statement

FOLDER = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def page():
    return (FOLDER / "serving_h200.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found(page):
    price = Decimal(re.search(r"\$(\S+) per GPU-hour", page)[1])  # as of the page: the market moves on
    return encode("scaling", scaling_statement(gather([FOLDER / "serving_h200.jsonl"], price=PriceChoice(price=price))))


def test_every_row_of_the_table(found, page):
    rows = [[c.strip().replace(",", "") for c in line.strip("| ").split("|")] for line in page.splitlines()]
    table = {int(r[0]): [float(c) for c in r[1:]] for r in rows if r[0].isdigit()}
    points = found["batches"]["points"]
    assert list(table) == [p["batch"] for p in points] == [1, 2, 4, 8, 16, 32, 64]
    for p in points:
        said = [
            round(p["tokens_per_s"]),
            round(1000 * p["per_token_median_s"], 2),
            round(1000 * p["ttft_median_s"], 1),
            round(float(p["usd_per_million_tokens"]), 2),
            round(p["joules_per_million_tokens"]),
        ]
        assert table[p["batch"]] == pytest.approx(said, abs=1e-9)


def test_the_words_around_it(found, page):
    assert f"Knee: batch {found['batches']['knee']}." in page
    rates = {p["batch"]: p["tokens_per_s"] for p in found["batches"]["points"]}
    assert f"{rates[64] / rates[32]:.2f} times the tokens" in page
    assert f"{rates[64] / rates[1]:.1f} times what batch 1 does" in page
    assert f"{found['counts']['ok']} of {found['counts']['planned']} requests" in page
    assert f"{found['wall_s']:.1f} s" in page


def test_one_request_at_a_time_is_batch_1(found):
    assert found["tokens"]["single_stream_per_s"] == pytest.approx(
        found["batches"]["points"][0]["tokens_per_s"], rel=0.02
    )
    # No lake lies beside the page; the driver's counter stands on each line.
    assert found["cost"]["joules_per_million_tokens"] == pytest.approx(
        sum(p["joules_per_million_tokens"] * p["requests"] for p in found["batches"]["points"]) / 508
    )
    assert found["public"][0]["ours"] == max(p["tokens_per_s"] for p in found["batches"]["points"])
