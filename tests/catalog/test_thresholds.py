"""Are the limits the documented ones, and are limits that make no sense refused?"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import FactError, FileFault
from gpuledger.units import GIB


def own(folder: Path, text: str) -> Path:
    path = folder / "limits.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_documented_limits() -> None:
    t = load_thresholds()
    c, b, p, i = t.classes, t.bottleneck, t.phases, t.idle
    assert t.activity.active_util_above_ratio == 0.01
    assert (c.idle_util_below_ratio, c.efficient_util_from_ratio, c.efficient_pif_from_ratio) == (0.10, 0.70, 0.75)
    assert (c.bottlenecked_util_from_ratio, c.bottlenecked_pif_below_ratio) == (0.70, 0.60)
    assert (c.moderate_util_from_ratio, c.moderate_pif_from_ratio) == (0.40, 0.50)
    assert (b.util_above_ratio, b.pif_below_ratio) == (0.70, 0.60)
    assert (p.idle_util_below_ratio, p.underutilized_util_below_ratio, p.productive_util_below_ratio) == (0.1, 0.7, 0.9)
    assert (i.activity_below_ratio, i.util_below_ratio, i.held_above_card_ratio) == (0.01, 0.10, 0.02)
    assert i.held_above_bytes == 2 * GIB
    assert (t.targets.rfu_training_ratio, t.targets.rfu_inference_ratio) == (0.70, 0.50)
    assert t.targets.gap_alert_above_ratio == 0.25
    assert t.targets.roi_rfu_ratios == (0.5, 0.6, 0.7, 0.8)


def test_own_file_changes_only_what_it_gives(tmp_path: Path) -> None:
    t = load_thresholds(own(tmp_path, "[classes]\nmoderate_pif_from_ratio = 0.55\n"))
    assert t.classes.moderate_pif_from_ratio == 0.55
    assert t.classes.source == "limits.toml"
    assert t.classes.efficient_pif_from_ratio == 0.75
    assert t.phases == load_thresholds().phases


def test_fingerprint_follows_the_limits_of_posting_only(tmp_path: Path) -> None:
    shipped = load_thresholds().fingerprint()
    assert len(shipped) == 16
    assert set(shipped) <= set("0123456789abcdef")
    assert shipped == load_thresholds().fingerprint()
    same = own(tmp_path, "[targets]\nrfu_training_ratio = 0.65\n[phases]\nsource = 'other words'\n")
    assert load_thresholds(same).fingerprint() == shipped
    for section, field, value in (
        ("activity", "active_util_above_ratio", 0.02),
        ("classes", "idle_util_below_ratio", 0.11),
        ("bottleneck", "pif_below_ratio", 0.61),
        ("phases", "productive_util_below_ratio", 0.95),
        ("idle", "held_above_bytes", GIB),
    ):
        changed = own(tmp_path, f"[{section}]\n{field} = {value}\n")
        assert load_thresholds(changed).fingerprint() != shipped, section


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("[phases]\nidle_util_below_ratio = 10\n", "$.phases.idle_util_below_ratio", "(found 10)"),
        ("[phases]\nidle_util_below_ratio = 0.8\n", "phases.underutilized_util_below_ratio", "0.8, 0.7, 0.9"),
        ("[classes]\nmoderate_util_from_ratio = 0.9\n", "classes.moderate_util_from_ratio", "0.1, 0.9, 0.7"),
        ("[classes]\nbottlenecked_pif_below_ratio = 0.8\n", "classes.bottlenecked_pif_below_ratio", "0.8, 0.75"),
        ("[activity]\nactive_util_above_ratio = 0.2\n", "activity.active_util_above_ratio", "0.2, 0.1"),
        ("[targets]\nroi_rfu_ratios = [0.7, 0.5]\n", "targets.roi_rfu_ratios", "0.7, 0.5"),
        ("[targets]\nroi_rfu_ratios = []\n", "targets.roi_rfu_ratios", "found []"),
        ("[idle]\nheld_above_bytes = -1\n", "$.idle.held_above_bytes", "(found -1)"),
        ("[phase]\nidle_util_below_ratio = 0.1\n", "phase", "no setting is called 'phase' (line 1)"),
        ("[phases]\nidle = 0.1\n", "phases.idle", "no setting is called 'idle' (line 2)"),
        ("phases = 1\n", "$.phases", "(found 1)"),
    ],
)
def test_limits_that_make_no_sense_are_refused(tmp_path: Path, text: str, field: str, said: str) -> None:
    path = own(tmp_path, text)
    with pytest.raises(FactError) as caught:
        load_thresholds(path)
    assert caught.value.path == str(path)
    assert caught.value.field == field
    assert said in caught.value.message
    assert caught.value.hint


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileFault, match="no such file"):
        load_thresholds(tmp_path / "none.toml")
