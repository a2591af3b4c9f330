"""Who is notified what and when, by the journal alone: ladder, silences, ends, restarts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest

from alert_events import NOW, begun, ended, look
from gpuledger.errors import FactError, InputError, LakeError, UnknownName
from gpuledger.live.alerts.deciding import Instant, decide
from gpuledger.live.alerts.event import event_id
from gpuledger.live.alerts.journal import FILE, Journal, Round
from gpuledger.live.alerts.ladder import notices
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.live.alerts.outbox import Message, delivered, next_message
from gpuledger.live.alerts.rule import Owner
from gpuledger.live.alerts.silence import Silence, checked, matches

MIN = 60_000
RECEIVERS = "".join(f'[alerts.receivers.{n}]\nkind = "file"\npath = "{n}.jsonl"\n' for n in ("own", "team", "all"))
LADDER = f"""[alerts.owners]
ml = ["own"]
"prod/ml" = "team"
science = "team"
[alerts.ladder]
everyone = ["all"]
{RECEIVERS}"""


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "alerts")
    yield made
    made.close()


@pytest.fixture
def again(tmp_path):
    """The same journal opened once more, as by a new process."""
    made = Journal(tmp_path / "alerts")
    yield made
    made.close()


def notified(event):
    found = notices(event, load_alerts(), terminal=False)
    return {t.receiver: (t.step, (t.due_ms - event.at_ms) // MIN) for t in found}


def test_the_owner_is_notified_first_then_the_team_then_everyone(own_settings):
    own_settings(LADDER)
    event = begun(owner=Owner(namespace="ml", team="science"))
    assert notified(event) == {"own": ("owner", 0), "team": ("team", 30), "all": ("everyone", 120)}


def test_without_a_receiver_the_next_step_is_notified_at_once(own_settings):
    own_settings(LADDER)
    assert notified(begun(owner=Owner(namespace="x", team="science"))) == {
        "team": ("team", 0),
        "all": ("everyone", 120),
    }
    assert notified(begun(owner=Owner())) == {"all": ("everyone", 0)}
    assert notified(begun(owner=Owner(cluster="prod", namespace="ml")))["team"] == ("owner", 0)


def test_what_is_critical_reaches_everyone_at_once(own_settings):
    own_settings(LADDER)
    event = msgspec.structs.replace(begun(owner=Owner(namespace="ml", team="science")), severity="critical")
    assert {minutes for _, minutes in notified(event).values()} == {0}


def test_without_receivers_only_the_terminal_is_notified():
    assert [t.receiver for t in notices(begun(), load_alerts())] == ["terminal"]


def sent(journal, receiver, now=NOW):
    """What a receiver that takes everything gets."""
    out = []
    while isinstance(found := next_message(journal, receiver, now), Message):
        out.append((found.event.key, found.event.what))
        delivered(journal, found, now)
    return out


def record(journal, *, begins=(), ends=(), now=NOW):
    settings = load_alerts()
    found = Round(begun=[(e, notices(e, settings, terminal=False)) for e in begins], ended=list(ends))
    journal.record(found, now)


def test_an_end_goes_to_those_who_were_notified_and_the_others_never_hear_of_it(own_settings, journal):
    own_settings(LADDER)
    event = begun(owner=Owner(namespace="ml", team="science"))
    record(journal, begins=[event])
    assert sent(journal, "own") == [("r:1", "firing")]
    assert sent(journal, "team") == []
    record(journal, ends=[ended(event, NOW + 5 * MIN)], now=NOW + 5 * MIN)
    later = NOW + 300 * MIN
    assert sent(journal, "own", later) == [("r:1", "resolved")]
    assert sent(journal, "team", later) == sent(journal, "all", later) == []


def test_who_was_due_and_not_reached_gets_beginning_and_end(own_settings, journal):
    own_settings(LADDER)
    event = begun(owner=Owner(namespace="ml"))
    record(journal, begins=[event])
    record(journal, ends=[ended(event, NOW + MIN)], now=NOW + MIN)
    assert sent(journal, "own", NOW + MIN) == [("r:1", "firing"), ("r:1", "resolved")]


def test_recorded_again_nothing_is_made_twice(own_settings, journal):
    own_settings(LADDER)
    event = begun(owner=Owner())
    record(journal, begins=[event])
    record(journal, begins=[event], now=NOW + 1)
    assert sent(journal, "all", NOW + 2) == [("r:1", "firing")]
    assert len(journal.events()) == 1


def test_a_silence_keeps_quiet_what_still_fires_until_it_ends(own_settings, journal):
    own_settings(LADDER)
    journal.silence(Silence("r:*", NOW + 60 * MIN, NOW))
    record(journal, begins=[begun(), begun(key="s:1")])
    assert next_message(journal, "all", NOW).event.key == "s:1"
    assert sent(journal, "all") == [("s:1", "firing")]
    assert next_message(journal, "all", NOW) == NOW + 60 * MIN
    assert sent(journal, "all", NOW + 60 * MIN) == [("r:1", "firing")]


def test_what_recovers_during_a_silence_is_not_reported_at_all(own_settings, journal):
    own_settings(LADDER)
    journal.silence(Silence("severity=warning", NOW + 60 * MIN, NOW))
    event = begun()
    record(journal, begins=[event])
    record(journal, ends=[ended(event, NOW + MIN)], now=NOW + MIN)
    assert sent(journal, "all", NOW + 90 * MIN) == []


def test_patterns_of_silences():
    event = begun(owner=Owner(namespace="ml-train", team="science"))
    assert matches("r:*", event)
    assert matches("namespace=ml-*,severity=warning", event)
    assert not matches("namespace=ml-*,severity=critical", event)
    assert not matches("user=*", event), "an unknown user is nobody's"
    with pytest.raises(UnknownName, match="nmespace"):
        checked("nmespace=ml")
    for odd in ("bogus field=x", "namespace=ml,bogus", "namespace="):
        with pytest.raises((UnknownName, InputError), match=r"bogus|pattern"):
            checked(odd)
    with pytest.raises(InputError, match="matches nothing"):
        checked(" ")


def test_ids_follow_from_what_they_are_about(journal, tmp_path):
    assert event_id("j", "k", 1, "firing") == event_id("j", "k", 1, "firing")
    ids = {event_id(j, k, i, w) for j in "ab" for k in "cd" for i in (1, 2) for w in ("firing", "resolved")}
    assert len(ids) == 16
    with closing(Journal(tmp_path / "alerts")) as same, closing(Journal(tmp_path / "other")) as other:
        assert same.id == journal.id != other.id


def test_a_watcher_that_was_killed_before_it_noted_a_look_makes_the_same_events(journal):
    settings, at = load_alerts(), Instant(NOW, NOW)
    first = decide(journal, settings, [look(5.0)], at)
    again = decide(journal, settings, [look(5.0)], at)
    assert first.events == again.events != []
    journal.record(first, NOW)
    assert decide(journal, settings, [look(5.0)], at).events == []


def test_a_look_by_a_new_process_goes_on_where_the_old_one_was(journal, request):
    settings = load_alerts()
    journal.record(decide(journal, settings, [look(5.0)], Instant(NOW, NOW)), NOW)
    journal.close()
    other = request.getfixturevalue("again")
    found = decide(other, settings, [look(0.0, NOW + MIN)], Instant(NOW + MIN, NOW + MIN))
    (end,) = found.ended
    assert (end.what, end.incident, end.ending, end.subject) == (
        "resolved",
        1,
        "recovered",
        look(0.0).readings[0].subject,
    )
    other.record(found, NOW + MIN)
    refired = decide(other, settings, [look(5.0, NOW + 2 * MIN)], Instant(NOW + 2 * MIN, NOW + 2 * MIN))
    assert [e.incident for e, _ in refired.begun] == [2]


def test_what_is_gone_and_rules_turned_off_end_alerts(journal):
    settings, later = load_alerts(), Instant(NOW + 25 * 60 * MIN, NOW + 25 * 60 * MIN)
    journal.record(decide(journal, settings, [look(5.0)], Instant(NOW, NOW)), NOW)
    assert decide(journal, settings, [], later).events == [], "not looked at is not gone"
    gone = decide(journal, settings, [look(None)], later)
    off = decide(journal, settings, [], later, off=["r"])
    assert [e.ending for e in gone.ended] == ["gone"]
    assert [e.ending for e in off.ended] == ["rule off"]


def test_one_watcher_at_a_time(journal, tmp_path):
    with closing(Journal(tmp_path / "alerts")) as other:
        with (
            journal.deciding(),
            pytest.raises(InputError, match="another gpuledger watch"),
            other.deciding(),
        ):
            pass
        with other.deciding():
            pass


def test_a_journal_that_cannot_be_used(tmp_path):
    (tmp_path / FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(LakeError, match="cannot be used"):
        Journal(tmp_path)
    other = tmp_path / "newer"
    Journal(other).close()
    with closing(sqlite3.connect(other / FILE)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(LakeError, match="newer gpuledger"):
        Journal(other)


def test_a_full_disk_leaves_the_journal_as_it_was(own_settings, journal):
    own_settings(LADDER)
    (pages,) = journal.db.execute("PRAGMA page_count").fetchone()
    journal.db.execute(f"PRAGMA max_page_count = {pages + 1}")
    many = [begun(key=f"r:{n}", owner=Owner()) for n in range(200)]
    with pytest.raises(LakeError, match="full"):
        record(journal, begins=many)
    assert journal.events() == []
    journal.db.execute("PRAGMA max_page_count = 100000")
    record(journal, begins=many)
    assert len(sent(journal, "all")) == 200


def test_old_events_are_forgotten_only_when_nobody_waits_for_them(own_settings, journal):
    own_settings(LADDER)
    done, waits = begun(owner=Owner()), begun(key="s:1", owner=Owner())
    record(journal, begins=[done, waits])
    delivered(journal, next_message(journal, "all", NOW), NOW)
    assert journal.forget(NOW + 1) == 1
    assert [e.key for e in journal.events()] == ["s:1"]


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ('[alerts]\nwindow = "soon"\n', "alerts.window", "not a length"),
        ('[alerts.rules.xid]\nclear = 9\n', "alerts.rules.xid.clear", "beyond fire"),
        ('[alerts.rules.xidd]\non = true\n', "alerts.rules.xidd", "no setting is called"),
        ('[alerts.owners]\nml = "nobody"\n', "alerts.owners.ml", "no receiver is called 'nobody'"),
        ('[alerts.receivers.x]\nkind = "pigeon"\n', "alerts.receivers.x.kind", "no kind of receiver"),
        ('[alerts.receivers.x]\nurl = "http://h/"\n', "alerts.receivers.x.kind", "missing"),
        ('[alerts.receivers.x]\nkind = "slack"\n', "alerts.receivers.x", "url"),
        ('[alerts.receivers.x]\nkind = "slack"\nurl = "ftp://h"\n', "alerts.receivers.x", "not an http address"),
        ('[alerts.receivers.x]\nkind = "file"\npath = "f"\ncolor = 1\n', "alerts.receivers.x", "color"),
        ('[alerts.receivers.x]\nkind = "email"\nhost = "h"\nsender = "a@b"\nto = ["c"]\n', "alerts.receivers.x", "'c'"),
        ('[alerts.receivers.terminal]\nkind = "file"\npath = "f"\n', "alerts.receivers.terminal", "always there"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_refused_by_name(own_settings, text, field, words):
    own_settings(text)
    with pytest.raises(FactError, match=words) as caught:
        load_alerts()
    assert field in caught.value.message
    assert caught.value.hint
