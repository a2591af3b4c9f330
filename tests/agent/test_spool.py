"""Does the spool stay within its bound, and is everything that goes counted?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spools import MIN, START, keys, record, sealed_minutes, spool_at

from gpuledger.agent.notes import MOST_LOSSES, Loss, Why, with_loss
from gpuledger.agent.spool import State
from gpuledger.errors import InputError, LakeError
from gpuledger.units import MS_PER_DAY, size_bytes


def test_sealing_moves_rows_into_one_batch_a_day_oldest_first(tmp_path):
    spool = spool_at(tmp_path)
    record(spool, START - 30_000)  # half a minute on either side of midnight
    spool.seal()
    record(spool, START + MIN)
    spool.seal()
    found = [(b.day, b.rows) for b in spool.batches()]
    assert found == [("2026-01-19", 60), ("2026-01-20", 60), ("2026-01-20", 120)]
    assert spool.live.manifest().parts == ()
    assert not list(spool.live.root.glob("samples/**/*.parquet"))


def test_a_clock_set_back_keeps_the_order_of_recording(tmp_path):
    spool = spool_at(tmp_path)
    record(spool, START + MS_PER_DAY)
    spool.seal()
    record(spool, START + 1)  # set back by a day
    spool.seal()
    assert [b.day for b in spool.batches()] == ["2026-01-21", "2026-01-20"]


def test_the_oldest_go_first_and_are_counted(tmp_path):
    spool = spool_at(tmp_path)
    sealed_minutes(spool, 5)
    batches = spool.batches()
    spool.most = spool.size_bytes() - 1
    assert [loss.rows for loss in spool.keep_within()] == [120]
    assert spool.batches() == batches[1:]
    spool.most = spool.size_bytes() - batches[1].file.stat().st_size - 1
    spool.keep_within()
    assert spool.batches() == batches[3:]
    (loss,) = spool.state().losses
    assert loss == Loss(Why.SPOOL_FULL, 3 * 120, START, START + 3 * MIN - 1000)
    assert spool.size_bytes() <= spool.most + 4096  # state.json itself has grown
    assert spool.keep_within() == ()


def test_a_batch_under_way_is_not_dropped(tmp_path):
    spool = spool_at(tmp_path, most=1)
    sealed_minutes(spool, 2)
    first, second = spool.batches()
    spool.in_flight = frozenset({first.file})
    spool.keep_within()
    assert spool.batches() == [first]
    assert spool.state().losses[0].first_ms == second.first_ms


def test_killed_between_counting_and_deleting_nothing_is_counted_twice(tmp_path, monkeypatch):
    spool = spool_at(tmp_path)
    sealed_minutes(spool, 2)
    with monkeypatch.context() as broken:
        broken.setattr("gpuledger.agent.spool.Spool._finish_going", lambda _self: None)
        spool.lose(spool.batches()[:1], Why.SPOOL_FULL)
    assert len(spool.batches()) == 2
    again = spool_at(tmp_path)
    assert len(again.batches()) == 1
    assert sum(loss.rows for loss in again.state().losses) == 120


def test_killed_between_linking_and_committing_the_rows_are_sealed_again(tmp_path, monkeypatch):
    spool = spool_at(tmp_path)
    record(spool, START)
    before = keys(spool.live)
    with monkeypatch.context() as broken:
        broken.setattr("gpuledger.lake.layout.Lake.commit", lambda *_a, **_k: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            spool.seal()
    assert keys(spool.live) == before
    assert len(spool.batches()) == 1
    spool_at(tmp_path).seal()
    assert [b.rows for b in spool.batches()] == [120]


def test_one_agent_per_spool(tmp_path):
    spool = spool_at(tmp_path)
    with spool.owned(), pytest.raises(InputError, match="another agent"), spool_at(tmp_path).owned():
        pass
    with spool_at(tmp_path).owned():
        pass


def test_a_state_of_a_newer_version_is_refused(tmp_path):
    spool = spool_at(tmp_path)
    spool.change(lambda _state: State(version=99))
    with pytest.raises(LakeError, match="newer"):
        spool.state()


LOSSES = st.builds(
    Loss, st.sampled_from(Why), st.integers(1, 10**6), st.integers(0, 10**12), st.integers(10**12, 2 * 10**12)
)


@given(st.lists(LOSSES, max_size=200))
def test_however_many_losses_rows_add_up_by_reason_and_few_are_kept(losses):
    kept: tuple[Loss, ...] = ()
    for loss in losses:
        kept = with_loss(kept, loss)
    for why in Why:
        assert sum(k.rows for k in kept if k.why is why) == sum(n.rows for n in losses if n.why is why)
    assert len(kept) <= MOST_LOSSES + len(Why)
    if losses:
        assert min(k.first_ms for k in kept) == min(n.first_ms for n in losses)
        assert max(k.last_ms for k in kept) == max(n.last_ms for n in losses)


@pytest.mark.parametrize(
    ("text", "expected"), [("2GiB", 2 << 30), ("500MB", 500_000_000), ("1.5k", 1500), ("64 MiB", 64 << 20), ("7", 7)]
)
def test_sizes(text, expected):
    assert size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "-1GB", "2 bananas", "0", "9999999999T"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(InputError, match="not a size"):
        size_bytes(text)
