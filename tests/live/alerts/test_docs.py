"""Is what the page on alerts shows what the program does?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuledger.live.alerts.limits import load_alerts, span_ms
from gpuledger.live.alerts.receiver import KINDS
from gpuledger.live.alerts.rule import ALERTS
from gpuledger.units import MS_PER_MIN

PAGE = (Path(__file__).parents[3] / "docs" / "alerts.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_is_taken(own_settings):
    (text,) = blocks("toml")
    own_settings(text)
    found = load_alerts()
    assert set(found.receivers) == {"log", "fm-slack", "oncall"}
    assert (found.rules["idle_held"].fire, found.rules["power_cap"].on) == (45, False)


def test_the_table_has_every_rule_with_its_limits():
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\d+) \| (\d+) \| ?(.*?) ?\|$", PAGE, re.MULTILINE)
    shown = {name: (float(fire), float(clear), _minutes(wait)) for name, fire, clear, wait in rows}
    rules = load_alerts().rules
    assert shown == {n: (r.fire, r.clear, span_ms(r.hold) // MS_PER_MIN) for n, r in rules.items()}
    assert set(shown) == set(ALERTS.names())


def _minutes(text):
    number, _, unit = text.partition(" ")
    return int(number or 0) * (60 if unit == "h" else 1)


def test_the_table_has_every_kind_of_receiver():
    for kind in KINDS.names():
        assert f"\n| `{kind}` |" in PAGE


def test_the_rule_from_outside_runs(monkeypatch):
    ALERTS.names()
    monkeypatch.setattr(ALERTS, "_things", dict(ALERTS._things))
    (text,) = blocks("python")
    names = {}
    exec(text, names)

    class Seen:
        devices, newest_ms = dict.fromkeys(range(60)), 1

    (reading,) = names["look"](Seen)
    assert reading.value == 4.0
    assert ALERTS.get("few_gpus").limits.fire == 1


@pytest.mark.parametrize("line", re.findall(r"^gpuledger watch.*$", PAGE, re.MULTILINE))
def test_the_options_exist(line):
    from gpuledger.cli.commands.watch import command

    known = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<= )--[a-z-]+", line)) <= known
