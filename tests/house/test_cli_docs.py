"""Is the command reference the help of the commands, and does every command and option explain itself?"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click
import pytest

from gpuledger.cli.app import root

SCRIPT = Path(__file__).parents[2] / "docs" / "reference" / "cli.py"
_spec = importlib.util.spec_from_file_location("cli_reference", SCRIPT)
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)
COMMANDS = dict(reference.commands(root, "gpuledger"))


def test_the_reference_is_what_the_commands_say():
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run: make reference"


def test_the_reference_does_not_depend_on_the_terminal(monkeypatch):
    made = reference.page()
    monkeypatch.setenv("COLUMNS", "200")
    assert reference.page() == made
    assert max(len(line) for line in made.split("```text")[-1].splitlines()) <= reference.COLUMNS


def test_a_stale_reference_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "PAGE", tmp_path / "cli.md")
    monkeypatch.setattr(reference.sys, "argv", ["cli.py", "--check"])
    assert reference.main() == 1
    assert "make reference" in capsys.readouterr().err
    monkeypatch.setattr(reference.sys, "argv", ["cli.py"])
    assert reference.main() == 0
    monkeypatch.setattr(reference.sys, "argv", ["cli.py", "--check"])
    assert reference.main() == 0
    (tmp_path / "cli.md").write_text("old")
    assert reference.main() == 1


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_command_is_documented(path):
    command, text = COMMANDS[path], reference.page()
    assert command.help, f"{path} has no help"
    assert len(command.get_short_help_str(limit=200)) <= 62, "the first sentence must fit its line of the help"
    part = text.split(f"# {path}\n", 1)[1].split("\n```\n", 1)[0]
    for option in command.params:
        for spelling in option.opts if isinstance(option, click.Option) else ():
            assert spelling in part, f"{path} {spelling}"


def test_the_help_says_what_each_command_says_of_itself():
    for group in [root, *(c for c in COMMANDS.values() if isinstance(c, click.Group))]:
        context = click.Context(group)
        for name in group.list_commands(context):
            assert group.sentence(context, name) == group.get_command(context, name).get_short_help_str(limit=200)


SHOWN_ELSEWHERE = {"gpuledger serve"}  # its figures are on pages, and as JSON at /api


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_command_that_prints_figures_has_json_and_quiet(path):
    command = COMMANDS[path]
    if not isinstance(command, click.Group) and path not in SHOWN_ELSEWHERE:
        spellings = {s for p in command.params for s in p.opts}
        assert {"--json", "--quiet"} <= spellings


def test_every_option_explains_itself():
    for path, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, (path, option.opts)
