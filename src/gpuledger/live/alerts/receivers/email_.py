"""Mail, through an SMTP server."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Annotated, Literal

import msgspec

from gpuledger.errors import InputError
from gpuledger.live.alerts.event import Event, details, headline
from gpuledger.live.alerts.receiver import KINDS, Receiver, Undelivered, opened_text
from gpuledger.plain_text import visible
from gpuledger.units import utc

_DOMAIN = "gpuledger.invalid"
_REFUSED = 500  # answers from here on are final, as SMTP has it


@KINDS.register("email")
class Email(Receiver, frozen=True, kw_only=True):
    """`tls`: starttls (the default), tls from the first byte, or none for a server on this machine."""

    host: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 587
    sender: str
    to: tuple[str, ...]
    user: str = ""
    password: str = ""
    tls: Literal["starttls", "tls", "none"] = "starttls"

    def check(self) -> None:
        """There must be addresses, and each must be one."""
        for address in (self.sender, *self.to):
            if "@" not in address or any(c in address for c in "\r\n"):
                raise InputError(f"{address!r} is not an e-mail address", hint="write name@example.com")
        if not self.to:
            raise InputError("to is empty", hint='name who gets the mail: to = ["oncall@example.com"]')

    def send(self, event: Event, timeout_s: float) -> None:
        """Hand the mail to the server. Its Message-ID is the event's id: servers drop one they have."""
        mail = written(event, self.sender, self.to)
        try:
            with self._server(timeout_s) as server:
                if self.user:
                    server.login(self.user, opened_text(self.password))
                server.send_message(mail)
        except smtplib.SMTPRecipientsRefused as error:
            code, why = next(iter(error.recipients.values()))
            raise Undelivered(
                f"{self.host} refused the recipients: {code} {_text(why)}", final=code >= _REFUSED
            ) from error
        except smtplib.SMTPDataError as error:
            raise Undelivered(
                f"{self.host} answered {error.smtp_code} {_text(error.smtp_error)}", final=error.smtp_code >= _REFUSED
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            raise Undelivered(f"{self.host}:{self.port}: {_text(getattr(error, 'strerror', None) or error)}") from error

    def _server(self, timeout_s: float) -> smtplib.SMTP:
        if self.tls == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=timeout_s, context=ssl.create_default_context())
        server = smtplib.SMTP(self.host, self.port, timeout=timeout_s)
        if self.tls == "starttls":
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server


def written(event: Event, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The event as mail; an end is in the thread of its beginning."""
    mail = EmailMessage()
    sign = event.severity if event.firing else "recovered"
    mail["Subject"] = visible(f"[gpuledger {sign}] {headline(event)}")
    mail["From"], mail["To"], mail["Date"] = sender, ", ".join(to), format_datetime(utc(event.at_ms))
    mail["Message-ID"] = f"<{event.id}@{_DOMAIN}>"
    mail["Auto-Submitted"] = "auto-generated"
    rows = [*details(event), ("Key", event.key), ("Id", event.id)]
    wide = max(len(name) for name, _ in rows)
    lines = [visible(headline(event)), "", *(f"{name:<{wide}}  {visible(text)}" for name, text in rows)]
    mail.set_content("\n".join(lines) + "\n")
    return mail


def _text(found: object) -> str:
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    return text.strip().partition("\n")[0].strip()[:120]
