"""Prometheus Alertmanager, through its API (v2): grouping, routing and silences of its own.

Alertmanager keeps alerts in memory and ends those that are not repeated. What fires is posted again at every look; the
labels stay the same, so it is one alert there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuledger.encode import iso
from gpuledger.live.alerts.event import Event, headline
from gpuledger.live.alerts.posting import check_url, post_json
from gpuledger.live.alerts.receiver import KINDS, Receiver, Undelivered, opened_text
from gpuledger.plain_text import json_text
from gpuledger.times import length_ms

_PATH = "/api/v2/alerts"


@KINDS.register("alertmanager")
class Alertmanager(Receiver, frozen=True, kw_only=True):
    """`url`: http://host:9093; `hold`: how long an alert stays there after the watcher last posted it."""

    url: str
    bearer: str = ""
    ca: str = ""
    hold: str = "1h"

    def check(self) -> None:
        """The address must be one, and the length too."""
        check_url(self.url)
        length_ms(self.hold)

    def send(self, event: Event, timeout_s: float) -> None:
        """Post one alert: that it began, or that it ended."""
        self._post([posted(event, event.at_ms + length_ms(self.hold) if event.firing else event.at_ms)], timeout_s)

    def refresh(self, firing: Sequence[Event], now_ms: int, timeout_s: float) -> None:
        """Post all that fires again."""
        if firing:
            self._post([posted(event, now_ms + length_ms(self.hold)) for event in firing], timeout_s)

    def _post(self, alerts: list[dict[str, Any]], timeout_s: float) -> None:
        url = opened_text(self.url).rstrip("/")
        if not url.startswith("http"):
            raise Undelivered(f"{url!r} is not an http address")
        address = url if url.endswith(_PATH) else url + _PATH
        post_json(address, json_text(alerts).encode(), timeout_s, {}, self.ca, self.bearer)


def posted(event: Event, ends_ms: int) -> dict[str, Any]:
    """An event as Alertmanager takes it. Labels identify the alert and must never change; the rest is annotation."""
    owner = {"cluster": event.owner.cluster, "namespace": event.owner.namespace, "team": event.owner.team}
    labels = {
        "alertname": f"gpuledger_{event.rule}", "severity": event.severity, "key": event.key,
        "incident": str(event.incident), "subject": event.subject.name, **owner,
    }  # fmt: skip
    notes = {"summary": headline(event), "next_step": event.next_step, "event_id": event.id}
    return {
        "labels": {name: text for name, text in labels.items() if text},
        "annotations": notes,
        "startsAt": iso(event.since_ms),
        "endsAt": iso(max(ends_ms, event.since_ms + 1000)),
    }
