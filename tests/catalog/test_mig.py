"""Is there one list of the boards that can be cut into slices, and does it name boards of the catalog?"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import gpuledger
from gpuledger.catalog.files import data_dir
from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.gpus.mig import compute_slices, slices_of
from gpuledger.units import Unknown


def test_every_board_is_in_the_catalog_and_has_its_shape():
    listed = tomllib.loads(data_dir("gpuledger.catalog", "data", "mig.toml").read_text(encoding="utf-8"))
    assert set(listed["gpus"]) <= set(load_gpus())
    for key, board in listed["gpus"].items():
        assert compute_slices(key) == listed["shapes"][board["shape"]]["compute_slices"]


def test_conversion_advice_and_plans_cut_boards_by_one_list():
    package = Path(gpuledger.__file__).parent
    listing = [f for f in package.rglob("*.toml") if "compute_slices" in f.read_text(encoding="utf-8")]
    assert listing == [package / "catalog" / "data" / "mig.toml"]


def test_the_slices_on_offer_are_sevenths_or_quarters_of_the_board_they_are_cut_from():
    for key in ("a100-sxm4-40gb", "a30"):
        found = slices_of(key)
        assert not isinstance(found, Unknown)
        assert all(one.compute_ratio == one.compute / compute_slices(key) for one in found)


@pytest.mark.parametrize(("model", "slices"), [("NVIDIA A30", 4), ("NVIDIA H100 80GB HBM3", 7), ("b200-sxm", 7)])
def test_slices_by_any_name(model, slices):
    assert compute_slices(model) == slices


@pytest.mark.parametrize("model", ["NVIDIA A10G", "NVIDIA X9000", ""])
def test_other_boards_are_unknown(model):
    assert isinstance(compute_slices(model), Unknown)
