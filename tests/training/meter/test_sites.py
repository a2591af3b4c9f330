"""Is what watches torch's waiting calls put in place once, seen by every watch, and gone with the last of them?"""

from __future__ import annotations

import functools
import gc
import inspect
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from gpuledger.training.meter import sites as meter_sites  # noqa: E402
from gpuledger.training.meter.rest import Own  # noqa: E402
from gpuledger.training.meter.sites import SyncWatch, waiting_calls  # noqa: E402

pytestmark = pytest.mark.torch
MANY = 300


def watch(phase="forward", told=None):
    made = SyncWatch(torch, Own(), False, lambda: phase, (told if told is not None else []).append)
    made.start()
    return made


def held():
    """What torch holds of its own: names that a class of torch's above torch.Tensor holds are not among them."""
    return {n: vars(torch.Tensor).get(n) for n in waiting_calls().tensor} | {"synchronize": torch.cuda.synchronize}


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """Each test leaves torch as it found it; meters of other tests that are still there are no part of it."""
    gc.collect()
    monkeypatch.setattr(meter_sites, "_AROUND", meter_sites._Around())
    before = held()
    yield before
    gc.collect()
    assert held() == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_to_end_takes_it_away(as_it_was, order):
    both = watch(), watch()
    both[order[0]].close()
    assert held() != as_it_was, "the other still watches"
    torch.ones(()).item()
    both[order[1]].close()
    assert held() == as_it_was
    assert [len(w.sites.all()) for w in both] == [i != order[0] for i in (0, 1)]


def test_many_that_are_dropped_leave_nothing(as_it_was):
    for _ in range(MANY):
        watch()
    dropped = watch()
    dropped.itself = dropped  # a meter holds itself in a circle: only the collector finds it
    del dropped
    gc.collect()
    assert held() == as_it_was


def test_many_that_are_held_see_one_wait_each_and_none_deep():
    watches = [watch() for _ in range(MANY)]
    off, elsewhere = watches[:10], watch(phase="optimizer")
    for one in off:
        one.stop()
    depth, limit = len(inspect.stack(0)), sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 40)
    try:
        assert torch.ones(()).item() == 1.0
    finally:
        sys.setrecursionlimit(limit)
    assert [sum(s.times for s in w.sites.all()) for w in watches] == [0] * 10 + [1] * (MANY - 10)
    assert not elsewhere.sites.all()
    for one in (*watches, elsewhere):
        one.close()


def test_the_line_is_the_users():
    first, second = watch(), watch()
    line = inspect.currentframe().f_lineno + 1
    torch.ones(()).item()
    for one in (first, second):
        (site,) = one.sites.all()
        assert (site.file, site.line, site.call, site.times) == (__file__, line, ".item()", 1)
        one.close()


def test_a_wait_is_told_before_and_after_also_when_it_fails():
    told = []
    one = watch(told=told)
    with pytest.raises(RuntimeError):
        torch.ones(2).item()
    assert told == [True, False]
    assert not one.inside
    one.close()


def test_a_call_within_a_wait_is_not_another():
    one = watch()
    one._on_wait = lambda begins: torch.ones(()).item()
    torch.ones(()).item()
    assert [s.times for s in one.sites.all()] == [1]
    one.close()


def test_stop_leaves_it_in_place_and_close_may_be_followed_by_start(as_it_was):
    one = watch()
    placed = held()
    one.stop()
    torch.ones(()).item()
    assert held() == placed
    assert not one.sites.all()
    one.close()
    one.close()
    assert held() == as_it_was
    one.start()
    torch.ones(()).item()
    assert len(one.sites.all()) == 1
    one.close()


kept_by_name = None


def by_name(self):
    """A common way to put oneself around: what was there is kept beside it."""
    return kept_by_name(self)


def says(inner):
    kept = [inner]  # only what it says leads there

    @functools.wraps(inner)
    def item(self):
        return kept[0](self)

    return item


def closes_over(inner):
    def item(self):
        return inner(self)

    return item


def names(inner):
    global kept_by_name  # noqa: PLW0603
    kept_by_name = inner
    return by_name


@pytest.mark.parametrize("around", [says, closes_over, names])
def test_what_somebody_put_around_stays_and_ours_is_used_again(around):
    one = watch()
    ours = torch.Tensor.item
    theirs = torch.Tensor.item = around(ours)
    try:
        one.close()
        assert torch.Tensor.item is theirs
        torch.ones(()).item()
        assert not one.sites.all(), "ours is silent"
        again = watch()
        assert torch.Tensor.item is theirs, "ours is inside: no second one"
        torch.ones(()).item()
        assert [s.times for s in again.sites.all()] == [1]
        again.close()
        assert torch.Tensor.item is theirs
    finally:
        torch.Tensor.item = ours
    watch().close()  # ours is outermost again, and goes with the last


def test_where_it_cannot_be_seen_that_ours_is_inside_a_wait_is_still_one(as_it_was):
    one = watch()
    ours = torch.Tensor.item
    kept = [ours]

    def theirs(self):
        return kept[0](self)

    torch.Tensor.item = theirs
    one.close()
    for _ in range(3):
        again = watch()
        torch.ones(()).item()
        assert [s.times for s in again.sites.all()] == [1]
        again.close()
        assert torch.Tensor.item is theirs
    torch.Tensor.item = ours
    watch().close()
    assert held() == as_it_was


def test_one_that_was_thrown_off_comes_back_with_the_next(as_it_was):
    before = vars(torch.Tensor).get("item")
    one = watch()
    del torch.Tensor.item
    if before is not None:
        torch.Tensor.item = before
    another = watch()
    torch.ones(()).item()
    assert [len(w.sites.all()) for w in (one, another)] == [1, 1]
    one.close()
    another.close()
    assert held() == as_it_was


def test_watches_of_several_threads_leave_nothing(as_it_was):
    def job(_):
        for _ in range(50):
            one = watch()
            torch.ones(()).item()
            one.close()
            watch()  # and one that is dropped

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(job, range(4)))
    assert held() == as_it_was
