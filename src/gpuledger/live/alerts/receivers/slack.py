"""A Slack channel, through an incoming webhook."""

from __future__ import annotations

from gpuledger.live.alerts.event import Event, details, headline
from gpuledger.live.alerts.posting import check_url, post_json
from gpuledger.live.alerts.receiver import KINDS, Receiver
from gpuledger.plain_text import json_text, visible

_SIGNS = {"critical": ":red_circle:", "warning": ":large_orange_circle:", "info": ":large_blue_circle:"}
_RECOVERED = ":white_check_mark:"
_MOST_FIELDS = 10  # Slack takes no more in one section


@KINDS.register("slack")
class Slack(Receiver, frozen=True, kw_only=True):
    """`url`: the address of the incoming webhook, better as env:NAME or file:PATH: it is a secret."""

    url: str

    def check(self) -> None:
        """The address must be one."""
        check_url(self.url)

    def send(self, event: Event, timeout_s: float) -> None:
        """Post the message. Slack does not drop repetitions: the id at its end shows them."""
        post_json(self.url, json_text(message(event)).encode(), timeout_s)


def message(event: Event) -> dict[str, object]:
    """The event as Slack shows it: a line, a table of what is known, and the id."""
    sign = _SIGNS[event.severity] if event.firing else _RECOVERED
    text = f"{sign} {_escaped(headline(event))}"
    fields = [{"type": "mrkdwn", "text": f"*{_escaped(name)}*\n{_escaped(value)}"} for name, value in details(event)]
    return {
        "text": text,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": f"*{text}*"}},
            {"type": "section", "fields": fields[:_MOST_FIELDS]},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": f"`{_escaped(event.key)}` id {event.id}"}]},
        ],
    }


def _escaped(text: str) -> str:
    """What has a meaning in Slack's markup, written out."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'")
