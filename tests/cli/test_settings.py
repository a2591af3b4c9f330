"""Does every section of gpuledger.toml change a statement that names it, and do config show and init agree?"""

from __future__ import annotations

import shutil
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger import settings
from gpuledger.cli.settings_values import settings_in_force

RESULTS = Path(__file__).parents[1] / "data" / "s2" / "results.jsonl"


@pytest.fixture(autouse=True)
def found_in_folders(monkeypatch, tmp_path):
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    yield
    settings.use(None)


@pytest.fixture
def lake(cli, fleet_lake):
    """Three GPUs, 2026-01-20 and 21, a sample each ten minutes."""
    shutil.copytree(fleet_lake, "lake")


def said(cli, *args):
    ended = cli(*args, "--json")
    assert ended.code == 0, ended.err
    return ended.json()


def put(text: str) -> str:
    Path(settings.FILE).write_text(text)
    return str(Path(settings.FILE).absolute())


def test_classes(cli, lake):
    file = put("[classes.targets]\nroi_rfu_ratios = [0.95]\n")
    found = said(cli, "analyze", "--lake", "lake")
    assert [r["target_rfu_pct"] for r in found["roi"]] == [95.0]
    assert f"settings: efficiency classes from {file}" in found["assumptions"]
    Path("own.toml").write_text("[targets]\nroi_rfu_ratios = [0.9]\n")
    found = said(cli, "analyze", "--lake", "lake", "--thresholds", "own.toml")
    assert [r["target_rfu_pct"] for r in found["roi"]] == [90.0]
    assert "settings: efficiency classes from own.toml" in found["assumptions"]


def test_advice(cli, lake):
    file = put("[advice.idle]\nidle_heavy_from_ratio = 0.99\n")
    found = said(cli, "audit", "--lake", "lake", "--price", "2")
    assert any(a.startswith("idle-heavy: 99 %") for a in found["assumptions"])
    assert f"settings: advice from {file}" in found["assumptions"]
    put("")
    plain = said(cli, "audit", "--lake", "lake", "--price", "2")
    assert any(a.startswith("idle-heavy: 30 %") for a in plain["assumptions"])
    assert not any(a.startswith("settings:") for a in plain["assumptions"])


def test_teams_prices_and_budgets(cli, lake):
    names = [row["name"] for row in said(cli, "audit", "--lake", "lake", "--price", "2")["by_namespace"]]
    models = ("H100-SXM5-80GB", "A100-SXM4-40GB", "A10G")
    prices = "".join(f"{model} = {usd}\n" for model, usd in zip(models, (3, 2.5, 1), strict=True))
    head = f'[teams]\n{names[0]} = "A team"\n[prices]\n{prices}'
    file = put(f'{head}[budgets]\n"A team" = 1\n{names[-1]} = 1000000\nnobody = 5\n')
    found = said(cli, "audit", "--lake", "lake")
    assert {p["basis"] for p in found["prices"]} == {"given"}
    team = next(t for t in found["by_team"] if t["name"] == "A team")
    # Two days were seen, without an inventory: a month is fifteen times as long.
    monthly = Decimal(team["paid_usd"]) * Decimal(found["monthly_usd"]) / Decimal(found["paid_usd"])
    over, within, missing = found["budgets"]
    assert (over["name"], over["of"], over["over"], over["budget_usd"]) == ("A team", "team", True, "1")
    assert Decimal(over["monthly_usd"]) == pytest.approx(monthly, rel=Decimal("1e-6"))
    assert (within["of"], within["over"]) == ("namespace", False)
    assert (missing["of"], missing["monthly_usd"], missing["over"]) == (None, None, None)
    text = "\n".join(found["assumptions"])
    assert "team A team: $" in text
    assert "of a $1.00 monthly budget, over budget" in text
    assert "budget of nobody: $5.00 per month; spending unknown: no team and no namespace of that name" in text
    for what in ("teams", "prices", "budgets"):
        assert f"settings: {what} from {file}" in found["assumptions"]
    given = said(cli, "audit", "--lake", "lake", "--price", "2")
    assert Decimal(given["by_model"][0]["paid_usd"]) != Decimal(found["by_model"][0]["paid_usd"])
    assert f"settings: prices from {file}" not in given["assumptions"]
    assert {p["usd_per_h"] for p in found["prices"]} == {"2.5"}, "the fleet has A100s only"
    for given, usd in ((models[1], "9"), ("A10G", "2.5")):
        one = said(cli, "audit", "--lake", "lake", "--price", f"{given}=9")
        assert {p["usd_per_h"] for p in one["prices"]} == {usd}


def test_prices_of_a_plan_from_the_lake(cli, lake):
    put("[prices]\nH100-SXM5-80GB = 30\nA100-SXM4-40GB = 30\nA10G = 30\n")
    found = said(cli, "plan", "migrate", "--lake", "lake")
    same = said(cli, "plan", "migrate", "--lake", "lake", "--price", "30")
    assert found["paid_usd"] == same["paid_usd"]


def test_grades_and_prices_of_a_benchmark(cli):
    file = put("[grades.success]\nlimits = [70.0, 60.0, 50.0, 40.0]\n")
    found = said(cli, "scaling", RESULTS)
    assert found["grades"]["success"]["grade"] == "A"
    assert f"settings: grades from {file}" in found["assumptions"]


def test_an_unknown_setting_stops_a_statement(cli, lake):
    put("[classes]\nmodrate_pif_from_ratio = 0.55\n")
    ended = cli("analyze", "--lake", "lake")
    assert (ended.code, ended.out) == (2, "")
    assert "gpuledger.toml: classes.modrate_pif_from_ratio" in ended.err
    assert "next: did you mean moderate_pif_from_ratio" in ended.err


def test_the_named_file_wins(cli, tmp_path):
    put("[classes.targets]\nroi_rfu_ratios = [0.95]\n")
    Path("other.toml").write_text("[classes.targets]\nroi_rfu_ratios = [0.85]\n")
    found = said(cli, "--settings", "other.toml", "config", "show")
    roi = next(v for v in found["values"] if v["name"] == "classes.targets.roi_rfu_ratios")
    assert (roi["value"], roi["origin"], found["found_by"]) == ([0.85], "other.toml", "given")
    again = said(cli, "config", "show")
    assert (again["file"], again["found_by"]) == (str(tmp_path / settings.FILE), "folder")
    assert cli("--settings", "nowhere.toml", "config", "show").code == 2


def test_show_lists_every_value_and_its_file(cli):
    shown = cli("config", "show")
    assert "No gpuledger.toml is in use" in shown.out
    put('[teams]\nml = "A team"\n[budgets]\nml = 10\n[prices]\nA10G = 1\n[tuning]\nmax_rounds = 2\n')
    found = said(cli, "config", "show")
    assert (found["v"], found["statement"], found["not_known"]) == (1, "settings", [])
    own = {v["name"]: v["value"] for v in found["values"] if not v["shipped"]}
    assert own == {"teams.ml": "A team", "budgets.ml": 10, "prices.A10G": 1, "tuning.max_rounds": 2}
    sections = {v["name"].split(".")[0] for v in found["values"]}
    assert sections == set(settings.SECTIONS)
    text = cli("config", "show").out
    assert "tuning.max_rounds" in text
    assert "advice.idle.idle_heavy_from_ratio" in text
    assert "P6" in cli("config", "show", "reference").out


def test_init_writes_a_file_that_changes_nothing_until_it_is_edited(cli):
    before = settings_in_force().values
    assert cli("config", "init").code == 0
    assert settings_in_force().values == before
    assert set(tomllib.loads(Path(settings.FILE).read_text())) == {"version", *settings.SECTIONS}
    again = cli("config", "init")
    assert again.code == 2
    assert "--force" in again.err
    # Every line that is taken out of its comment is a setting that exists, at its shipped value.
    text = Path(settings.FILE).read_text()
    lines = [line[2:] if line.startswith("# ") and " = " in line else line for line in text.splitlines()]
    Path(settings.FILE).write_text("\n".join(lines))
    shipped = {v.name: v.value for v in before}
    after = {v.name: v.value for v in settings_in_force().values}
    assert {n: after[n] for n in shipped} == shipped
    assert cli("config", "init", "--force").code == 0
