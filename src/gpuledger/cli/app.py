"""Which command did the user mean, and with what exit code does it end?

0 done, 1 found problems where asked (--fail-on), 2 bad input, 70 a bug in gpuledger, 130 interrupted, 141 the reader
of a pipe went away.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from gpuledger.cli.failures import explain
from gpuledger.errors import InputError, UnknownName

# The first sentence a command says about itself: of its function, or of a group's help.
_SENTENCE = re.compile(
    r'^def command\(.*?^    """(.*?)(?:\n|""")|^command = \w+\(.*?help="(.*?)"', re.DOTALL | re.MULTILINE
)


_FILE_NAME = re.compile(r"[/*?\[]|\w\.\w+$")


class CommandFolder(click.Group):
    """A group whose commands are the modules of a package; each is imported when it is asked for.

    A module `name.py` holds one click command called `command`; a package holds another group under the same name.
    `import_.py` is `import`: a trailing underscore keeps a Python keyword usable as a file name.
    """

    def __init__(self, package: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._package = package

    def _modules(self) -> dict[str, str]:
        # Names come from the folder itself: pkgutil would load more than click's help does.
        (folder,) = importlib.import_module(self._package).__path__
        found = (e.name.removesuffix(".py") for e in os.scandir(folder) if e.name.endswith(".py") or e.is_dir())
        names = (name for name in found if not name.startswith("_"))
        return {name.rstrip("_").replace("_", "-"): f"{self._package}.{name}" for name in names}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in order, without importing any of the modules."""
        return sorted(self._modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, or None."""
        module = self._modules().get(cmd_name)
        if module is None:
            return None
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command), f"{module}.command is not a command"
        return command

    def sentence(self, ctx: click.Context, name: str) -> str:
        """What a command does, in one line, read off its file: the help shows all of them and needs none of them."""
        (folder,) = importlib.import_module(self._package).__path__
        stem = self._modules()[name].rpartition(".")[2]
        for file in (f"{folder}/{stem}.py", f"{folder}/{stem}/__init__.py"):
            if os.path.isfile(file):  # noqa: PTH113  (pathlib is not loaded for the help)
                with open(file, encoding="utf-8") as source:  # noqa: PTH123
                    found = _SENTENCE.search(source.read())
                if found:
                    return (found[1] or found[2]).strip()
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=200) if command else ""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error that names a parameter names the option instead."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if command is not None and not isinstance(command, click.Group):
                from gpuledger.cli.spelling import option_names, spell_error

                spell_error(error, option_names(command))
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.sentence(ctx, name)) for name in self.list_commands(ctx)])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command: the help, with exit code 0; unless the group has an answer of its own."""
        return super().parse_args(ctx, args or ([] if self.invoke_without_command else ["--help"]))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A file is audited; an unknown command is answered with the nearest names."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            if ctx.parent is None and os.path.exists(args[0]):  # noqa: PTH110  (pathlib is not loaded for the help)
                return super().resolve_command(ctx, ["audit", *args])
            if ctx.parent is None and _FILE_NAME.search(args[0]):  # a pattern, or a file that is not there
                return super().resolve_command(ctx, ["audit", *args])
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from gpuledger import __version__

        click.echo(f"gpuledger {__version__}")
        ctx.exit()


def _use_settings(_ctx: click.Context, _param: click.Parameter, file: str | None) -> None:
    # The help does not load the settings.
    if file or "gpuledger.settings" in sys.modules:
        from pathlib import Path

        from gpuledger.settings import use

        use(Path(file) if file else None)


root = CommandFolder(
    "gpuledger.cli.commands",
    name="gpuledger",
    help="Account for every GPU-second of a fleet: what it did, what it cost, who used it and what to change.",
    epilog="Start with a file of yours: gpuledger FILE (a log, a saved screen, a page of metrics, a table of jobs); "
    "without one: gpuledger demo. Then: gpuledger import FILE..., gpuledger audit.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        ),
        click.Option(
            ["--settings"],
            metavar="FILE",
            expose_value=False,
            callback=_use_settings,
            help="Read settings from this file instead of the nearest gpuledger.toml.",
        ),
    ],
)


def run(args: Sequence[str] | None = None) -> int:
    """Run one command line; nothing but an exit code comes out, whatever happened."""
    given = list(sys.argv[1:] if args is None else args)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it: what is said goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    try:
        if "_GPULEDGER_COMPLETE" in os.environ:
            root.main(given, prog_name="gpuledger")  # the shell asks how a word goes on
        # Not root.main: it would turn an interrupt and a closed pipe into endings of its own.
        with root.make_context("gpuledger", given) as context:
            code = root.invoke(context)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  (the one place where a failure becomes words)
        own = given[: given.index("--")] if "--" in given else given  # what follows is another command's
        return explain(error, as_json="--json" in own)
    return code if isinstance(code, int) else 0
