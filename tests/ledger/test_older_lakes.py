"""Are lakes that every older version wrote read, migrated and stated with the same figures, and newer ones refused?

tests/data/lakes/*.tar.gz were written by the code of their day (tests/data/lakes/make.py).
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.lake.layout import Lake
from gpuledger.ledger.store import LEDGER_VERSION, Ledger

LAKES = Path(__file__).parents[1] / "data" / "lakes"
NAMES = sorted(f.name.removesuffix(".tar.gz") for f in LAKES.glob("*.tar.gz"))
NEWEST = "samples3-lines3-ledger3"
# Columns that a version of lines was the first to have.
SINCE = {"state": 2, "team": 3}


@pytest.fixture
def unpacked(tmp_path):
    """Both lakes of a version, and the figures it stated."""

    def unpack(name: str) -> tuple[Path, dict[str, Any]]:
        with tarfile.open(LAKES / f"{name}.tar.gz") as packed:
            packed.extractall(tmp_path, filter="data")
        return tmp_path, json.loads((tmp_path / "said.json").read_text())

    return unpack


def audit(lake: Path) -> dict[str, Any]:
    return gpuledger.open(lake).audit(prices=2).to_dict()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """The same fleet imported by the code of today."""
    lake = tmp_path_factory.mktemp("fresh") / "lake"
    gpuledger.open(lake).ingest(LAKES / "fleet.csv.gz")
    return lake


@pytest.fixture(scope="module")
def fresh_audit(fresh) -> dict[str, Any]:
    return audit(fresh)


def test_every_version_of_the_ledger_has_a_lake():
    assert {int(n.split("ledger")[1].split("-")[0]) for n in NAMES} == set(range(1, LEDGER_VERSION + 1))


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_of_the_versions_their_name_gives(unpacked, name):
    """So that no lake here was written by the code of today."""
    lake = unpacked(name)[0] / "kept"
    samples, lines, ledger = map(int, re.findall(r"\d", name))
    part = pq.read_schema(next(lake.glob("samples/*/*.parquet")))
    assert part.metadata[b"gpuledger.samples.version"] == str(samples).encode()
    columns = pq.read_schema(next(lake.glob("ledger/*/*.lines.parquet"))).names
    assert {c: c in columns for c in SINCE} == {c: lines >= first for c, first in SINCE.items()}
    assert json.loads((lake / "ledger" / "manifest.json").read_text())["version"] == ledger


@pytest.mark.parametrize("name", NAMES)
def test_with_its_samples_a_lake_is_posted_again_and_billed_like_a_fresh_import(unpacked, fresh_audit, name):
    folder, said = unpacked(name)
    lake = folder / "kept"
    shutil.rmtree(lake / "jobs", ignore_errors=True)  # the fresh lake has no jobs
    assert audit(lake) == fresh_audit
    assert Ledger(Lake(lake)).manifest().version == LEDGER_VERSION
    if said:
        found = gpuledger.open(lake).analyze().to_dict()
        assert {key: found[key] for key in said["kept"]} == pytest.approx(said["kept"], rel=1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith("-first")])
def test_without_its_samples_a_lake_states_what_its_version_stated_and_migrating_changes_no_bill(unpacked, name):
    folder, said = unpacked(name)
    lake = folder / "dropped"
    found = gpuledger.open(lake).analyze().to_dict()
    assert {key: found[key] for key in said["dropped"]} == pytest.approx(said["dropped"], rel=1e-12)
    before = audit(lake)
    assert run(["tidy", "--lake", str(lake), "--yes", "-q"]) == 0
    assert audit(lake) == before


def test_folding_and_dropping_what_an_older_version_posted_changes_no_bill(unpacked):
    lake = unpacked("samples1-lines1-ledger1")[0] / "kept"
    before = audit(lake)
    assert run(["tidy", "--lake", str(lake), "--yes", "-q"]) == 0
    assert not list(lake.glob("samples/*/*.parquet"))
    after = audit(lake)
    for figure in ("samples", "gpus", "paid_usd", "buckets", "bucket_h", "waste_usd", "energy_kwh", "by_namespace"):
        assert after[figure] == before[figure], figure


def test_owners_of_an_older_job_table_stay(unpacked):
    folder, _ = unpacked(NEWEST)
    for kind in ("kept", "dropped"):
        found = gpuledger.open(folder / kind).audit(prices=2, by="user").to_dict()
        assert {"ada", "lin"} <= set(re.findall(r"\w+", json.dumps(found))), kind


def bump(lake: Path, what: str) -> None:
    """Make one file a format of the future."""
    if what == "samples":
        shutil.rmtree(lake / "ledger")
        for part in lake.glob("samples/*/*.parquet"):
            table = pq.read_table(part, partitioning=None)
            pq.write_table(table.replace_schema_metadata({"gpuledger.samples.version": "99"}), part)
    else:
        held = json.loads((lake / what).read_text())
        (lake / what).write_text(json.dumps(held | {"version": 99}))


def state_of(lake: Path) -> list[tuple[str, int]]:
    return sorted((str(f), f.stat().st_mtime_ns) for f in lake.rglob("*") if f.is_file() and f.name != "lock")


@pytest.mark.parametrize("what", ["manifest.json", "ledger/manifest.json", "jobs/manifest.json", "samples"])
def test_a_newer_format_is_refused_with_the_next_step_and_left_alone(unpacked, capfd, what):
    lake = unpacked(NEWEST)[0] / "kept"
    bump(lake, what)
    before = state_of(lake)
    for command in (["analyze"], ["tidy", "--yes"]):
        assert run([*command, "--lake", str(lake)]) == 2
        said = capfd.readouterr().err
        assert "newer" in said
        assert "upgrade gpuledger" in said
    assert state_of(lake) == before
