"""Is what `make test-versions` installs as the lowest versions what pyproject.toml allows?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Not run there: PyTorch is large and needs a GPU to be of use, and AMD's library a driver.
LEFT_OUT = {"amd", "train"}


def locked() -> dict[str, Version]:
    text = (ROOT / "requirements" / "lowest.lock").read_text(encoding="utf-8")
    return {name: Version(version) for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)}


def asked() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for name in sorted(extras.keys() - LEFT_OUT) for line in extras[name])]
    return [found for found in map(Requirement, lines) if found.name != "gpuledger"]


def is_lowest(requirement: Requirement, version: Version) -> bool:
    """Whether it is the version that the bound names: 9.15.6755 for >=9.15, 14.0.0 for >=14."""
    (bound,) = requirement.specifier
    release = Version(bound.version).release
    return bound.operator == ">=" and version.release[: len(release)] == release


@pytest.mark.parametrize("requirement", asked(), ids=str)
def test_the_lock_has_the_lowest_version(requirement: Requirement) -> None:
    assert is_lowest(requirement, locked()[canonicalize_name(requirement.name)]), "run make lock, or raise the bound"


def test_the_rule_can_fail() -> None:
    assert is_lowest(Requirement("ortools>=9.14"), Version("9.14.6206"))
    assert not is_lowest(Requirement("ortools>=9.14"), Version("9.15.6755"))
    assert not is_lowest(Requirement("rich>=14"), Version("15.0.0"))
