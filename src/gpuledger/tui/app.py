"""How are the GPUs watched in a terminal: sorted, filtered, one of them more closely?"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.events import Key
from textual.widgets import DataTable, Footer, Input, Static
from textual.widgets.data_table import ColumnKey

from gpuledger.errors import GpuledgerError, map_os_error
from gpuledger.plain_text import visible
from gpuledger.tui.columns import Column, columns_for
from gpuledger.tui.dialogs import Dialog, HelpDialog, HistoryDialog, ProcessDialog
from gpuledger.tui.drawing import cells, head, nothing, price_line, titles
from gpuledger.tui.fleet import Fleet, GpuNow
from gpuledger.tui.orders import SORTS, Sort, ordered
from gpuledger.tui.sources import History, Source
from gpuledger.units import Unknown

Row = tuple[str, list[Text]]
_SCROLLBAR = 2
MOST_ROWS = 1000  # of a large fleet; a filter finds the others


class Top(App[None]):
    """The table of GPUs. `every_s`: seconds between looks; None: only when asked for."""

    TITLE = "gpuledger top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("s", "sort", "Sort"),
        ("slash", "filter", "Filter"),
        ("h", "history", "History"),
        ("p", "processes", "Processes"),
        Binding("r", "look", "Refresh", show=False),
        Binding("escape", "clear", "Clear the filter", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        ("q", "quit", "Quit"),
    ]
    CSS = """
    #head { height: 2; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #table { height: 1fr; padding: 0 1; }
    #message { height: 1fr; content-align: center middle; text-align: center; padding: 0 4; display: none; }
    #bottom { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    #filter { height: 1; border: none; padding: 0 1; display: none; }
    """

    def __init__(self, source: Source, every_s: float | None = 2.0, sort: Sort = "waste", text: str = "") -> None:
        super().__init__()
        self._source, self._every_s = source, every_s
        self._sort, self._text = sort, text
        self._fleet: Fleet | None = None
        self._problem: GpuledgerError | None = None
        self.failure: Exception | None = None
        self._looking = False
        self._shown: tuple[Column, ...] = ()

    def compose(self) -> ComposeResult:
        """Totals, the table, prices, keys."""
        yield Static(id="head")
        yield DataTable(id="table", cursor_type="row", cell_padding=0, zebra_stripes=False)
        yield Static(id="message")
        yield Static(id="bottom")
        yield Input(id="filter", placeholder="words in GPU, model, state, owner or process", compact=True)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Look at once, then every few seconds."""
        self.query_one(DataTable).focus()
        self._draw()
        self.action_look()
        if self._every_s is not None:
            self.set_interval(self._every_s, self._look_if_changed)

    # -- looks

    def _look_if_changed(self) -> None:
        if self._source.changed():
            self.action_look()

    def action_look(self) -> None:
        """Look now; a look that takes long is not started twice."""
        if not self._looking:
            self._looking = True
            self.run_worker(self._look, thread=True, group="look")

    def _look(self) -> None:
        """In a thread: a look takes a tenth of a second and more."""
        found: Fleet | GpuledgerError
        try:
            found = self._source.look()
        except GpuledgerError as error:
            found = error
        except OSError as error:
            found = map_os_error(error, self._source.name, "look at")
        except Exception as error:  # noqa: BLE001 - a bug: the caller reports it once the terminal is its own again
            self.failure = error
            self.call_from_thread(self.exit)
            return
        if self.is_running:
            self.call_from_thread(self._take, found)

    def _take(self, found: Fleet | GpuledgerError) -> None:
        self._looking = False
        if isinstance(found, Fleet):
            self._fleet, self._problem = found, None
        else:
            self._problem = found
        self._draw()
        self._renew_dialog()

    # -- drawing

    def on_resize(self) -> None:
        """Other columns may fit."""
        self._draw()

    def _draw(self) -> None:
        base, fleet = self.screen_stack[0], self._fleet
        found = [] if fleet is None else ordered(fleet.gpus, self._sort, self._text)
        message, table = base.query_one("#message", Static), base.query_one(DataTable)
        message.display, table.display = not found, bool(found)
        if fleet is None:
            words = "Reading the GPUs ..." if self._problem is None else _words(self._problem, "\n\n")
            message.update(Text(words))
            return
        base.query_one("#head", Static).update(head(fleet, found))
        base.query_one("#bottom", Static).update(self._bottom(fleet, len(found)))
        message.update(Text(f"{nothing(fleet, self._text)}\n\n{'Esc clears the filter' if fleet.gpus else ''}"))
        self._fill(table, fleet, found)

    def _bottom(self, fleet: Fleet, found: int) -> Text:
        """The problem of the last look, else the order, the filter and the prices."""
        if self._problem is not None:
            return Text(_words(self._problem, " - "), "bold red")
        said = [f"sorted by {self._sort}", *([f"filter: {visible(self._text)}"] if self._text else [])]
        said += [f"the first {MOST_ROWS:,} of {found:,} GPUs are shown"] if found > MOST_ROWS else []
        said += [price_line(fleet.prices), *map(visible, fleet.notes)]
        return Text("; ".join(words for words in said if words))

    def _fill(self, table: DataTable[Text], fleet: Fleet, found: list[GpuNow]) -> None:
        """Rows and columns; where both stay, only cells change, so that nothing moves under the mouse."""
        columns = columns_for(self.size.width - 2 - _SCROLLBAR, fleet.gpus)
        rows = [(gpu.device, cells(gpu, columns)) for gpu in found[:MOST_ROWS]]
        places = [row.key.value for row in table.ordered_rows]
        if columns == self._shown and places == [device for device, _ in rows]:
            for row, (_, texts) in enumerate(rows):
                for place, text in enumerate(texts):
                    table.update_cell_at(Coordinate(row, place), text)
        else:
            self._fill_anew(table, columns, rows)
        for column, title in zip(columns, titles(columns), strict=True):
            style = "bold reverse" if column.sort == self._sort else "bold"
            table.columns[ColumnKey(column.title)].label = Text.assemble((title, style), " ")
        self._shown = columns

    def _fill_anew(
        self, table: DataTable[Text], columns: tuple[Column, ...], rows: list[tuple[str, list[Text]]]
    ) -> None:
        chosen, top = self._chosen_device(table), table.scroll_y
        table.clear(columns=columns != self._shown)
        if not table.columns:
            for column in columns:
                table.add_column(column.title, width=column.width + 1, key=column.title)
        for device, texts in rows:
            table.add_row(*texts, key=device)
        places = {device: row for row, (device, _) in enumerate(rows)}
        table.move_cursor(row=places.get(chosen or "", 0), animate=False, scroll=False)
        table.scroll_to(y=top, animate=False)

    # -- choosing

    @staticmethod
    def _chosen_device(table: DataTable[Text]) -> str | None:
        if not table.row_count or not table.is_valid_row_index(table.cursor_row):
            return None
        return table.ordered_rows[table.cursor_row].key.value

    def _chosen(self) -> GpuNow | None:
        """The GPU under the cursor."""
        device = self._chosen_device(self.screen_stack[0].query_one(DataTable))
        return None if self._fleet is None else next((g for g in self._fleet.gpus if g.device == device), None)

    def action_sort(self) -> None:
        """By the next figure."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self._draw()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """By the column whose head was clicked."""
        column = next((c for c in self._shown if c.title == event.column_key.value), None)
        if column is not None and column.sort is not None:
            self._sort = column.sort
            self._draw()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """Enter, or a click on a GPU."""
        self.action_history()

    # -- the filter

    def action_filter(self) -> None:
        """Type words; the table follows."""
        box = self.query_one(Input)
        box.display = True
        box.value = self._text
        self.screen.set_focus(box)  # at once, for the keys that come next

    def on_key(self, event: Key) -> None:
        """Keys that came in one packet with the one that opens the filter went to the table: they are of the filter."""
        box = self.screen_stack[0].query_one(Input)
        if self.focused is box and event.character and event.is_printable:
            box.insert_text_at_cursor(event.character)
            event.prevent_default()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        self._text = event.value
        self._draw()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Keep the filter and go back to the table."""
        self.query_one(Input).display = False
        self.screen.set_focus(self.query_one(DataTable))

    def action_clear(self) -> None:
        """Without the filter."""
        box = self.query_one(Input)
        box.value = self._text = ""
        box.display = False
        self.screen.set_focus(self.query_one(DataTable))
        self._draw()

    # -- dialogs

    def action_history(self) -> None:
        """The GPU under the cursor more closely."""
        if not isinstance(self.screen, Dialog) and (gpu := self._chosen()) is not None:
            dialog = HistoryDialog(gpu)
            self.push_screen(dialog)
            self._load_history(dialog, gpu)

    def _load_history(self, dialog: HistoryDialog, gpu: GpuNow) -> None:
        """In a thread: of a large lake it takes a while."""

        def load() -> None:
            history: History | Unknown
            try:
                if gpu.state == "no data" and isinstance(gpu.util_pct, Unknown):
                    history = gpu.util_pct
                else:
                    history = self._source.history(gpu.device)
            except GpuledgerError as error:
                history = Unknown(error.message)
            if self.is_running:
                self.call_from_thread(dialog.renew, gpu, history)

        self.run_worker(load, thread=True, group="history")

    def _renew_dialog(self) -> None:
        """A newer look at the GPU whose history is open."""
        if isinstance(self.screen, HistoryDialog) and self._fleet is not None:
            device = self.screen.gpu.device
            gpu = next((g for g in self._fleet.gpus if g.device == device), self.screen.gpu)
            self._load_history(self.screen, gpu)

    def action_processes(self) -> None:
        """Who runs on the GPU under the cursor."""
        if not isinstance(self.screen, Dialog) and (gpu := self._chosen()) is not None:
            self.push_screen(ProcessDialog(gpu))

    def action_help(self) -> None:
        """Keys and columns."""
        if not isinstance(self.screen, Dialog):
            self.push_screen(HelpDialog())


def _words(error: GpuledgerError, between: str) -> str:
    return visible(error.message) + (f"{between}next: {visible(error.hint)}" if error.hint else "")
