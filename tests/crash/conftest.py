"""One server of commands and one set of files for all crash tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash import data
from crash.faults import NO_COMPILER
from crash.processes import Commands, commands


@pytest.fixture(scope="session")
def real_commands() -> Iterator[Commands]:
    with commands() as made:
        yield made


@pytest.fixture(scope="session")
def exact_commands(real_commands: Commands) -> Commands:
    if real_commands.library is None:
        pytest.skip(NO_COMPILER)
    return real_commands


@pytest.fixture(scope="session")
def files(real_commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.make(real_commands, tmp_path_factory.mktemp("crash"))
