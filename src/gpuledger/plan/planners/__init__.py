"""Which planners are there, and how is one run? A planner is one file, in this package or in any other.

    @planner("spot", "Plan capacity on spot instances.", PlanOption("hours", float, 720.0, "Hours per month."))
    def run(options: Options) -> SpotPlan: ...

What `run` returns is a statement: a dataclass or a mapping that `gpuledger.encode` writes as JSON, with the parts of
`plan.outcome`. Where no option keeps what was asked, its `unmet` is a `Refused`: the command shows the statement and
exits with 2. Long work reports its progress through `options.stage`. fit, throughput and migrate have packages and
commands of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpuledger.arguments import one_of, refuse_unknown
from gpuledger.encode import Json, encode
from gpuledger.errors import InputError, UnknownName
from gpuledger.registry import Registry

Tick = Callable[[int], None]
Stage = Callable[[str, int | None], Tick]
Kind = type[str] | type[int] | type[float] | type[bool] | type[Path]


def silent(_stage: str, _total: int | None = None) -> Tick:
    """Progress that is not shown."""
    return lambda _amount: None


class Options(Mapping[str, Any]):
    """What a planner was asked, by name; `stage` starts a progress bar and returns what is called with amounts done."""

    def __init__(self, given: Mapping[str, Any], stage: Stage = silent) -> None:
        self._given = dict(given)
        self.stage = stage

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


Run = Callable[[Options], object]


@dataclass(frozen=True)
class PlanOption:
    """A parameter of a planner; a required one has no default.

    `choices`: the values it may have. `many`: it may be given several times, and comes as a tuple. A Path may also be
    given as text, and with `rows` as a list of dictionaries, one per row of a table. `numbers`: text such as 2.50 or
    NAME=2.50; a number may be given too, or numbers by name.
    """

    name: str
    kind: Kind
    default: str | int | float | bool | Path | None = None
    help: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    many: bool = False
    numbers: bool = False
    metavar: str = ""
    rows: bool = False

    def value(self, given: Any) -> Any:
        """What the planner gets for what was given: its own kind, or a refusal that names the option."""
        if self.numbers:
            given = _number_texts(given)
        if self.many:
            if isinstance(given, Mapping):
                raise InputError(f"{self.name} is {given!r}", hint="give a list, not a mapping")
            one = given is None or isinstance(given, str | Path | int | float)
            return tuple(self._one(v) for v in (() if given is None else (given,) if one else given))
        return self.default if given is None else self._one(given)

    def _one(self, given: Any) -> Any:
        if self.choices and given not in self.choices:
            raise UnknownName(self.name, str(given), self.choices)
        if self.rows and isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
            return list(given)
        fits = isinstance(given, bool) == (self.kind is bool)
        if self.kind is Path and isinstance(given, str):
            return Path(given)
        if self.kind is float and isinstance(given, int) and fits:
            return float(given)
        if not (isinstance(given, self.kind) and fits):
            kinds = {str: "text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path"}
            raise InputError(f"{self.name} is {given!r}", hint=f"give {kinds[self.kind]}")
        return given


def _number_texts(given: Any) -> Any:
    """Numbers, and numbers by name, as the text an option has; anything else as it is."""
    if isinstance(given, Mapping):
        return tuple(f"{name}={number}" for name, number in given.items())
    if isinstance(given, list | tuple):
        return tuple(_number_texts(each) for each in given)
    return str(given) if isinstance(given, int | float | Decimal) and not isinstance(given, bool) else given


@dataclass(frozen=True)
class Planner:
    """How a planner is described and run; `run` gets every option by name and returns a statement."""

    name: str
    summary: str
    options: tuple[PlanOption, ...]
    run: Run

    def state(self, given: Mapping[str, Any], stage: Stage = silent) -> object:
        """The statement for these options; defaults are filled in, what does not fit is refused."""
        known = {option.name: option for option in self.options}
        if "price" in known and "prices" in given:
            price = one_of(price=given.get("price"), prices=given["prices"])
            given = {name: value for name, value in given.items() if name != "prices"} | {"price": price}
        refuse_unknown(f"plan.{self.name}", given, known)
        missing = [o.name for o in self.options if o.required and given.get(o.name) is None]
        if missing:
            raise InputError(f"{missing[0]} is not given", hint=f"give a value for {missing[0]}")
        return self.run(Options({o.name: o.value(given.get(o.name)) for o in self.options}, stage))

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
