"""Are price and prices the same for every Python call, and do all statements take an open lake?"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import gpuledger
from gpuledger.api import OpenLake
from gpuledger.errors import InputError

GPUS, DAYS, STEP = 4, 2, dt.timedelta(minutes=10)
START = dt.datetime(2026, 9, 1, tzinfo=dt.UTC)
PAID_USD = Decimal(GPUS * DAYS * 24 * 2)  # 192 GPU-hours at $2
HEAD = (
    "timestamp", "Hostname", "UUID", "gpu", "modelName", "namespace", "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
)  # fmt: skip
STATEMENTS = ("cost_statement", "cost_report", "audit_statement")
QUESTIONS: dict[str, dict[str, Any]] = {
    "audit": {}, "moves": {}, "give_back": {}, "budget": {}, "anomalies": {}, "change": {"last": "1d"},
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four GPUs of two hosts and two namespaces, two at work and two half idle, for two days."""
    path = tmp_path_factory.mktemp("export") / "dcgm.csv"
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(HEAD)
        for number in range(GPUS):
            host, util = f"node-{number // 2}", (90, 40)[number % 2]
            name = (host, f"GPU-{number:08x}", number % 2, "NVIDIA H100 80GB HBM3", ("ml", "research")[number // 2])
            for k in range(int(dt.timedelta(days=DAYS) / STEP)):
                at = (START + k * STEP).isoformat()
                out.writerow((at, *name, util, 100 + 6 * util, util / 100, util / 250))
    return path


@pytest.fixture(scope="module")
def lake(file: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenLake:
    books = gpuledger.open(tmp_path_factory.mktemp("lake") / "books")
    books.ingest(file)
    return books


@pytest.mark.parametrize("ask", QUESTIONS)
def test_price_and_prices_are_the_same(lake: OpenLake, ask: str) -> None:
    question: Callable[..., Any] = getattr(lake, ask)
    one, other = question(price=2, **QUESTIONS[ask]), question(prices=2, **QUESTIONS[ask])
    assert one.to_dict() == other.to_dict()
    assert question(price=2, prices=None, **QUESTIONS[ask]).to_dict() == one.to_dict()
    with pytest.raises(InputError, match="price and prices are two names of one argument"):
        question(price=2, prices=2, **QUESTIONS[ask])


def test_hours_times_the_price_is_what_was_paid(lake: OpenLake) -> None:
    assert lake.audit(price=2).cost.paid_usd == PAID_USD
    assert lake.audit(prices={"NVIDIA H100 80GB HBM3": 2}).cost.paid_usd == PAID_USD
    assert lake.audit(price=2, since=1788264000000).cost.paid_usd == PAID_USD * 3 / 4  # from noon of the first day on
    assert lake.budget(900, price=2).statement.lines[0].actual_usd == PAID_USD


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_of_a_folder_too(lake: OpenLake, name: str) -> None:
    state: Callable[..., Any] = getattr(gpuledger, name)
    lake.analyze()  # posts
    assert state(lake.lake.root, price=2) == state(str(lake.lake.root), prices=2) == state(lake, prices=2)
    with pytest.raises(InputError, match="price and prices"):
        state(lake, price=2, prices=3)


def test_an_open_lake_is_posted_for_a_statement(file: Path, tmp_path: Path) -> None:
    for number, name in enumerate((*STATEMENTS, "efficiency_statement")):
        fresh = gpuledger.open(tmp_path / str(number))
        fresh.ingest(file)
        state: Callable[..., Any] = getattr(gpuledger, name)
        with pytest.raises(InputError, match="nothing is posted yet"):
            state(fresh.lake)
        assert state(fresh) == state(fresh.lake)
    monthly = PAID_USD * 30 / DAYS
    assert gpuledger.cost_report(gpuledger.read(file), price=2).monthly_usd == monthly
    assert gpuledger.post_lake(fresh, gpuledger.load_thresholds()).days_clean == DAYS


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"inventry": "x.csv"}, "inventory"), ({"namespaces": "ml"}, "namespace"), ({"lasst": "1d"}, "last"),
        ({"owners": "x"}, "owner"), ({"pricse": 2}, "prices"), ({"teems": "x"}, "teams"),
    ],
)  # fmt: skip
def test_a_misspelled_filter_is_not_the_whole_lake(lake: OpenLake, given: dict[str, Any], meant: str) -> None:
    with pytest.raises(TypeError, match=f"did you mean.* {meant}"):
        lake.audit(**given)


def test_words_of_other_calls_are_refused(lake: OpenLake) -> None:
    for call, given in ((lake.analyze, {"prices": 2}), (lake.anomalies, {"inventory": "x"}), (lake.audit, {"tz": "x"})):
        with pytest.raises(TypeError, match="next: known: ") as raised:
            call(**given)
        assert next(iter(given)) in str(raised.value)
