"""Whatever happens in whatever order, does each event reach a receiver that drops repetitions exactly once?"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from alert_events import NOW, look
from gpuledger import settings as own
from gpuledger.live.alerts.courier import deliver_due
from gpuledger.live.alerts.deciding import Instant, decide
from gpuledger.live.alerts.journal import Journal
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.live.alerts.receiver import Undelivered

MIN = 60_000
SETTINGS = '[alerts.receivers.hook]\nkind = "file"\npath = "unused"\n'
# A value is looked at, the watcher dies before it notes the look, the receiver fails, the watcher dies after the
# receiver took the message, all is well.
steps = st.one_of(
    st.tuples(st.just("look"), st.sampled_from([0.0, 2.0, 5.0])),
    st.tuples(st.just("look and die"), st.sampled_from([0.0, 5.0])),
    st.tuples(st.sampled_from(["down", "took it and died", "deliver"]), st.none()),
)


class Died(BaseException):
    """We were killed."""


class Receiver:
    """Drops ids it has."""

    def __init__(self):
        self.kept, self.asked = [], 0

    def take(self, event):
        self.asked += 1
        if event.id not in [e.id for e in self.kept]:
            self.kept.append(event)

    def take_and_kill(self, event):
        self.take(event)
        raise Died

    @staticmethod
    def down(_event):
        raise Undelivered("down")


@settings(max_examples=25)
@given(st.lists(steps, max_size=14))
def test_exactly_once(history):
    receiver = Receiver()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "gpuledger.toml").write_text(SETTINGS)
        own.use(Path(folder) / "gpuledger.toml")
        limits = load_alerts()
        for minute, (what, value) in enumerate([*history, ("deliver", None)]):
            now = NOW + 10 * minute * MIN
            with closing(Journal(Path(folder) / "alerts", marks_only=True)) as journal:  # each step in a new process
                if what.startswith("look"):
                    found = decide(journal, limits, [look(value, now)], Instant(now, now), terminal=False)
                    if what == "look":
                        journal.record(found, now)
                    continue
                send = {"down": receiver.down, "took it and died": receiver.take_and_kill}.get(what, receiver.take)
                with suppress(Died):
                    deliver_due(journal, "hook", send, limits.delivery, clock=lambda now=now: now)
        with closing(Journal(Path(folder) / "alerts")) as journal:
            made = journal.events()
    assert [e.id for e in receiver.kept] == [e.id for e in made], "each once, in order, none lost"
    by_incident = defaultdict(list)
    for event in receiver.kept:
        by_incident[event.incident].append(event.what)
    assert all(whats in (["firing"], ["firing", "resolved"]) for whats in by_incident.values())
