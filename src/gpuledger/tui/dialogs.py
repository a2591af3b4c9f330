"""What opens over the table: the history of a GPU, its processes, the keys?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from gpuledger.plain_text import visible
from gpuledger.tui.columns import fitted
from gpuledger.tui.drawing import charts, facts
from gpuledger.tui.fleet import GpuNow
from gpuledger.tui.sources import History
from gpuledger.units import GIB, Unknown, count

_CLOSE = "Esc: close"
KEYS = (
    ("up down, click", "select a GPU"),
    ("h, enter, click", "history of the selected GPU: charts and facts"),
    ("p", "processes on the selected GPU"),
    ("s, click a header", "sort by waste, cost, util, realized, power, memory, name, state, owner"),
    ("/", "filter by words in GPU, model, state, owner or process; Esc clears it"),
    ("r", "refresh now"),
    ("q", "quit"),
)
_STATES = (
    "what limits it: matrix, vector, memory, capped (power limit); light, waiting, idle; held: idle with memory in "
    "use; busy: works, but no pipe is recorded"
)
COLUMNS = (
    ("UTIL%", "utilization as the driver reports it"),
    ("REAL%", "realized share of the dense peak, by the pipe counters"),
    ("MEM", "memory in use and on the board, in GiB"),
    ("STATE", _STATES),
    ("$/H", "cost per hour; the bottom line names the price"),
    ("WASTE", "the part spent on stalled, underused and idle time; +: some time cannot be rated"),
    ("?", "unknown; h shows why"),
)


class Dialog(ModalScreen[None]):
    """A box over the table that Esc, its own key or a click outside closes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q,h,p,question_mark", "app.pop_screen", "Close"),
    ]
    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > VerticalScroll {
        width: 100%; max-width: 120; height: auto; max-height: 100%; padding: 0 1;
        border: round $primary; background: $surface; scrollbar-gutter: stable;
    }
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        """One scrolling box."""
        with VerticalScroll() as box:
            box.border_title, box.border_subtitle = visible(self._title), _CLOSE
            yield Static(id="body")

    def on_mount(self) -> None:
        """Draw once the size is known."""
        self.call_after_refresh(self.draw)

    def on_resize(self) -> None:
        """Draw again: lines are as wide as the box."""
        self.call_after_refresh(self.draw)

    def on_click(self, event: object) -> None:
        """A click outside of the box closes it."""
        if getattr(event, "widget", None) is self:
            self.dismiss()

    def draw(self) -> None:
        """Fill the box."""
        body = self.query_one("#body", Static)
        body.update(self.text(max(30, body.size.width)))

    def text(self, width: int) -> Text:
        """What is in the box."""
        raise NotImplementedError


class HistoryDialog(Dialog):
    """One GPU: charts and facts. The app gives it every new look."""

    def __init__(self, gpu: GpuNow) -> None:
        super().__init__(gpu.name)
        self.gpu = gpu
        self._history: History | Unknown | None = None

    def renew(self, gpu: GpuNow, history: History | Unknown) -> None:
        """Show a newer look."""
        self.gpu, self._history = gpu, history
        if self.is_mounted and self.is_attached:
            self.draw()

    def text(self, width: int) -> Text:
        """Charts first, facts below."""
        if self._history is None:
            out = Text("reading the history ...", "dim")
        elif isinstance(self._history, Unknown):
            out = Text(f"history unknown: {visible(self._history.why)}", "dim")
        else:
            out = Text("\n".join(charts(self._history, self.gpu.limit_w, width)))
        return out.append("\n\n").append_text(_pairs(list(facts(self.gpu)), width))


class ProcessDialog(Dialog):
    """The processes on one GPU."""

    def __init__(self, gpu: GpuNow) -> None:
        super().__init__(f"processes on {gpu.name}")
        self._gpu = gpu

    def text(self, width: int) -> Text:
        """One line each."""
        found = self._gpu.processes
        if isinstance(found, Unknown):
            return Text(f"unknown: {visible(found.why)}")
        if not found:
            return Text("no process holds this GPU")
        out = Text(f"{'PID':>8} {'MEMORY':>8} {'USER':<12} PROGRAM\n", "bold")
        for running in found:
            memory = "?" if isinstance(running.memory_bytes, Unknown) else f"{running.memory_bytes / GIB:.1f}G"
            user, program = (_word(w, n) for w, n in ((running.user, 12), (running.program, width - 32)))
            out.append(f"{running.pid:>8} {memory:>8} {user:<12} {program}\n")
        out.append(f"{count(len(found), 'process', 'processes')}; memory is the most each held since the start", "dim")
        return out


class HelpDialog(Dialog):
    """Keys and columns."""

    def __init__(self) -> None:
        super().__init__("gpuledger top")

    def text(self, width: int) -> Text:
        """Two lists."""
        return _pairs(KEYS, width).append("\n").append_text(_pairs(COLUMNS, width))


def _word(value: str | Unknown, width: int) -> str:
    return "not visible from here" if isinstance(value, Unknown) else fitted(value, width)


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> Text:
    """Names and what they mean, the latter wrapped under itself."""
    wide = max(len(name) for name, _ in pairs) + 2
    out = Text()
    for name, words in pairs:
        lines = textwrap.wrap(visible(words), max(20, width - wide), break_on_hyphens=False) or [""]
        out.append(f"{name:<{wide}}", "bold")
        out.append(f"\n{' ' * wide}".join(lines) + "\n")
    return out
