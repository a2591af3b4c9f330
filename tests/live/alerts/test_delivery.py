"""Is every message delivered, in order and once, whatever the receiver answers and wherever we are killed?"""

from __future__ import annotations

import json
import socket
import threading
import time
from itertools import pairwise

import pytest

from alert_events import NOW, begun, ended, look
from gpuledger.live.alerts.courier import deliver_due, wait_ms
from gpuledger.live.alerts.deciding import Instant
from gpuledger.live.alerts.journal import Journal, Round
from gpuledger.live.alerts.ladder import notices
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.live.alerts.outbox import Message, mailboxes
from gpuledger.live.alerts.receivers.webhook import Webhook
from gpuledger.live.alerts.watcher import Look, Watcher

ONE = '[alerts.receivers.hook]\nkind = "webhook"\nurl = "{url}"\n'


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "alerts")
    yield made
    made.close()


@pytest.fixture
def three(own_settings, journal, hook):
    """Three events for one webhook; sends what is due at an instant."""
    own_settings(ONE.format(url=hook.url))
    first, second = begun("r:1"), begun("s:1")
    settings = load_alerts()
    journal.record(Round(begun=[(e, notices(e, settings, terminal=False)) for e in (first, second)]), NOW)
    journal.record(Round(ended=[ended(first, NOW)]), NOW)
    receiver = Webhook(kind="webhook", url=hook.url)

    def send(now=NOW, via=None):
        deliver = via or (lambda event: receiver.send(event, 5.0))
        return deliver_due(journal, "hook", deliver, settings.delivery, clock=lambda: now)

    return send


def got(hook):
    return [(event["key"], event["what"]) for event in hook.got]


ALL = [("r:1", "firing"), ("s:1", "firing"), ("r:1", "resolved")]


def test_in_order_and_once(three, hook):
    assert three() is None
    assert three() is None
    assert got(hook) == ALL
    assert [h["idempotency-key"] for h in hook.heads] == [e["id"] for e in hook.got]


@pytest.mark.parametrize("code", [500, 502, 503, 429, 404, 401, 302])
def test_what_is_not_taken_is_sent_again_later_and_keeps_its_place(three, hook, journal, code):
    hook.answers = [code, code]
    first = three()
    assert NOW < first <= NOW + 1000
    assert got(hook) == []
    assert three(NOW + 1) == first, "not before its time"
    assert len(hook.bodies) == 1
    second = three(first)
    assert second - first > first - NOW, "each wait is longer"
    (box,) = mailboxes(journal)
    assert (box.waiting, box.attempts) == (3, 2)
    assert str(code) in box.error
    assert three(second) is None
    assert got(hook) == ALL
    (box,) = mailboxes(journal)
    assert (box.waiting, box.delivered, box.error) == (0, 3, "")


def test_the_wait_a_receiver_asks_for(three, hook):
    hook.answers, hook.more = [429], {"Retry-After": "90"}
    assert three() == NOW + 90_000


@pytest.mark.parametrize("code", [400, 413, 422])
def test_what_a_receiver_will_never_take_is_kept_and_the_rest_goes_on(three, hook, journal, code):
    hook.answers = [code]
    assert three() is None
    assert got(hook) == ALL[1:]
    (box,) = mailboxes(journal)
    assert (box.waiting, box.delivered, box.refused) == (0, 2, 1)


def test_killed_between_the_receivers_answer_and_our_note_the_same_id_comes_again(three, hook):
    receiver = Webhook(kind="webhook", url=hook.url)

    def dies_after(event):
        receiver.send(event, 5.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        three(via=dies_after)
    assert three() is None
    assert got(hook) == [ALL[0], *ALL]
    assert hook.got[0] == hook.got[1]
    assert len({e["id"] for e in hook.got}) == 3


def test_a_receiver_that_is_not_there_and_one_that_never_answers(three, journal, own_settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        slow = Webhook(kind="webhook", url=f"http://127.0.0.1:{port}/")
        began = time.monotonic()
        assert three(via=lambda e: slow.send(e, 0.2)) > NOW
        assert time.monotonic() - began < 3
        (box,) = mailboxes(journal)
        assert "no answer in time" in box.error
    gone = Webhook(kind="webhook", url=f"http://127.0.0.1:{port}/")
    assert three(NOW + 10_000, via=lambda e: gone.send(e, 1.0)) > NOW + 10_000
    (box,) = mailboxes(journal)
    assert "refused" in box.error
    assert box.waiting == 3


def test_a_receiver_from_outside_may_raise_anything(three, journal):
    assert three(via=lambda _event: 1 / 0) > NOW
    (box,) = mailboxes(journal)
    assert (box.waiting, box.error) == (3, "ZeroDivisionError: division by zero")


def test_waits_double_up_to_the_longest():
    patience = load_alerts().delivery
    waits = [wait_ms(Message(1, "hook", begun(), n), patience) for n in range(60)]
    assert 750 <= waits[0] <= 1000
    assert all(b > a for a, b in pairwise(waits[:8]))
    assert all(225_000 <= w <= 300_000 for w in waits[12:])


def test_the_loop_delivers_while_looks_go_on_and_a_dead_receiver_holds_up_nobody(own_settings, journal, hook, tmp_path):
    log = tmp_path / "log.jsonl"
    down = '[alerts.receivers.down]\nkind = "webhook"\nurl = "http://127.0.0.1:9/"\n'
    own_settings(ONE.format(url=hook.url) + down + f"[alerts.receivers.log]\nkind = \"file\"\npath = '{log}'\n")
    values = iter([5.0, 5.0, 0.0])

    def see(_settings, now_ms):
        return Look(Instant(now_ms, now_ms), (look(next(values, 0.0), now_ms),), frozenset())

    shown = []
    watcher = Watcher(journal, see, shown.append)

    def end_when_done():
        deadline = time.monotonic() + 10
        while (len(hook.got) < 2 or len(shown) < 2) and time.monotonic() < deadline:
            time.sleep(0.01)
        watcher.stop.set()

    ender = threading.Thread(target=end_when_done)
    ender.start()
    watcher.run(30)
    ender.join()
    assert got(hook) == [("r:1", "firing"), ("r:1", "resolved")]
    assert [e.what for e in shown] == ["firing", "resolved"]
    assert [json.loads(line)["id"] for line in log.read_text().splitlines()] == [e["id"] for e in hook.got]
    boxes = {box.receiver: box for box in mailboxes(journal)}
    assert (boxes["down"].waiting, boxes["down"].delivered) == (2, 0)


def test_a_receiver_that_was_taken_out_of_the_settings_keeps_its_messages(own_settings, journal, hook):
    hook.answers = [500] * 50
    own_settings(ONE.format(url=hook.url))
    values = iter([5.0])

    def see(_settings, now_ms):
        return Look(Instant(now_ms, now_ms), (look(next(values, 2.0), now_ms),), frozenset())

    Watcher(journal, see).once(NOW)
    own_settings("")
    Watcher(journal, see).once(NOW + 1)
    (box,) = mailboxes(journal)
    assert box.waiting == 1
