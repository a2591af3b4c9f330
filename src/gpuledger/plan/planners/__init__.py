"""Which planners are there, and how is one run? A planner is one file, in this package or in any other.

    @planner("spot", "Plan capacity on spot instances.", PlanOption("hours", float, 720.0, "Hours per month."))
    def run(options: Mapping[str, Any]) -> SpotPlan: ...

What `run` returns is a statement: a dataclass or a mapping that `gpuledger.encode` writes as JSON. fit, throughput and
migrate have packages and commands of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.encode import Json, encode
from gpuledger.errors import InputError, UnknownName
from gpuledger.registry import Registry

Run = Callable[[Mapping[str, Any]], object]


@dataclass(frozen=True)
class PlanOption:
    """A parameter of a planner; a required one has no default."""

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    default: str | int | float | bool | None = None
    help: str = ""
    required: bool = False


@dataclass(frozen=True)
class Planner:
    """How a planner is described and run; `run` gets every option by name and returns a statement."""

    name: str
    summary: str
    options: tuple[PlanOption, ...]
    run: Run

    def state(self, given: Mapping[str, Any]) -> object:
        """The statement for these options; defaults are filled in, what does not fit is refused."""
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise UnknownName(f"option of the planner {self.name}", name, known)
        missing = [o.name for o in self.options if o.required and given.get(o.name) is None]
        if missing:
            raise InputError(f"{missing[0]} is not given", hint=f"give a value for {missing[0]}")
        return self.run({o.name: o.default if given.get(o.name) is None else given[o.name] for o in self.options})

    def encoded(self, statement: object) -> Json:
        """The statement as one JSON object."""
        return encode(self.name, statement)


PLANNERS: Registry[Planner] = Registry("planner", __name__)


def planner(name: str, summary: str, *options: PlanOption) -> Callable[[Run], Run]:
    """Decorator: make a function known as the planner `name`."""

    def keep(run: Run) -> Run:
        PLANNERS.register(name)(Planner(name, summary, options, run))
        return run

    return keep
