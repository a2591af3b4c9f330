"""Which settings file is read, does it win over what is shipped, and is what cannot be used refused?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuledger import settings
from gpuledger.advice.limits import load_limits
from gpuledger.catalog.thresholds import LAYER, load_thresholds
from gpuledger.cost.teams import set_teams
from gpuledger.cost.user_settings import set_budgets, set_prices
from gpuledger.errors import FactError, FileFault
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.scaling.grades import load_scaling_thresholds
from gpuledger.training.tune.choices import load_plan


def targets(folder: Path, ratio: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / settings.FILE
    file.write_text(f"[classes.targets]\nrfu_training_ratio = {ratio}\n", encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """A working folder, a home and an environment without settings."""
    (tmp_path / "work" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "deep")
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    yield
    settings.use(None)


def test_the_first_file_there_is_wins(tmp_path, monkeypatch):
    def now() -> tuple[float, str]:
        return load_thresholds().targets.rfu_training_ratio, settings.in_force().found_by

    assert now() == (0.70, "none")
    targets(tmp_path / "home" / "gpuledger", 0.61)
    assert now() == (0.61, "user")
    targets(tmp_path / "work", 0.62)
    assert now() == (0.62, "folder")
    targets(tmp_path / "work" / "deep", 0.63)
    assert now() == (0.63, "folder")
    monkeypatch.setenv(settings.VARIABLE, str(targets(tmp_path / "named", 0.64)))
    assert now() == (0.64, "environment")
    settings.use(targets(tmp_path / "given", 0.65))
    assert now() == (0.65, "given")
    in_old_layout = tmp_path / "own.toml"
    in_old_layout.write_text("[targets]\nrfu_training_ratio = 0.66\n")
    assert load_thresholds(in_old_layout).targets.rfu_training_ratio == 0.66
    settings.use(None)
    monkeypatch.setenv(settings.VARIABLE, "")
    assert now() == (0.70, "none")


def test_a_changed_file_is_read_again(tmp_path):
    file = targets(tmp_path / "work", 0.62)
    assert load_thresholds().targets.rfu_training_ratio == 0.62
    targets(tmp_path / "work", 0.5)
    os.utime(file, ns=(1, 1))
    assert load_thresholds().targets.rfu_training_ratio == 0.5


@pytest.mark.parametrize("how", ["given", "environment"])
def test_a_named_file_that_is_not_there_is_an_error(how, tmp_path, monkeypatch):
    missing = tmp_path / "none.toml"
    if how == "given":
        settings.use(missing)
    else:
        monkeypatch.setenv(settings.VARIABLE, str(missing))
    with pytest.raises(FileFault, match=r"none\.toml.*no such file"):
        load_thresholds()


def test_a_working_folder_that_is_gone_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert settings.in_force().file is None


@pytest.mark.parametrize(
    ("text", "load", "field", "words"),
    [
        ("[clases]\n", load_thresholds, "clases", ("(line 1)", "classes")),
        ("classes = 1\n", load_thresholds, "classes", ("not a section",)),
        ("version = 2\n", load_thresholds, "version", ("newer", "upgrade")),
        ("version = 1\n\n[classes]\nmodrate_pif_from_ratio = 0.5\n", load_thresholds,
         "classes.modrate_pif_from_ratio", ("(line 4)", "moderate_pif_from_ratio")),
        ("[classes.phases]\nidle = 0.5\n", load_thresholds, "classes.phases.idle", ("(line 2)", "idle_util_below")),
        ("[classes]\nidle_util_below_ratio = 0.1\n[classes.phases]\nidle_util_below_ratio = 3\n", load_thresholds,
         "classes.phases.idle_util_below_ratio", ("(found 3)", "(line 4)")),
        ("[advice.idle]\nidle_havy = 0.3\n", load_limits, "advice.idle.idle_havy", ("(line 2)", "idle_heavy")),
        ("[advice]\nidle = 1\n", load_limits, "advice.idle", ("(found 1)", "(line 2)")),
        ("[grades.sucess]\nlimits = [1.0]\n", load_scaling_thresholds, "grades.sucess", ("(line 1)", "success")),
        ("[grades.tail]\nlimits = 'low'\n", load_scaling_thresholds, "grades.tail.limits", ("(line 2)",)),
        ("[tuning]\nmin_gain = 0.5\n", load_plan, "tuning.min_gain", ("(line 2)", "min_gain_ratio")),
        ("[teams]\nml = 1\n", set_teams, "teams.ml", ("`str`", "(line 2)")),
        ("[prices]\nH100Z = 2.5\n", set_prices, "prices.H100Z", ("H100Z", "H100-")),
        ("[prices]\nA10G = -1\n", set_prices, "prices.A10G", ("(line 2)",)),
        ("[prices]\nA10G = 9999999\n", set_prices, "prices.A10G", ("not a price",)),
        ("[alerts.rules.idle_held]\nfire = 'x'\n", load_alerts, "alerts.rules.idle_held.fire", ("'x'", "(line 2)")),
        ("[alerts.receivers.a]\nkind = 'webhook'\n", load_alerts, "alerts.receivers.a.url", ("is missing",)),
        ("[budgets]\nml = 0\n", set_budgets, "budgets.ml", ("(line 2)",)),
    ],
)  # fmt: skip
def test_what_cannot_be_used_names_file_field_and_the_nearest(tmp_path, text, load, field, words):
    file = tmp_path / "work" / settings.FILE
    file.write_text(text)
    with pytest.raises(FactError) as caught:
        load()
    assert caught.value.path == str(file)
    assert caught.value.field == field
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint


def test_values_have_the_file_they_come_from(tmp_path):
    file = tmp_path / "work" / settings.FILE
    file.write_text("[classes]\nmoderate_pif_from_ratio = 0.55\n[classes.idle]\nwaits_below_s = 20\n")
    found = {v.name: v for v in LAYER.values()}
    own = {name for name, v in found.items() if not v.shipped}
    assert own == {"classes.moderate_pif_from_ratio", "classes.idle.waits_below_s"}
    assert {found[name].origin for name in own} == {str(file)}
    assert found["classes.idle.waits_below_s"].value == 20
    assert found["classes.efficient_pif_from_ratio"].origin == "catalog/data/thresholds.toml"
    shipped = {v.name: v.value for v in LAYER.values(shipped=True)}
    assert {n: v.value for n, v in found.items()} == shipped | {n: found[n].value for n in own}
    limits = load_thresholds()
    assert (limits.origin, limits.classes.source, limits.idle.source) == (str(file), file.name, file.name)
    assert limits.phases.source != file.name


def test_a_file_that_sets_nothing_changes_nothing(tmp_path):
    shipped = load_thresholds()
    (tmp_path / "work" / settings.FILE).write_text("version = 1\n[classes]\n[classes.phases]\n[advice.idle]\n")
    assert load_thresholds() == shipped
    assert (load_thresholds().origin, load_limits().origin) == ("", "")


def test_the_tuner_reads_its_section(tmp_path):
    (tmp_path / "work" / settings.FILE).write_text("[tuning]\nmin_gain_ratio = 0.1\nlooks = [4, 6]\n")
    plan = load_plan()
    assert (plan.min_gain_ratio, plan.looks) == (0.1, (4, 6))
    assert [axis.name for axis in plan.axes]
