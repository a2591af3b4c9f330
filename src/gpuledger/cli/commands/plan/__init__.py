"""Where should a job run, will it fit, and what will it cost there? One module per planner, and registered ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.app import CommandFolder
from gpuledger.errors import UnknownName

if TYPE_CHECKING:
    from gpuledger.plan.planners import Planner


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """An unknown command is answered with the nearest names."""
        if args[0] in self._modules() or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        if args[0] not in self._planners():
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return click.Group.resolve_command(self, ctx, args)


def _command(one: Planner) -> click.Command:
    """The click command of a registered planner."""
    from gpuledger.cli.options import screen_options
    from gpuledger.cli.screen import Screen
    from gpuledger.plain_text import json_text

    @click.command(one.name, help=one.summary)
    @screen_options
    def command(screen: Screen, **given: Any) -> None:
        figures = one.encoded(one.state(given))
        screen.answer(figures)
        screen.say(json_text(figures, indent=1))

    for option in reversed(one.options):
        flag = option.kind is bool
        name = option.name.replace("_", "-")
        command.params.insert(
            0,
            click.Option(
                [f"--{name}/--no-{name}" if flag else f"--{name}", option.name],
                type=None if flag else option.kind,
                default=option.default,
                show_default=option.default is not None,
                required=option.required,
                help=option.help,
            ),
        )
    return command


command = PlanCommandFolder(__name__, name="plan", help="Plan where a job should run and what it costs there.")
