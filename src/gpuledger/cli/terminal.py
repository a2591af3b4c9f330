"""How does text reach the terminal so that nothing in a label controls it?"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from gpuledger.plain_text import visible


class Terminal(Console):
    """A console that writes control characters out, also in text that was not escaped."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, emoji=False, **settings)

    def on_broken_pipe(self) -> None:
        """Left to the caller: rich would end the program with 1, which means something else here."""
        raise BrokenPipeError

    def render_str(self, text: str, **settings: Any) -> Text:
        """A string with markup, its own line feeds kept."""
        return super().render_str(visible(text, lines=True), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Any part; text made without markup is checked here."""
        if isinstance(renderable, Text):
            shown = visible(renderable.plain, lines=True)
            renderable = renderable if shown == renderable.plain else renderable.blank_copy(shown)
        return super().render(renderable, options)


def as_text(parts: Iterable[RenderableType], width: int = 100) -> str:
    """What a terminal of that width shows, as plain text for a caller in Python."""
    out = io.StringIO()
    console = Terminal(file=out, width=width, color_system=None, force_terminal=False)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
