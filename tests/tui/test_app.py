"""Does the terminal view show the GPUs, and do its keys and the mouse do what they say?"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest
from textual.events import Key
from textual.widgets import DataTable, Input
from textual.worker import WorkerCancelled

from cost.fleets import POWER, UTIL, lake_of, mig, samples
from gpuledger.advice.asking import paying
from gpuledger.devices.replay.faults import LostGpu
from gpuledger.errors import LakeError
from gpuledger.tui.app import Top
from gpuledger.tui.lake_view import LakeView
from gpuledger.tui.sources import History
from screens import GIB, boards, compare, play_on, settle, shown


def watch(source, steps, size=(80, 24), **how) -> None:
    """Run the view and do some steps in it."""

    async def run() -> None:
        app = Top(source, None, **how)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await steps(app, pilot)

    asyncio.run(run())


def order(app) -> str:
    """The GPUs from top to bottom, by index."""
    return "".join(str(row.key.value)[4] for row in app.query_one(DataTable).ordered_rows)


@pytest.mark.parametrize("width", [80, 160])
def test_the_table(node, width):
    async def steps(app, _pilot):
        text = shown(app)
        assert max(map(len, text.splitlines())) <= width
        compare(f"table-{width}", text)

    watch(node, steps, size=(width, 14))


@pytest.mark.parametrize(("key", "name"), [("h", "history"), ("p", "processes"), ("question_mark", "help")])
def test_dialogs(node, key, name):
    async def steps(app, pilot):
        await pilot.press("s", "s", "up", "up", key)
        await settle(pilot)
        compare(name, shown(app))
        await pilot.press("escape")
        await settle(pilot)
        assert "REAL%" in shown(app)

    node.look()
    watch(node, steps, size=(80, 30))


def test_sorting_by_key_and_by_a_click_on_a_header(node):
    async def steps(app, pilot):
        assert order(app)[:2] == "34"  # by waste
        await pilot.press("s", "s")
        assert order(app) == "01234"  # by utilization
        await pilot.click(DataTable, offset=(1, 0))
        await settle(pilot)
        assert order(app) == "01234"  # by name
        assert "sorted by name" in shown(app)
        await pilot.click(DataTable, offset=(19, 0))
        await settle(pilot)
        assert "sorted by power" in shown(app)

    watch(node, steps)


def test_a_filter_while_it_is_typed_kept_and_cleared(node):
    async def steps(app, pilot):
        await pilot.press("slash", *"llama")
        await settle(pilot)
        assert order(app) == "20"
        assert "2 of 5 GPUs" in shown(app)
        await pilot.press("enter")
        assert not app.query_one(Input).display
        assert "filter: llama" in shown(app)
        await pilot.press("slash", *" xyz")
        await settle(pilot)
        compare("no-match", shown(app))
        await pilot.press("escape")
        await settle(pilot)
        assert len(order(app)) == 5

    watch(node, steps)


def test_a_letter_in_the_filter_is_not_a_command(node):
    async def steps(app, pilot):
        await pilot.press("slash", "q", "s", "h")
        await settle(pilot)
        assert app.query_one(Input).value == "qsh"
        assert "sorted by waste" in shown(app)

    watch(node, steps)


def test_keys_that_come_together_belong_to_the_filter(node):
    """As over a slow connection, where several keys come in one packet."""

    async def steps(app, pilot):
        for name, letter in (("slash", "/"), ("h", "h"), ("2", "2"), ("q", "q")):
            app.post_message(Key(name, letter))
        await settle(pilot)
        assert app.query_one(Input).value == "h2q"
        assert "filter: h2q" in shown(app)

    watch(node, steps)


def test_a_click_selects_a_gpu_and_a_second_one_opens_its_history(node):
    async def steps(app, pilot):
        await pilot.click(DataTable, offset=(3, 2))
        await settle(pilot)
        assert app.query_one(DataTable).cursor_row == 1
        await pilot.click(DataTable, offset=(3, 2))
        await settle(pilot)
        assert "╭─ node-1/4" in shown(app)

    watch(node, steps)


def test_a_new_look_keeps_the_cursor_and_renews_an_open_history(own_node):
    async def steps(app, pilot):
        await pilot.press("down", "down", "r")
        await settle(pilot)
        table = app.query_one(DataTable)
        assert table.cursor_row == 2
        await pilot.press("h")
        await settle(pilot)
        before = shown(app)
        play_on(own_node, 20)
        app.action_look()
        await settle(pilot)
        assert "the last 20 s" in shown(app)
        assert shown(app) != before

    watch(own_node, steps)


def test_a_lost_gpu_stays_in_the_table(live):
    source = live(boards("matrix", "idle"), faults=[LostGpu(gpu=1, at_s=5)])

    async def steps(app, pilot):
        compare("lost", shown(app))
        await pilot.press("down", "h")
        await settle(pilot)
        assert "the GPU was lost" in shown(app)

    watch(source, steps)


def test_before_the_first_reading(live):
    async def steps(app, _pilot):
        compare("reading", shown(app))

    watch(live(boards("idle"), seconds=0), steps)


def test_gpus_without_counters_or_a_price_are_unknown_not_zero(live):
    found = [replace(b, gpm=False, model="Model X") for b in boards("matrix")]

    async def steps(app, pilot):
        compare("unknown", shown(app))
        await pilot.press("h")
        await settle(pilot)
        assert "realized  unknown:" in shown(app)
        assert "price     unknown:" in shown(app)

    watch(live(found, price=None), steps)


class Broken:
    """A source that shows a fleet once, then only a problem."""

    name = "lake"

    def __init__(self, fleet=None):
        self._fleet = fleet

    def changed(self):
        return True

    def look(self):
        found, self._fleet = self._fleet, None
        if found is None:
            raise LakeError("lake: no lake was found here", hint="import telemetry first: gpuledger import FILE")
        return found

    def history(self, device):
        return History(device, hourly=True, points=())


def test_a_problem_says_what_to_do_next():
    async def steps(app, _pilot):
        compare("problem", shown(app))

    watch(Broken(), steps)


def test_a_problem_later_leaves_the_table(node):
    async def steps(app, pilot):
        await pilot.press("r")
        await settle(pilot)
        assert "no lake was found here" in shown(app)
        assert len(order(app)) == 5

    watch(Broken(node.look()), steps)


def test_a_bug_ends_the_view_and_is_handed_on():
    class Buggy(Broken):
        def look(self):
            raise ZeroDivisionError("a bug")

    async def run() -> Top:
        app = Top(Buggy(), None)
        async with app.run_test() as pilot:
            with suppress(WorkerCancelled):  # the view ends on its own
                await settle(pilot)
        return app

    assert isinstance(asyncio.run(run()).failure, ZeroDivisionError)


def test_looks_come_by_themselves(own_node):
    async def run() -> None:
        app = Top(own_node, 0.05)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            first = shown(app).splitlines()[0]
            play_on(own_node, 5)
            for _ in range(100):
                await pilot.pause(0.05)
                if shown(app).splitlines()[0] != first:
                    return
            raise AssertionError("no second look")

    asyncio.run(run())


def test_labels_do_nothing_in_the_terminal(live):
    found = [replace(boards("matrix")[0], pids={4003: GIB})]

    async def steps(app, pilot):
        assert "\x1b" not in shown(app)
        await pilot.press("p")
        await settle(pilot)
        assert "ev\\x1b[2Jil" in shown(app)

    watch(live(found), steps)


def test_the_part_of_a_board_outside_its_slices_says_why_its_history_is_unknown(tmp_path):
    rows = [row for s in "12" for row in samples(range(60), "GPU-m", **mig(s, "2g.20gb"), **{UTIL: 90, POWER: 300})]
    lake = lake_of(tmp_path, rows)
    source = LakeView(lake.root, paying(lake.root, price=Decimal(2)))

    async def steps(app, pilot):
        assert "GPU-m rest" in shown(app)
        await pilot.press("down", "down", "h")
        await settle(pilot)
        text = " ".join(shown(app).split())
        assert "GPU-m rest" in text
        assert "history unknown: 43 % of the board is in none of its 2 MIG slices" in text
        assert "no GPU is called" not in text
        assert text.count("in none of its 2 MIG slices") == 2  # the history, and the first fact

    watch(source, steps)
