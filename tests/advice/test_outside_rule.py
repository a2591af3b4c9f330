"""A rule that lives outside the package: one module, registered by its decorator, with its own gain and limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from casebook import activity, line, memory

from gpuledger.advice.build import audit_statement
from gpuledger.advice.limits import load_limits
from gpuledger.advice.rule import RULES, Case, Effort, Gain, Limits, Reason, advise, bash, pct
from gpuledger.advice.statement import to_json
from gpuledger.errors import UnknownName

NAME = "rack-fans"
GAIN = Gain("recovers", "assumed", "assumed: fans take a tenth of it", (0.05, 0.1, 0.2), of=("underused", "stalled"))


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What importing a module from outside does; undone after each test."""
    monkeypatch.setattr(RULES, "_things", {name: rule for name, rule in RULES})  # noqa: C416  (loads the shipped ones)

    change = bash("fans --namespace {{namespace}}")

    @advise(NAME, "Slow down the fans", "throughput", Effort("small", 1), change, GAIN, limits={"busy_from_ratio": 0.5})
    def when(case: Case, limits: Limits) -> Reason | None:
        if case.busy_ratio < limits.rules[NAME]["busy_from_ratio"]:
            return None
        return Reason(f"busy {pct(case.busy_ratio)} of the time", fills={"namespace": case.namespace or ""})


def fleet(books):
    """A day of one H100 whose kernels run 60 % of the time."""
    return books(*(line(h, **activity(engine=0.6, tensor=0.1), **memory(0.5)) for h in range(24)))


def test_it_is_in_the_audit_with_its_saving_its_change_and_its_source(books):
    made = audit_statement(fleet(books), price=2)
    found = next(r for r in made.recommendations if r.id == NAME)
    assert found.why == "busy 60 % of the time"
    assert found.change.text == "fans --namespace ml-training\n"
    assert found.source == GAIN.source
    dollars = made.cost.dollars
    # A tenth of what is underused or stalled, of a bill of 24 x $2.
    lost = float(dollars.underused_usd + dollars.stalled_usd)
    assert float(found.saving.middle_pct) == pytest.approx(100 * 0.1 * lost / 48, abs=1e-4)
    assert found.targets[0].counted
    told = next(r for r in to_json(made)["recommendations"] if r["id"] == NAME)
    assert told["effort"] == {"size": "small", "hours": 1, "words": "small: 1 hour"}


def test_the_users_file_replaces_its_limits_by_name(books, tmp_path: Path):
    file = tmp_path / "limits.toml"
    file.write_text(f"[rules.{NAME}]\nbusy_from_ratio = 0.7\n")
    made = audit_statement(fleet(books), price=2, thresholds=load_limits(file))
    assert NAME not in {r.id for r in made.recommendations}


def test_so_does_the_settings_file(books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "gpuledger.toml"
    file.write_text(f"[advice.rules.{NAME}]\nbusy_from_ratio = 0.7\n")
    monkeypatch.setenv("GPULEDGER_CONFIG", str(file))
    assert NAME not in {r.id for r in audit_statement(fleet(books), price=2).recommendations}


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("[rules.rack-fan]\nbusy_from_ratio = 0.7\n", NAME), (f"[rules.{NAME}]\nbusy_from = 0.7\n", "busy_from_ratio")],
)
def test_a_name_that_no_rule_has_is_refused_with_the_nearest(books, tmp_path: Path, text: str, nearest: str):
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(UnknownName) as error:
        audit_statement(fleet(books), price=2, thresholds=load_limits(file))
    assert nearest in f"{error.value.message} {error.value.hint}"
