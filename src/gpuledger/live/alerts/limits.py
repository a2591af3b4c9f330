"""Which rules are on, with what limits, and who is notified? The section [alerts] of gpuledger.toml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from gpuledger.errors import FactError, GpuledgerError
from gpuledger.settings import Layer, convert
from gpuledger.times import length_ms

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
Finite = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Limits(_Strict, frozen=True):
    """When one rule fires and when it has recovered. `every`: how often it is looked at, at most."""

    on: bool
    severity: Severity
    fire: Finite
    clear: Finite
    hold: str = msgspec.field(name="for", default="0s")
    clear_for: str = "0s"
    every: str = "0s"

    @property
    def for_ms(self) -> int:
        """How long beyond the limit before it fires."""
        return span_ms(self.hold)

    @property
    def clear_for_ms(self) -> int:
        """How long recovered before it ends."""
        return span_ms(self.clear_for)

    @property
    def every_ms(self) -> int:
        """How often the rule is looked at, at most."""
        return span_ms(self.every)


class Ladder(_Strict, frozen=True):
    """Who is notified when."""

    team_after: str
    everyone_after: str
    everyone: tuple[str, ...]
    at_once: tuple[Severity, ...]


class Delivery(_Strict, frozen=True):
    """How patient delivery is."""

    timeout: str
    first_wait: str
    longest_wait: str

    @property
    def timeout_s(self) -> float:
        """How long a receiver may take to answer."""
        return length_ms(self.timeout) / 1000


class AlertSettings(_Strict, frozen=True):
    """The whole section. `origin`: the file of the user's own, if any."""

    version: int
    window: str
    forget_after: str
    keep: str
    ladder: Ladder
    delivery: Delivery
    receivers: dict[str, dict[str, Any]]
    owners: dict[str, tuple[str, ...] | str]
    outside: dict[str, dict[str, Any]]
    rules: dict[str, Limits]
    origin: str = ""

    def receivers_of(self, name: str) -> tuple[str, ...]:
        """The receivers of a team, a namespace or a cluster/namespace."""
        found = self.owners.get(name, ())
        return (found,) if isinstance(found, str) else found

    def limits_of(self, rule: str, shipped: Limits | None) -> Limits:
        """The limits of a rule; of one from outside, its own with the user's over them."""
        if rule in self.rules:
            return self.rules[rule]
        own = {**msgspec.to_builtins(shipped), **self.outside.get(rule, {})} if shipped else self.outside.get(rule, {})
        return convert(own, Limits, self.origin or LAYER.file, f"alerts.outside.{rule}")


LAYER = Layer("alerts", AlertSettings, "gpuledger.live.alerts", "alerts.toml")


def span_ms(text: str) -> int:
    """A length of time that may be nothing: 0s."""
    return 0 if text.strip() in {"0", "0s", "0m", "0h", "0d"} else length_ms(text)


def load_alerts() -> AlertSettings:
    """The settings in force, checked: lengths, names of receivers, and limits that leave room to recover."""
    from gpuledger.live.alerts.receiver import check_receiver

    found = LAYER.load()
    file = found.origin or LAYER.file
    for field, text in _lengths(found):
        try:
            span_ms(text) if field.startswith("rules.") else length_ms(text)
        except GpuledgerError as error:
            raise FactError(file, f"alerts.{field}", error.message, hint=error.hint) from error
    for name, given in found.receivers.items():
        check_receiver(name, given, file)
    _check_names(found, file)
    for name, limits in found.rules.items():
        if limits.clear > limits.fire:
            problem = f"clear = {limits.clear:g} is beyond fire = {limits.fire:g}"
            hint = "an alert must recover below its limit: make clear smaller"
            raise FactError(file, f"alerts.rules.{name}.clear", problem, hint=hint)
    return found


def _lengths(found: AlertSettings) -> list[tuple[str, str]]:
    out = [(name, getattr(found, name)) for name in ("window", "forget_after", "keep")]
    out += [(f"ladder.{name}", getattr(found.ladder, name)) for name in ("team_after", "everyone_after")]
    out += [(f"delivery.{name}", getattr(found.delivery, name)) for name in ("timeout", "first_wait", "longest_wait")]
    for rule, limits in found.rules.items():
        own = (("for", limits.hold), ("clear_for", limits.clear_for), ("every", limits.every))
        out += [(f"rules.{rule}.{name}", text) for name, text in own]
    return out


def _check_names(found: AlertSettings, file: str) -> None:
    """A receiver that is named must exist."""
    used = [("ladder.everyone", found.ladder.everyone)]
    used += [(f"owners.{name}", found.receivers_of(name)) for name in found.owners]
    for field, names in used:
        for name in names:
            if name not in found.receivers:
                known = ", ".join(sorted(found.receivers)) or "none"
                hint = f"add [alerts.receivers.{name}], or use one of: {known}"
                raise FactError(file, f"alerts.{field}", f"no receiver is called {name!r}", hint=hint)
