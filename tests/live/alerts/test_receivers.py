"""Does each kind of receiver get what it can show, over real sockets, and does a repetition do no harm?"""

from __future__ import annotations

import email
import hashlib
import hmac
import json
import os
import shutil
import socketserver
import subprocess
import threading
import time
import urllib.request

import msgspec
import pytest

from alert_events import NOW, begun, ended
from gpuledger.live.alerts.event import details, figure, headline, owner_text
from gpuledger.live.alerts.receiver import KINDS, Undelivered
from gpuledger.live.alerts.receivers.alertmanager import Alertmanager
from gpuledger.live.alerts.receivers.email_ import Email
from gpuledger.live.alerts.receivers.file import File
from gpuledger.live.alerts.receivers.slack import Slack
from gpuledger.live.alerts.receivers.webhook import Webhook
from gpuledger.live.alerts.rule import Owner

OWNER = Owner(namespace="ml", team="science", workload="llama", user="ada")
FIRST = begun(owner=OWNER)
LAST = ended(FIRST, NOW + 5 * 60_000)


def test_the_kinds_a_user_may_name():
    assert KINDS.names() == ["alertmanager", "email", "file", "slack", "webhook"]


# -- words, pinned here and nowhere else


def test_a_message_in_words():
    assert headline(FIRST) == "GPU stopped reporting: node-1/3, 31 min (limit 10 min)"
    assert headline(LAST) == "GPU stopped reporting: node-1/3, recovered after 36 min"
    gone = msgspec.structs.replace(LAST, ending="gone")
    assert headline(gone) == "GPU stopped reporting: node-1/3, no longer reported after 36 min"
    assert dict(details(FIRST)) == {
        "Severity": "warning", "Since": "2027-01-15 07:29 UTC", "Owner": "ml/llama (science, ada)", "Host": "node-1",
        "Next": "look",
    }  # fmt: skip
    assert "Next" not in dict(details(LAST))


def test_figures_and_owners_in_words():
    amounts = [(3.0, "rows"), (1.0, "driver errors"), (12.34, "points"), (1234.5, "% of the budget"), (None, "min")]
    words = ["3 rows", "1 driver error", "12.3 points", "1,234 % of the budget", "unknown"]
    assert [figure(*one) for one in amounts] == words
    assert [owner_text(o) for o in (Owner(), Owner(team="a"), Owner(namespace="n", run_id="7"))] == ["", "a", "n/7"]


# -- webhook and Slack


def test_a_webhook_gets_the_event_signed(hook, monkeypatch, tmp_path):
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    token = tmp_path / "token"
    token.write_text("abc\n")
    Webhook(kind="webhook", url=hook.url, secret="env:HOOK_SECRET", bearer=f"file:{token}").send(FIRST, 5.0)
    (event,), (head,), (body,) = hook.got, hook.heads, hook.bodies
    assert (event["v"], event["id"], event["what"], event["key"]) == (1, FIRST.id, "firing", "r:1")
    assert (event["value"], event["limit"], event["unit"]) == (31.0, 10.0, "min")
    assert event["owner"]["team"] == "science"
    assert event["at_utc"] == "2027-01-15T08:00:00Z"
    assert event["text"] == headline(FIRST)
    assert head["idempotency-key"] == FIRST.id
    digest = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert head["x-gpuledger-signature"] == f"sha256={digest}"
    assert head["authorization"] == "Bearer abc"


def test_an_address_that_is_not_there_to_be_read(tmp_path):
    with pytest.raises(Undelivered, match="NO_SUCH_VARIABLE is not set"):
        Webhook(kind="webhook", url="env:NO_SUCH_VARIABLE").send(FIRST, 1.0)
    with pytest.raises(Undelivered, match="cannot be read"):
        Webhook(kind="webhook", url=f"file:{tmp_path}/none").send(FIRST, 1.0)


def test_slack_gets_a_message_in_which_no_label_is_markup(hook):
    event = msgspec.structs.replace(FIRST, owner=Owner(namespace="<!channel> & `x`"))
    Slack(kind="slack", url=hook.url).send(event, 5.0)
    (message,) = hook.got
    assert message["text"] == f":large_orange_circle: {headline(FIRST)}"
    assert FIRST.id in message["blocks"][-1]["elements"][0]["text"]
    assert "<!channel>" not in json.dumps(message)
    assert "&lt;!channel&gt; &amp; 'x'" in json.dumps(message)
    Slack(kind="slack", url=hook.url).send(LAST, 5.0)
    assert hook.got[1]["text"].startswith(":white_check_mark:")


# -- file


def lines(path):
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_a_file_has_each_event_once(tmp_path):
    path = tmp_path / "new" / "alerts.jsonl"
    receiver = File(kind="file", path=str(path))
    for event in (FIRST, FIRST, LAST, LAST, FIRST):
        receiver.send(event, 1.0)
    assert lines(path) == [FIRST.id, LAST.id]


@pytest.mark.parametrize("cut", [1, 9, 60, -2, -1])
def test_a_line_that_was_cut_off_is_completed(tmp_path, cut):
    path = tmp_path / "alerts.jsonl"
    receiver = File(kind="file", path=str(path))
    receiver.send(FIRST, 1.0)
    receiver.send(LAST, 1.0)
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    path.write_bytes(whole[:start] + whole[start:][:cut])
    receiver.send(LAST, 1.0)
    assert path.read_bytes() == whole


def test_text_of_others_in_the_file_stays(tmp_path):
    path = tmp_path / "alerts.jsonl"
    path.write_text("# mine, without a line feed")
    File(kind="file", path=str(path)).send(FIRST, 1.0)
    first, second = path.read_text().splitlines()
    assert (first, json.loads(second)["id"]) == ("# mine, without a line feed", FIRST.id)


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Undelivered, match="File exists"):
        File(kind="file", path=str(tmp_path / "file" / "alerts.jsonl")).send(FIRST, 1.0)


# -- mail


class Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as sending takes."""

    def handle(self):
        def say(text):
            self.wfile.write(f"{text}\r\n".encode())

        say("220 ready")
        while line := self.rfile.readline().decode().strip():
            word = line.upper().split()[0].split(":")[0]
            if word == "DATA":
                say("354 go on")
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                answer = self.server.answers.pop(0) if self.server.answers else "250 taken"
                if answer.startswith("250"):
                    self.server.mails.append(email.message_from_bytes(text))
                say(answer)
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 yes")


@pytest.fixture
def smtp():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox) as server:
        server.mails, server.answers, server.daemon_threads = [], [], True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def test_mail(smtp):
    receiver = Email(
        kind="email", host="127.0.0.1", port=smtp.server_address[1], sender="gpuledger@example.com",
        to=("oncall@example.com", "ml@example.com"), tls="none",
    )  # fmt: skip
    receiver.check()
    receiver.send(msgspec.structs.replace(FIRST, owner=Owner(namespace="a\r\nBcc: evil@example.com")), 5.0)
    receiver.send(LAST, 5.0)
    first, last = smtp.mails
    assert first["Subject"].replace("\r\n", "").strip() == f"[gpuledger warning] {headline(FIRST)}"
    assert last["Subject"].replace("\r\n", "").strip().startswith("[gpuledger recovered]")
    assert first["Message-ID"] == f"<{FIRST.id}@gpuledger.invalid>"
    assert (first["To"], first["Bcc"]) == ("oncall@example.com, ml@example.com", None)
    text = first.get_payload()
    assert "Next" in text
    assert FIRST.id in text
    assert "a\\r\\nBcc" in text


def test_mail_that_is_not_taken(smtp):
    port = smtp.server_address[1]
    receiver = Email(kind="email", host="127.0.0.1", port=port, sender="a@b.c", to=("d@e.f",), tls="none")
    smtp.answers = ["451 later", "554 never"]
    with pytest.raises(Undelivered, match="451 later") as later:
        receiver.send(FIRST, 5.0)
    with pytest.raises(Undelivered, match="554 never") as never:
        receiver.send(FIRST, 5.0)
    assert (later.value.final, never.value.final) == (False, True)
    with pytest.raises(Undelivered, match="STARTTLS"):
        msgspec.structs.replace(receiver, tls="starttls").send(FIRST, 5.0)


# -- Alertmanager


def test_alertmanager_gets_alerts_that_are_the_same_until_they_end(hook):
    receiver = Alertmanager(kind="alertmanager", url=hook.url.removesuffix("/hook"), hold="1h")
    receiver.send(FIRST, 5.0)
    receiver.refresh([FIRST], NOW + 600_000, 5.0)
    receiver.send(LAST, 5.0)
    (first,), (again,), (last,) = hook.got
    assert set(hook.paths) == {"/api/v2/alerts"}
    assert first["labels"] == again["labels"] == last["labels"]
    assert first["labels"]["alertname"] == "gpuledger_r"
    assert first["startsAt"] == last["startsAt"]
    ends = [found["endsAt"] for found in (first, again, last)]
    assert ends == ["2027-01-15T09:00:00Z", "2027-01-15T09:10:00Z", "2027-01-15T08:05:00Z"]
    receiver.refresh([], NOW, 5.0)
    assert len(hook.got) == 3


PROGRAM = os.environ.get("ALERTMANAGER") or shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")


@pytest.mark.skipif(PROGRAM is None, reason="Alertmanager is not installed")
def test_a_real_alertmanager(tmp_path, free_port):
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    root = f"http://127.0.0.1:{free_port}"
    args = [f"--config.file={config}", f"--storage.path={tmp_path}", f"--web.listen-address=127.0.0.1:{free_port}"]
    process = subprocess.Popen([PROGRAM, *args, "--cluster.listen-address="], stderr=subprocess.DEVNULL)

    def active():
        with urllib.request.urlopen(f"{root}/api/v2/alerts?active=true") as answer:
            return [found["labels"]["key"] for found in json.load(answer)]

    now = time.time_ns() // 1_000_000
    first = begun(at_ms=now, owner=OWNER)
    receiver = Alertmanager(kind="alertmanager", url=root)
    try:
        for _ in range(200):
            try:
                receiver.send(first, 5.0)
                break
            except Undelivered:
                time.sleep(0.05)
        receiver.refresh([first], now, 5.0)
        assert active() == ["r:1"]
        receiver.send(ended(first, now), 5.0)
        assert active() == []
    finally:
        process.kill()
        process.wait()
