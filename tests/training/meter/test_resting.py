"""Does a loop that is left alone now and then count the same, and is everything still found?"""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from test_on_events import OnEvents  # noqa: E402
from torch import nn  # noqa: E402

from gpuledger.training.meter import steps as meter_steps  # noqa: E402
from gpuledger.training.meter.device import Energy  # noqa: E402
from gpuledger.training.meter.meter import Meter  # noqa: E402
from gpuledger.training.meter.rest import MOST_MS, Own, Rests  # noqa: E402
from gpuledger.training.meter.steps import Steps  # noqa: E402
from gpuledger.training.meter.totals import SizeCache, batch_size  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)
REST = 7
HOUR_NS = 3600 * 10**9
OPTIMIZERS = importlib.import_module("torch.optim.optimizer")


@pytest.fixture
def clock(monkeypatch):
    """The time of day, moved by the test."""
    now = SimpleNamespace(ns=1000 * HOUR_NS)
    monkeypatch.setattr(meter_steps, "time_ns", lambda: now.ns)
    return now


@pytest.fixture
def rests(monkeypatch, clock):
    """After four steps, every row of four is followed by seven that are left alone, however fast the machine is."""
    monkeypatch.setattr(meter_steps, "FIRST_STEPS", 4)
    monkeypatch.setattr(meter_steps, "LEAST_TIMED", 1)
    monkeypatch.setattr(Rests, "rest_steps", lambda _rests, _step_s: REST)


@pytest.fixture
def never(monkeypatch, clock):
    monkeypatch.setattr(Rests, "rest_steps", lambda _rests, _step_s: 0)


def job():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train(model, optimizer, batches, each=lambda _index: None):
    for index, batch in enumerate(batches):
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        each(index)


def test_most_steps_are_left_alone_and_all_are_counted(rests):
    model, optimizer = job()
    meter = Meter(model)
    train(model, optimizer, meter([torch.ones(2, 4)] * 100))
    seen = meter.observed()
    meter.finish()
    assert (seen.steps, seen.updates, seen.samples_per_step) == (100, 100, 2)
    # Three of warm-up, a row without a break, then four of eleven: those at 15 to 18, 26 to 29 and so on.
    rows = range(meter.steps.warmup + 4 + 4 + REST - 3, 100, 4 + REST)
    assert 30 < seen.watched_steps < 45
    assert len(rows) <= seen.timed_steps < seen.watched_steps
    assert sum(s.steps for s in meter.steps.totals.spans(seen.work)) == 100
    assert any(f"{seen.watched_steps} of 97 steps after the first 3 were watched" in n for n in seen.notes)
    assert seen.own_ratio > 0


class Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 2)

    def forward(self, ids):
        return self.embed(ids)


def counted(shapes, each_update, kind):
    model = Ids()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter = Meter(model, count=False)
    batches = [torch.zeros(shape, dtype=torch.long) for shape in shapes]
    if kind == "loader":
        for i, ids in enumerate(meter(batches)):
            model(ids).sum().backward()
            if i % each_update == 0:
                optimizer.step()
    else:
        for i, ids in enumerate(batches):
            # Of some steps the batch is shown, of others only the forward pass shows it.
            with meter.step(ids if kind == "shown" or i % 3 else None):
                model(ids).sum().backward()
                if i % each_update == 0:
                    optimizer.step()
    seen = meter.observed()
    meter.finish()
    spans = meter.steps.totals.spans(seen.work)
    return seen.steps, seen.updates, spans, meter.steps.watched


@pytest.mark.parametrize("kind", ["loader", "shown", "partly"])
@settings(max_examples=10, deadline=None)
@given(
    shapes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=12, max_size=40),
    alike=st.integers(1, 4),
    each_update=st.integers(1, 3),
)
def test_steps_updates_tokens_and_samples_are_the_same(kind, shapes, alike, each_update):
    shapes = [shape for shape in shapes for _ in range(alike)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meter_steps, "time_ns", lambda: 1000 * HOUR_NS)
        patch.setattr(meter_steps, "FIRST_STEPS", 4)
        patch.setattr(meter_steps, "LEAST_TIMED", 1)
        found = []
        for rest in (0, REST):
            patch.setattr(Rests, "rest_steps", lambda _rests, _step_s, rest=rest: rest)
            found.append(counted(shapes, each_update, kind))
    (*plain, all_watched), (*rested, watched) = found
    assert plain == rested
    assert plain[2][0].tokens == sum(rows * columns for rows, columns in shapes)
    assert plain[2][0].samples == sum(rows for rows, _ in shapes)
    assert all_watched == len(shapes) - 3
    if kind != "partly":
        assert len(shapes) < 20 or watched < all_watched


@pytest.mark.parametrize("fixture", ["rests", "never"])
def test_each_step_belongs_to_the_hour_it_began_in(fixture, request, clock):
    request.getfixturevalue(fixture)
    model, optimizer = job()
    meter = Meter(model, count=False)

    def later(_index):
        clock.ns += HOUR_NS // 30

    train(model, optimizer, meter([torch.ones(2, 4)] * 100), later)
    spans = meter.steps.totals.spans(meter.observed().work)
    meter.finish()
    assert [s.steps for s in spans] == [30, 30, 30, 10]
    assert [s.end_ms - s.start_ms for s in spans] == [3600_000, 3600_000, 3600_000, 1200_000]


def test_a_pause_between_steps_is_no_part_of_them(rests, clock):
    model, optimizer = job()
    meter = Meter(model, count=False)
    for index in range(20):
        with meter.step(torch.ones(2, 4)):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            clock.ns += 10**6
        if index == 15:
            assert meter.steps.resting
            clock.ns += 3 * HOUR_NS
    spans = meter.steps.totals.spans(meter.observed().work)
    meter.finish()
    assert [s.steps for s in spans] == [16, 4]
    assert [s.end_ms - s.start_ms for s in spans] == [16, 4]


def test_no_rest_is_longer_than_a_few_seconds(rests, clock):
    model, optimizer = job()
    meter = Meter(model, count=False)

    def later(_index):
        clock.ns += MOST_MS * 10**6

    train(model, optimizer, meter([torch.ones(2, 4)] * 103), later)
    meter.finish()
    # Of each row of four and its rest only one step is left alone: the clock says that it is enough.
    assert meter.steps.watched >= 75


def test_a_wait_of_each_step_is_one_of_each_watched_step(rests):
    model, optimizer = job()
    meter = Meter(model)
    for batch in meter([torch.ones(2, 4)] * 100):
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        loss.item()
    (site,) = meter.observed().sites
    (found,) = [f for f in meter.report(show=False).findings if f.topic == "sync_points"]
    watched = meter.steps.watched
    meter.finish()
    assert site.times == watched < 60
    assert found.figures["waits_per_step"] == 1.0


def test_a_wait_that_appears_later_is_found(rests):
    model, optimizer = job()
    meter = Meter(model)
    for i, batch in enumerate(meter([torch.ones(2, 4)] * 100)):
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        if i >= 50:
            loss.item()
    (site,) = meter.observed().sites
    meter.finish()
    assert 15 <= site.times <= 25


def test_a_loss_that_is_no_number_is_found_and_the_words_are_true(rests):
    model, _ = job()
    meter = Meter(model)
    for i, batch in enumerate(meter([torch.ones(2, 4)] * 100)):
        (model(batch).sum() * (float("nan") if i >= 50 else 1.0)).backward()
    losses = meter.steps.losses
    (note,) = [n for n in meter.observed().notes if "not a number" in n]
    meter.finish()
    at, gap = losses.not_finite_at, losses.not_finite_gap
    assert at - gap <= 50 <= at
    assert at < 50 + 10 + REST + 4
    assert f"since step {at} or up to {gap} steps before it" in note


def on_events(own_us):
    fake = OnEvents()
    model, optimizer = job()
    place = SimpleNamespace(type="cuda")
    steps = Steps(fake, model, place, warmup=3, count=True, sizes=SizeCache(), energy=Energy(None))
    ticks = SimpleNamespace(s=0.0)

    def tick():
        ticks.s += own_us * 1e-6
        return ticks.s

    steps.own.clock = Own(tick).clock
    return fake.cuda, model, optimizer, steps


def step(cuda, model, optimizer, steps, ms):
    steps.begins("data_wait")
    cuda.clock_ms += 0.2 * ms
    steps.has_batch(torch.ones(2, 4))
    cuda.clock_ms += 0.1 * ms
    out = model(torch.ones(2, 4))
    cuda.clock_ms += 0.3 * ms
    out.sum().backward()
    cuda.clock_ms += 0.4 * ms
    optimizer.step()
    steps.ends()
    cuda.reached = max(0, cuda.recorded - 12)


def test_short_steps_are_left_alone_until_they_are_long_again(clock):
    cuda, model, optimizer, steps = on_events(own_us=5)
    steps.attach()
    for _ in range(1500):
        step(cuda, model, optimizer, steps, 3.0)
    short = steps.watched
    assert short < 300
    means = {p: round(1000 * s, 6) for p, s in steps.totals.mean(steps.totals.device_s).items()}
    assert means == {
        "data_wait": 0.6, "h2d": 0.3, "forward": 0.9, "backward": 0, "optimizer": 0, "sync": 0, "other": 1.2,
    }  # fmt: skip
    assert cuda.synchronized == 0
    for _ in range(3000):
        step(cuda, model, optimizer, steps, 100.0)
    assert not steps.resting
    before = steps.watched
    for _ in range(100):
        step(cuda, model, optimizer, steps, 100.0)
    assert steps.watched == before + 100
    steps.detach()
    steps.watch.close()
    steps.add_up()
    assert steps.totals.steps == steps.index == steps.hooks.updates == 4600


def test_long_steps_are_never_left_alone(clock):
    cuda, model, optimizer, steps = on_events(own_us=5)
    steps.attach()
    for _ in range(300):
        step(cuda, model, optimizer, steps, 40.0)
        assert not steps.resting
    steps.detach()
    steps.watch.close()
    assert steps.watched == 297
    assert steps.own_ratio > 0


def traces(model):
    return (
        len(model._forward_hooks), len(model._forward_pre_hooks), torch.autograd.backward,
        len(OPTIMIZERS._global_optimizer_pre_hooks), len(OPTIMIZERS._global_optimizer_post_hooks),
    )  # fmt: skip


def test_hooks_are_away_while_it_rests_and_after_it(rests):
    model, optimizer = job()
    before, item = traces(model), torch.Tensor.item
    meter = Meter(model)
    kinds = set()

    def look(_index):
        hooks, _, backward, pre, post = traces(model)
        kinds.add((meter.steps.resting, hooks - before[0], backward is before[2], pre - before[3], post - before[4]))

    train(model, optimizer, meter([torch.ones(2, 4)] * 60), look)
    assert meter.steps.resting, "it ends while it rests"
    assert kinds == {(False, 1, False, 1, 1), (True, 0, True, 0, 1)}
    assert traces(model) == before
    meter.finish()
    assert torch.Tensor.item is item


def test_epochs_go_on_where_the_last_one_ended(rests):
    model, optimizer = job()
    before = traces(model)
    meter, rested = Meter(model), []
    for _ in range(20):
        train(model, optimizer, meter([torch.ones(2, 4)] * 5), lambda _i: rested.append(meter.steps.resting))
        assert traces(model) == before
    seen = meter.observed()
    meter.finish()
    assert (seen.steps, seen.updates) == (100, 100)
    runs = "".join("r" if r else "w" for r in rested).strip("r").split("w")
    assert {len(run) for run in runs if run} == {REST}
    assert seen.watched_steps == rested.count(False) - 3


@pytest.mark.parametrize(("updated", "steps"), [(False, 15), (True, 16)])
def test_a_job_that_raises_in_a_step_that_is_left_alone(rests, updated, steps):
    model, optimizer = job()
    before = traces(model)
    meter = Meter(model, count=False)

    def loop():
        for i, batch in enumerate(meter([torch.ones(2, 4)] * 15 + [torch.ones(3, 4)] * 5)):
            model(batch).sum().backward()
            if i < 15 or updated:
                optimizer.step()
            if i == 15:
                assert meter.steps.resting
                raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"), meter:
        loop()
    seen = meter.report(show=False).seen
    (span,) = meter.steps.totals.spans(seen.work)
    assert (seen.steps, span.samples) == (steps, 30 + (3 if updated else 0))
    assert seen.state == "raised ValueError: boom"
    assert traces(model) == before


@pytest.mark.parametrize("odd_at", range(8, 40))
def test_a_rest_that_ends_early_counts_only_the_steps_it_left_alone(rests, odd_at):
    """A batch that does not show its size ends a rest: the model's input has to show it."""
    model, optimizer = job()
    meter, rested = Meter(model, count=False), 0
    for batch in meter([None if index == odd_at else torch.ones(2, 4) for index in range(40)]):
        model(torch.ones(2, 4) if batch is None else batch).sum().backward()
        optimizer.step()
        rested += meter.steps.resting
    assert meter.steps.rests._alone_steps == rested > 0
    meter.finish()


def test_a_loader_that_ends_once_is_not_asked_again(rests):
    model, optimizer = job()

    class Once:
        left = 16

        def __iter__(self):
            return self

        def __next__(self):
            assert self.left >= 0, "asked again after its end"
            self.left -= 1
            if self.left < 0:
                raise StopIteration
            return torch.ones(2, 4)

    meter = Meter(model)
    train(model, optimizer, meter(Once()))
    assert meter.steps.resting
    assert meter.observed().steps == 16
    meter.finish()


def test_two_meters_of_one_loop_both_count(rests):
    model, optimizer = job()
    before = traces(model)
    one, two = Meter(model, count=False), Meter(model, count=False, warmup=5)
    train(model, optimizer, one(two([torch.ones(2, 4)] * 100)))
    for meter in (one, two):
        seen = meter.observed()
        assert (seen.steps, seen.updates) == (100, 100)
        assert 25 < seen.watched_steps < 60
        assert seen.phases_s["backward"] > 0
    two.finish()
    one.finish()
    assert traces(model) == before


def test_who_wraps_the_backward_pass_meanwhile_keeps_his_own(rests):
    model, optimizer = job()
    original, calls = torch.autograd.backward, []
    meter, held = Meter(model), []

    def around(index):
        if index in (5, 16):  # while it is watched, and while it is left alone
            held.append(torch.autograd.backward)
            torch.autograd.backward = lambda *a, inner=held[-1], **k: (calls.append(1), inner(*a, **k))[1]
        if index in (12, 33):
            torch.autograd.backward = held.pop()

    train(model, optimizer, meter([torch.ones(2, 4)] * 60), around)
    seen = meter.observed()
    meter.finish()
    assert len(calls) == 7 + 17
    assert seen.updates == 60
    assert torch.autograd.backward is original


@pytest.mark.filterwarnings("ignore")  # torch warns while it compiles
def test_nothing_is_compiled_again(rests):
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    model, optimizer = job()

    @torch.compile(backend="eager")
    def loss_of(batch):
        loss = model(batch).sum()
        loss.item()  # the graph breaks here, and what follows is compiled apart
        return loss * 2

    meter, frames = Meter(model, count=False), []
    with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
        for batch in meter([torch.ones(2, 4)] * 60):
            loss_of(batch).backward()
            optimizer.step()
            frames.append(counters["frames"]["total"])
    meter.finish()
    assert meter.steps.watched < 40
    assert frames[2] == frames[-1] > 0


def test_a_compiled_model_keeps_its_hooks(rests):
    model, optimizer = job()
    fast = torch.compile(model, backend="eager")
    meter, hooks = Meter(fast), set()

    def look(_index):
        hooks.add((meter.steps.resting, len(fast._forward_hooks)))

    train(fast, optimizer, meter([torch.ones(2, 4)] * 40), look)
    seen = meter.observed()
    meter.finish()
    assert hooks == {(False, 1), (True, 1)}
    assert (seen.steps, seen.updates) == (40, 40)


@given(st.lists(st.sampled_from(range(8)), max_size=30))
def test_sizes_are_remembered_right(order):
    ids, rows = torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3)
    kinds = (
        ids, rows, (rows, ids), [ids, rows], {"input_ids": ids}, {"pixels": rows}, torch.zeros(4, 3, dtype=torch.long),
        "words",
    )  # fmt: skip
    cache = SizeCache()
    for number in order:
        assert cache.of(kinds[number]) == batch_size(kinds[number])
