"""How is a server asked, and what is reported when it is down, busy, slow or the wrong one?"""

from __future__ import annotations

import base64
import email.utils
import gzip
import http.client
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlencode, urlsplit

import msgspec

from gpuledger.bounds import VARIABLE, most_bytes
from gpuledger.errors import FileFault, InputError, ServerFault, map_os_error
from gpuledger.telemetry.series.answers import UNREADABLE, Answer

TIMEOUT_S = 120.0
# A busy server is waited for this long in all, request by request.
PATIENCE_S = 300.0
LONGEST_WAIT_S = 60.0
# A longer request goes into a body: proxies cut long addresses off.
LONGEST_QUERY = 3000
_BUSY = (429, 502, 503)
_TOO_MUCH = (413, 422, 504)
_TIMED_OUT = "timeout"
_CUT_OFF_TRIES = 2

Waiting = Callable[[float, str], None]


class TooMuch(Exception):
    """The server cannot answer this much at once: ask for less."""


@dataclass(frozen=True)
class Access:
    """How a server lets us in. Secrets are read from files, never shown."""

    headers: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    password_file: Path | None = None
    bearer_file: Path | None = None
    ca: Path | None = None

    def all_headers(self) -> dict[str, str]:
        """The headers of every request."""
        found = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "gpuledger", **self.headers}
        if self.user and self.bearer_file:
            raise InputError("a user and a bearer token are both given", hint="give one of them")
        if self.user:
            name, colon, password = self.user.partition(":")
            secret = password if colon else _secret(self.password_file) if self.password_file else ""
            found["Authorization"] = "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()
        elif self.bearer_file:
            found["Authorization"] = f"Bearer {_secret(self.bearer_file)}"
        return found

    def context(self) -> ssl.SSLContext:
        """Which certificates are trusted: those of the system, or of the given authority."""
        try:
            return ssl.create_default_context(cafile=str(self.ca) if self.ca else None)
        except ssl.SSLError as error:
            raise FileFault(self.ca or "", f"not a certificate: {error.reason}", hint="give a PEM file") from error
        except OSError as error:
            raise map_os_error(error, self.ca or "", "read the certificate") from error


def _secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            raise map_os_error(error, file, "read the secret") from error
        raise FileFault(file, "it is not text", hint="put the token alone into the file") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the credentials elsewhere, most often to a login page."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class Web:
    """One server. `waiting` hears how long and why the next try waits."""

    def __init__(
        self,
        root: str,
        access: Access | None = None,
        *,
        waiting: Waiting = lambda _seconds, _why: None,
        sleep: Callable[[float], None] = time.sleep,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.root = root.rstrip("/")
        self.where = urlsplit(self.root).netloc.rpartition("@")[2]
        access = access or Access()
        self._headers = access.all_headers()
        # Whose data it is, on a server of several (Mimir, Grafana Cloud).
        self.tenant = next((text for name, text in access.headers.items() if name.lower() == "x-scope-orgid"), "")
        https = urllib.request.HTTPSHandler(context=access.context())
        self._opener = urllib.request.build_opener(_NoRedirect, https)
        self._waiting, self._sleep = waiting, sleep
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._answered = False
        self.skew_s = 0.0

    def now_ms(self) -> int:
        """The time by the server's clock, as its last answer showed it."""
        return round((time.time() + self.skew_s) * 1000)

    def get(self, path: str, params: list[tuple[str, str]]) -> bytes:
        """The body of an answer. A busy server is asked again after a while; `TooMuch`: ask for less."""
        waited, tries, cut_off = 0.0, 0, 0
        while True:
            try:
                return self._once(path, params)
            except _Busy as busy:
                tries += 1
                pause = min(busy.after_s or 2.0 ** (tries - 1), LONGEST_WAIT_S)
                if waited + pause > self._patience_s:
                    raise busy.fault from None
                self._waiting(pause, busy.why)
                self._sleep(pause)
                waited += pause
            except _CutOff as error:
                cut_off += 1
                if cut_off >= _CUT_OFF_TRIES:
                    raise TooMuch(str(error)) from error

    def _once(self, path: str, params: list[tuple[str, str]]) -> bytes:
        query = urlencode(params)
        body = query.encode() if len(query) > LONGEST_QUERY else None
        address = f"{self.root}{path}" + (f"?{query}" if query and body is None else "")
        request = urllib.request.Request(address, body, self._headers)  # noqa: S310 - the scheme is checked before
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                raw = _unpacked(answer, answer.headers.get("Content-Encoding", ""))
                self._clock(answer.headers.get("Date"))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(path, error) from error
        except TimeoutError as error:
            raise TooMuch(f"no answer within {self._timeout_s:.0f} s") from error
        except (http.client.IncompleteRead, EOFError, gzip.BadGzipFile, zlib.error, ConnectionResetError) as error:
            raise _CutOff("the answer was cut off") from error
        except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        self._answered = True
        if raw.lstrip()[:1] == b"<":
            raise self._web_page(path)
        return raw

    def _clock(self, date: str | None) -> None:
        try:
            if date:
                self.skew_s = email.utils.parsedate_to_datetime(date).timestamp() - time.time()
        except ValueError:
            pass

    def _refused(self, path: str, error: urllib.error.HTTPError) -> Exception:
        """What a status other than 200 means."""
        code, (kind, words) = error.code, _reason(error)
        if code in (401, 403):
            hint = "give credentials: --user NAME --password-file FILE, --bearer-file FILE or --header 'Name: value'"
            return ServerFault(self.where, f"access denied (HTTP {code})", hint=hint)
        if 300 <= code < 400:
            target = error.headers.get("Location", "elsewhere")
            return ServerFault(
                self.where,
                f"{path} is redirected to {target}, probably a login page",
                hint="use the address of the API itself, with https if that is what it is redirected to",
            )
        if code in _TOO_MUCH or kind == _TIMED_OUT:
            return TooMuch(words or f"HTTP {code}")
        if code in _BUSY:
            why = "too many requests" if code == 429 else "it is not ready"
            fault = ServerFault(
                self.where,
                f"still busy after {self._patience_s:.0f} s: {why} (HTTP {code})",
                hint="run the same command later: it goes on where it stopped",
            )
            return _Busy(f"{self.where}: {why} (HTTP {code})", _after_s(error.headers.get("Retry-After")), fault)
        if code == 404:
            return ServerFault(
                self.where,
                f"no Prometheus API was found at {urlsplit(self.root).path}{path} (HTTP 404)",
                hint="add the path before /api/v1: /prometheus (Mimir), /select/0/prometheus (VictoriaMetrics) or"
                " /api/prom (Grafana Cloud)",
            )
        return Refused(self.where, code, words)

    def _unreachable(self, error: Exception) -> Exception:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError) and reason.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return ServerFault(self.where, "does not speak https on this port", hint="write prometheus://HOST:PORT")
        if isinstance(reason, ssl.SSLError):
            why = getattr(reason, "verify_message", "") or reason.reason or reason
            return ServerFault(
                self.where, f"no secure connection: {why}", hint="give the authority that signed it: --ca FILE"
            )
        if isinstance(reason, TimeoutError):
            return TooMuch(f"no answer within {self._timeout_s:.0f} s")
        fault = ServerFault(
            self.where,
            f"cannot be reached: {getattr(reason, 'strerror', '') or reason}",
            hint="check the address and the port; a browser or curl on this machine must reach it",
        )
        # A server that never answered is most likely the wrong address; one that did will come back.
        return _Busy(f"{self.where}: cannot be reached", 0.0, fault) if self._answered else fault

    def _web_page(self, path: str) -> ServerFault:
        return ServerFault(
            self.where,
            f"{path} answered with a web page, not with data: a login page, or another server",
            hint="use the address of the Prometheus API, and give credentials (--user, --bearer-file, --header)",
        )


class Refused(ServerFault):
    """The server understood and refused: a query it does not know, a parameter it does not take."""

    def __init__(self, where: str, code: int, words: str) -> None:
        super().__init__(where, f"refused (HTTP {code}): {words or 'no reason given'}", hint="check the address")
        self.code = code


class _Busy(Exception):
    def __init__(self, why: str, after_s: float, fault: ServerFault) -> None:
        super().__init__(why)
        self.why, self.after_s, self.fault = why, after_s, fault


class _CutOff(Exception):
    pass


def _unpacked(answer: IO[bytes], encoding: str) -> bytes:
    """The body; `TooMuch` where it is more than may be held in memory, packed or not."""
    most, parts, size = most_bytes(), list[bytes](), 0
    stream = gzip.GzipFile(fileobj=answer) if encoding == "gzip" else answer
    while part := stream.read(1 << 20):
        parts.append(part)
        size += len(part)
        if size > most:
            raise TooMuch(f"the answer has more than {most >> 20:,} MiB; {VARIABLE} allows more")
    return b"".join(parts)


def _reason(error: urllib.error.HTTPError) -> tuple[str, str]:
    """The kind of error and the words the server gave with its status; markup is left out."""
    try:
        raw = _unpacked(error, error.headers.get("Content-Encoding", ""))
    except (OSError, EOFError, zlib.error, TooMuch, http.client.HTTPException):
        return "", ""
    try:
        answer = msgspec.json.decode(raw, type=Answer)
        return answer.error_type, answer.error[:300]
    except UNREADABLE:
        text = raw.decode("utf-8", "replace").strip()
        return "", "" if text.startswith("<") else " ".join(text.split())[:300]


def _after_s(text: str | None) -> float:
    """Retry-After in seconds: a number or a date."""
    if not text:
        return 0.0
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0
