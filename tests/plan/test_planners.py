"""Is a planner one file, also from outside: registered, listed, run, and written as a statement?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from gpuledger.cli.app import run
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.planners import PLANNERS, PlanOption, planner
from gpuledger.units import Unknown


@dataclass(frozen=True)
class RackPlan:
    racks: int
    paid_usd: Decimal
    power_w: float | Unknown


@pytest.fixture
def cli(capsys):
    """Run a command line; gives exit code, stdout and stderr."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        return run([str(a) for a in args]), *capsys.readouterr()

    return call


@pytest.fixture
def racks() -> Iterator[str]:
    """A planner of a package that is not ours."""

    @planner(
        "racks",
        "Plan how many racks the GPUs need.",
        PlanOption("gpus", int, help="Number of GPUs.", required=True),
        PlanOption("gpus_per_rack", int, 32, "GPUs in one rack."),
        PlanOption("spare", bool, False, "Add one spare rack."),
    )
    def plan_racks(options: Mapping[str, Any]) -> RackPlan:
        if options["gpus"] < 1:
            raise InputError(f"gpus={options['gpus']} is below 1", hint="give gpus=1 or more")
        racks = -(-options["gpus"] // options["gpus_per_rack"]) + options["spare"]
        return RackPlan(racks, Decimal("1.50") * racks, Unknown("no power is given"))

    yield "racks"
    PLANNERS._things.pop("racks")


def test_a_statement_of_a_planner_is_written_like_any_other(racks):
    one = PLANNERS.get(racks)
    assert one.encoded(one.state({"gpus": 33})) == {
        "v": 1, "statement": "racks", "racks": 2, "paid_usd": "3", "power_w": None,
        "not_known": [{"figure": "power_w", "why": "no power is given", "count": 1}],
    }  # fmt: skip


def test_options_are_checked_and_defaults_filled_in(racks):
    one = PLANNERS.get(racks)
    assert one.state({"gpus": 33, "gpus_per_rack": None, "spare": True}).racks == 3
    with pytest.raises(InputError, match="gpus is not given"):
        one.state({})
    with pytest.raises(UnknownName) as unknown:
        one.state({"gpu": 1})
    assert "gpus" in unknown.value.hint


def test_the_command_line_lists_and_runs_it(racks, cli):
    _, listed, _ = cli("plan", "--help")
    assert "Plan how many racks the GPUs need." in listed
    assert "migrate" in listed
    code, out, _ = cli("plan", "racks", "--gpus", 33, "--spare", "--json")
    assert (code, json.loads(out)["racks"]) == (0, 3)
    assert "Racks 2 " in " ".join(cli("plan", "racks", "--gpus", 33)[1].split())
    assert "--gpus-per-rack" in cli("plan", "racks", "--help")[1]


def test_a_refused_parameter_is_named_as_an_option(racks, cli):
    code, _, err = cli("plan", "racks", "--gpus", 0)
    assert code == 2
    assert "--gpus 0 is below 1" in err
    assert "give --gpus 1 or more" in err


def test_an_unknown_planner_suggests_the_nearest(racks, cli):
    code, _, err = cli("plan", "rack")
    assert code == 2
    assert "racks" in err


def test_a_planner_stays_one_after_its_package_was_imported():
    import gpuledger.plan.tco.build
    from gpuledger import plan

    assert all(callable(plan.tco) and not hasattr(plan.tco, "__path__") for _ in range(2))
    assert gpuledger.plan.memory.__path__
