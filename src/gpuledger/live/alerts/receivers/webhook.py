"""Any program with an address: each event as JSON, with an id to drop repetitions by, signed where a secret is set."""

from __future__ import annotations

import hashlib
import hmac

from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.posting import check_url, post_json
from gpuledger.live.alerts.receiver import KINDS, Receiver, opened_text
from gpuledger.plain_text import json_text

SIGNATURE = "X-Gpuledger-Signature"
KEY = "Idempotency-Key"


@KINDS.register("webhook")
class Webhook(Receiver, frozen=True, kw_only=True):
    """`secret`: signs the body (HMAC-SHA256); `bearer`: a token; `ca`: the authority that signed the certificate."""

    url: str
    secret: str = ""
    bearer: str = ""
    ca: str = ""

    def check(self) -> None:
        """The address must be one."""
        check_url(self.url)

    def send(self, event: Event, timeout_s: float) -> None:
        """Post the event; success is any answer from 200 to 299."""
        body = json_text(event.as_json()).encode()
        headers = {KEY: event.id}
        if self.secret:
            digest = hmac.new(opened_text(self.secret).encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={digest}"
        post_json(self.url, body, timeout_s, headers, self.ca, self.bearer)
