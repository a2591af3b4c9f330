from __future__ import annotations

import pytest

from gpuledger.advice.limits import load_limits
from gpuledger.errors import FactError


def test_the_published_limits_are_the_shipped_ones():
    limits = load_limits()
    assert limits.idle.idle_heavy_from_ratio == 0.30
    assert limits.memory.low_below_ratio == 0.40
    for name in limits.__struct_fields__:
        if name not in ("version", "origin", "rules"):
            assert getattr(limits, name).source


def test_a_file_of_ones_own_changes_what_it_names(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[idle]\nidle_heavy_from_ratio = 0.5\n")
    limits = load_limits(file)
    assert limits.idle.idle_heavy_from_ratio == 0.5
    assert limits.idle.active_from_ratio == load_limits().idle.active_from_ratio
    assert limits.idle.source == "mine.toml"
    assert limits.memory == load_limits().memory


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("version = 9\n", "version"),
        ("[idle]\nidle_heavy_from_ratio = 30\n", "idle_heavy_from_ratio"),
        ("[idle]\nidle_havy = 0.3\n", "idle"),
        ("[nonsense]\nx = 1\n", "nonsense"),
        ("[pipes]\ntensor_unused_below_ratio = 0.9\n", "pipes.tensor_used_from_ratio"),
        ("[fill]\ncautious_ratio = 0.0\n", "fill.cautious_ratio"),
        ("[schedule]\nat_most_hours = 24\n", "schedule.at_least_hours"),
    ],
)
def test_a_mistake_names_file_and_field(tmp_path, text, field):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(FactError) as error:
        load_limits(file)
    assert "mine.toml" in error.value.message
    assert field in error.value.message
    assert error.value.hint
