#!/usr/bin/env python3
"""What is in docs/reference/cli.md? The help of every command, as the command line prints it at 80 columns.

python docs/reference/cli.py           write the page
python docs/reference/cli.py --check   exit 1 if the page is not what would be written
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from gpuledger.cli.app import root

PAGE = Path(__file__).with_suffix(".md")
COLUMNS = 80
INTRO = """\
# Command line

<!-- Written by docs/reference/cli.py from the commands themselves; `make reference` writes it again. -->

This page is the output of `gpuledger COMMAND --help`, command by command.

Every command takes `--json`, which prints one JSON object on stdout and nothing else ([what it holds](json.md)), and
`-q` or `--quiet`, which prints nothing but errors. Statements are short by default: `--full` prints everything, and
`--out DIR` writes the page with its charts and its Markdown, JSON and CSV versions. Progress bars go to stderr, and
only if stderr is a terminal.

An error is two lines on stderr: what happened, and what to do next. With `--json` it is one JSON object
`{error, next, exit_code}`, still on stderr.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | found a problem that `--fail-on` asked for |
| 2 | bad input, or the system refused; the message shows what and where |
| 70 | a bug in gpuledger; `GPULEDGER_DEBUG=1` shows the traceback |
| 125 | `record` and `audit` around a command: nothing could be recorded as asked, so the command was not started |
| 126, 127 | around a command: it cannot be run, or was not found |
| 130 | interrupted |
| 141 | the reader of a pipe closed it |

Around a command (`gpuledger record -- CMD`, `gpuledger audit -- CMD`) the exit code is the command's own, or 128 + n
if signal n ended it.
"""


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group by its full name, in the order of the help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{path} {name}"
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def help_of(path: str, command: click.Command) -> str:
    """The help of one command, whatever the terminal."""
    settings = {"help_option_names": root.context_settings["help_option_names"]}
    context = click.Context(command, info_name=path, terminal_width=COLUMNS, max_content_width=COLUMNS, **settings)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def page() -> str:
    """The whole page."""
    parts = [INTRO]
    for path, command in (("gpuledger", root), *commands(root, "gpuledger")):
        parts.append(f"{'#' * max(2, path.count(' ') + 1)} {path}\n\n```text\n{help_of(path, command)}\n```\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is stale\nnext: make reference\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
