"""Is every command and option of the command line written down in docs/cli.md?"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from gpuledger.cli.app import root

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def commands(group: click.Group = root, path: str = "gpuledger") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found[f"{path} {name}"] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{path} {name}")
    return found


def section(path: str) -> str:
    """The part of the page below the heading of one command."""
    text = DOCS.read_text(encoding="utf-8")
    found = re.search(rf"^#+ `{re.escape(path)}.*?`$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no heading for {path}"
    return found[0]


@pytest.mark.parametrize("path", sorted(commands()))
def test_command_is_documented(path):
    command, text = commands()[path], section(path)
    assert command.help, f"{path} has no help"
    assert len(command.get_short_help_str(limit=200)) <= 62, "the first sentence must fit its line of the help"
    for option in command.params:
        for spelling in option.opts if isinstance(option, click.Option) else ():
            assert spelling in text, f"docs/cli.md does not say what {path} {spelling} does"


def test_the_help_says_what_each_command_says_of_itself():
    for group in [root, *(c for c in commands().values() if isinstance(c, click.Group))]:
        context = click.Context(group)
        for name in group.list_commands(context):
            assert group.sentence(context, name) == group.get_command(context, name).get_short_help_str(limit=200)


@pytest.mark.parametrize("path", sorted(commands()))
def test_every_command_that_prints_figures_has_json_and_quiet(path):
    command = commands()[path]
    if not isinstance(command, click.Group):
        spellings = {s for p in command.params for s in p.opts}
        assert {"--json", "--quiet"} <= spellings


def test_the_page_names_no_command_that_is_gone():
    headings = re.findall(r"^#+ `(gpuledger [a-z ]+)", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {h.strip() for h in headings} <= set(commands())


def test_every_option_explains_itself():
    for path, command in commands().items():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, (path, option.opts)
