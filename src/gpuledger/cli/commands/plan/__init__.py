"""Where should a job run, will it fit, and what will it cost there? One module per planner, and registered ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.app import CommandFolder

if TYPE_CHECKING:
    from gpuledger.plan.planners import Planner, PlanOption


class PlanCommandFolder(CommandFolder):
    """The commands of this folder, and the planners that registered themselves."""

    def _planners(self) -> dict[str, Planner]:
        from gpuledger.plan.planners import PLANNERS

        return {name: one for name, one in PLANNERS if name not in self._modules()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in order."""
        return sorted((*super().list_commands(ctx), *self._planners()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        found = super().get_command(ctx, cmd_name)
        if found is None and (one := self._planners().get(cmd_name)):
            found = _command(one)
        return found

    def sentence(self, ctx: click.Context, name: str) -> str:
        """What a command does, in one line."""
        return super().sentence(ctx, name) if name in self._modules() else self._planners()[name].summary


def _command(one: Planner) -> click.Command:
    """The click command of a registered planner."""
    from gpuledger.cli.options import PATH, full_option, screen_options
    from gpuledger.cli.screen import Screen

    @click.command(one.name, help=one.summary)
    @click.option("--out", type=PATH, metavar="DIR", help="Folder for the plan as a page, Markdown and JSON.")
    @full_option
    @screen_options
    def command(screen: Screen, out: Path | None, full: bool, **given: Any) -> int:
        from gpuledger.cli.failures import BAD_INPUT, tell
        from gpuledger.cli.showing import give, write_files
        from gpuledger.cli.spelling import option_names, spelled_document
        from gpuledger.report.documents.planned import planned_document

        with screen.stages() as stages:
            statement = one.state(given, stages.start)
            made = planned_document(one.name, one.summary.rstrip("."), statement, one.encoded(statement))
            document = spelled_document(made, option_names(click.get_current_context().command))
            files = write_files(document, out, screen, stages)
        give(document, screen, files, full=full)
        if unmet := getattr(statement, "unmet", None):
            tell(unmet.why, unmet.instead)
        return BAD_INPUT if unmet else 0

    for option in reversed(one.options):
        command.params.insert(0, _click_option(option))
    return command


def _click_option(option: PlanOption) -> click.Option:
    from gpuledger.cli.options import LAKE, PATH

    flag, name = option.kind is bool, option.name.replace("_", "-")
    path = LAKE if option.name == "lake" else PATH
    kind = click.Choice(option.choices) if option.choices else path if option.kind is Path else option.kind
    return click.Option(
        [f"--{name}/--no-{name}" if flag else f"--{name}", option.name],
        type=None if flag else kind,
        default=None if option.many else option.default,
        show_default=option.default is not None,
        required=option.required,
        multiple=option.many,
        metavar=option.metavar or None,
        help=option.help,
    )


command = PlanCommandFolder(__name__, name="plan", help="Plan where a job should run and what it costs there.")
