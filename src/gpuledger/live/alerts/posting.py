"""How is JSON posted to an address, and what does the answer mean for the message?"""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from gpuledger.errors import GpuledgerError, InputError
from gpuledger.live.alerts.receiver import Undelivered, opened_text
from gpuledger.telemetry.servers.web import Access

# Answers about the message itself, not about the way to the receiver: sending it again cannot help.
_NEVER = frozenset({400, 413, 422})
_MOST_READ = 500


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would turn the post into a question, or carry the message elsewhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def check_url(url: str) -> None:
    """Refuse an address that is none; one in the environment or a file is looked at when it is needed."""
    if url.startswith(("env:", "file:")):
        return
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:  # brackets that hold no IPv6 address
        good = False
    if not good:
        raise InputError(f"url = {url!r} is not an http address", hint="write https://host/path, env:NAME or file:PATH")


def post_json(
    url: str, body: bytes, timeout_s: float, headers: Mapping[str, str] | None = None, ca: str = "", bearer: str = ""
) -> bytes:
    """Post a body; what comes back is the start of the answer. Anything but success raises `Undelivered`."""
    url = opened_text(url)
    where = urlsplit(url).hostname or "the address"
    sent = {"Content-Type": "application/json", "User-Agent": "gpuledger", **(headers or {})}
    if bearer:
        sent["Authorization"] = f"Bearer {opened_text(bearer)}"
    try:
        check_url(url)
        secure = [urllib.request.HTTPSHandler(context=_trusted(ca))] if url.startswith("https:") else []
    except GpuledgerError as error:
        raise Undelivered(error.message) from error
    opener = urllib.request.build_opener(_NoRedirect, *secure)
    request = urllib.request.Request(url, body, sent, method="POST")  # noqa: S310  (checked above)
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            return bytes(answer.read(_MOST_READ))
    except urllib.error.HTTPError as error:
        with error:
            text = _start(error)
        raise Undelivered(
            f"{where} answered {error.code} {error.reason}{f': {text}' if text else ''}",
            final=error.code in _NEVER,
            retry_s=_seconds(error.headers.get("Retry-After")),
        ) from error
    except (OSError, http.client.HTTPException, ssl.SSLError, ValueError) as error:
        raise Undelivered(f"{where}: {_why(error)}") from error


@lru_cache(maxsize=8)
def _trusted(ca: str) -> ssl.SSLContext:
    """Reading the authorities takes longer than a message."""
    return Access(ca=Path(ca) if ca else None).context()


def _start(answer: urllib.error.HTTPError) -> str:
    try:
        return answer.read(200).decode("utf-8", "replace").strip().splitlines()[0][:120]
    except (OSError, http.client.HTTPException, IndexError):
        return ""


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    return str(getattr(reason, "strerror", None) or reason or type(error).__name__)


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.strip().isdigit() else None
