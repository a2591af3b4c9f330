"""Which team is a namespace of, and what does the user want of it?

[teams]
ml-training = "foundation models"       # namespace, or "cluster/namespace"

What is asked of a namespace may also stand in a file of its own; "cluster/namespace" wins over the plain name:

version = 1
[namespaces.ml-training]
team = "foundation models"
rfu_target_ratio = 0.70          # optional: what efficiency is compared with
gap_alert_above_ratio = 0.25     # optional: when to alert on utilization less real use
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.settings import Settings, in_force

NO_TEAM = "no team"
CONFIG_VERSION = 1
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1)]


class NamespaceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of one namespace."""

    team: str | None = None
    rfu_target_ratio: Ratio | None = None
    gap_alert_above_ratio: Ratio | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: int = CONFIG_VERSION
    namespaces: dict[str, NamespaceConfig] = {}

    def of(self, cluster: str | None, namespace: str | None) -> NamespaceConfig:
        """What holds for a namespace of a cluster."""
        if namespace is None:
            return NamespaceConfig()
        narrow = self.namespaces.get(f"{cluster}/{namespace}")
        return narrow or self.namespaces.get(namespace) or NamespaceConfig()

    def set_team(self, cluster: str | None, namespace: str | None) -> str | None:
        """The team a namespace was given; None where it was given none."""
        return self.of(cluster, namespace).team

    def team(self, cluster: str | None, namespace: str | None, label: str | None = None, *, owned: bool = False) -> str:
        """The team that is shown the cost: by its label, else as set; time without an owner has none."""
        if label is not None:
            return label
        if namespace is None:
            return NO_TEAM if owned else UNALLOCATED
        return self.set_team(cluster, namespace) or NO_TEAM


def load_config(path: Path) -> Config:
    """The user's file, checked whole."""
    return checked(load_toml(path, Config), str(path))


def demo_config() -> Config:
    """The demo fleet's teams, as shipped."""
    file = data_dir("gpuledger.cost", "data", "demo_config.toml")
    return checked(load_toml(file, Config), str(file))


def checked(config: Config, path: str) -> Config:
    """The same, where its version and the names of its teams can be used."""
    if config.version > CONFIG_VERSION:
        raise FactError(
            path, "version", f"{config.version} is newer than this gpuledger reads", hint="upgrade gpuledger"
        )
    for name, namespace in config.namespaces.items():
        if namespace.team is not None and not namespace.team.strip():
            raise FactError(path, f"namespaces.{name}.team", "is empty", hint="name the team, or leave the line out")
        if namespace.team in {NO_TEAM, UNALLOCATED}:
            problem = f"{namespace.team!r} has a meaning of its own here"
            raise FactError(path, f"namespaces.{name}.team", problem, hint="give the team another name")
    return config


def set_teams(settings: Settings | None = None) -> Config | None:
    """The teams that were set; None where none were."""
    found = settings or in_force()
    teams = found.table("teams", dict[str, str])
    if not teams:
        return None
    return checked(Config(namespaces={n: NamespaceConfig(team) for n, team in teams.items()}), str(found.file))
