"""Is the list of boards that can be cut into slices the same everywhere, and does it name boards of the catalog?"""

from __future__ import annotations

import tomllib

import pytest

from gpuledger.catalog.files import data_dir
from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.mig import compute_slices
from gpuledger.units import Unknown


def boards(package: str) -> dict:
    return tomllib.loads(data_dir(package, "data", "mig.toml").read_text(encoding="utf-8"))


def test_every_board_is_in_the_catalog_and_has_its_shape():
    listed = boards("gpuledger.catalog")
    assert set(listed["gpus"]) <= set(load_gpus())
    for key, board in listed["gpus"].items():
        assert compute_slices(key) == listed["shapes"][board["shape"]]["compute_slices"]


def test_advice_cuts_boards_as_conversion_does():
    assert boards("gpuledger.advice") == boards("gpuledger.catalog")


@pytest.mark.parametrize(("model", "slices"), [("NVIDIA A30", 4), ("NVIDIA H100 80GB HBM3", 7), ("b200-sxm", 7)])
def test_slices_by_any_name(model, slices):
    assert compute_slices(model) == slices


@pytest.mark.parametrize("model", ["NVIDIA A10G", "NVIDIA X9000", ""])
def test_other_boards_are_unknown(model):
    assert isinstance(compute_slices(model), Unknown)
