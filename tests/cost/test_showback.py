from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.cost.teams import NO_TEAM, Config, demo_config, load_config
from gpuledger.errors import FactError
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.telemetry.fleet import demo_fleet


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "gpuledger.toml"
    file.write_text(text)
    return file


def test_a_namespace_has_a_team_and_targets(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path, '[namespaces.a]\nteam = "red"\nrfu_target_ratio = 0.6\n[namespaces."c2/a"]\nteam = "blue"\n')
    )
    assert config.team("c1", "a") == "red"
    assert config.team("c2", "a") == "blue"
    assert config.team("c1", "b") == NO_TEAM
    assert config.team("c1", None) == UNALLOCATED
    assert config.namespaces["a"].rfu_target_ratio == 0.6
    assert Config().team("c1", "a") == NO_TEAM


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[namespaces.a]\nteem = 'x'\n", "namespaces"),
        ("[namespaces.a]\nrfu_target_ratio = 70\n", "rfu_target_ratio"),
        ("[namespaces.a]\nteam = ' '\n", "team"),
        ("[namespaces.a]\nteam = 'unallocated'\n", "team"),
        ("version = 9\n", "version"),
    ],
)
def test_a_wrong_file_is_refused_by_field(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(FactError) as caught:
        load_config(write(tmp_path, text))
    assert field in caught.value.message
    assert caught.value.hint


def test_every_namespace_of_the_demo_has_a_team() -> None:
    config = demo_config()
    for one in demo_fleet():
        assert config.team(one.cluster, one.namespace) not in {NO_TEAM, UNALLOCATED}
