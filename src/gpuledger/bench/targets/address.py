"""Where is an endpoint, who asks there, and how is its address shown without a password?"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from gpuledger.errors import InputError

HIDDEN = "***"
_USER = re.compile(r"(?<=//).*@")  # to the last @: a password may hold anything where it was not encoded
_SECRET = re.compile(r"([?&][^=&#]*(?:key|token|secret|sig|pass|auth|code)[^=&#]*=)[^&#]*", re.IGNORECASE)
_UNSENDABLE = re.compile(r"[\x00-\x20\x7f]")
_AS_WRITTEN = "/%:=&?~+!$,;'@()*[]"


@dataclass(frozen=True)
class Address:
    """An endpoint: `host` as it is sent, `path` without /v1, `query` with its question mark or empty."""

    secure: bool
    hostname: str
    port: int
    host: str
    path: str
    query: str
    basic: str

    def target(self, api: str) -> str:
        """What is asked for: the path of an API, with the query of the address."""
        return f"{self.path}{api}{self.query}"


def shown(url: str) -> str:
    """The address for results and messages: no user, no password, no value of the query that looks like a secret."""
    return _SECRET.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", url))


def address_of(url: str) -> Address:
    """The parts of an endpoint's address; refused where it is not one."""
    hint = "write it as http://HOST:PORT, or NAME=http://HOST:PORT"
    try:
        found = urlsplit(url)
        port, name = found.port, found.hostname
    except ValueError:
        raise InputError(f"{shown(url)!r} is not an endpoint", hint=hint) from None
    if found.scheme not in ("http", "https") or not name or port == 0 or _UNSENDABLE.search(url):
        raise InputError(f"{shown(url)!r} is not an endpoint", hint=hint)
    if "@" in found.netloc and "@" in found.path + found.query:
        encode = "write @ as %40 and / as %2F in user and password"
        raise InputError(f"{shown(url)!r} is not an endpoint: it has two @", hint=encode)
    secure = found.scheme == "https"
    user = f"{unquote(found.username or '')}:{unquote(found.password or '')}"
    return Address(
        secure=secure,
        hostname=name,
        port=port or (443 if secure else 80),
        host=found.netloc.rpartition("@")[2],
        path=quote(found.path.rstrip("/").removesuffix("/v1"), safe=_AS_WRITTEN),
        query=f"?{quote(found.query, safe=_AS_WRITTEN)}" if found.query else "",
        basic=base64.b64encode(user.encode()).decode() if "@" in found.netloc else "",
    )


def authorization(address: Address, key_env: str) -> str:
    """The header that says who asks, or nothing; a user in the address comes before the variable with the API key."""
    if address.basic:
        return f"Authorization: Basic {address.basic}\r\n"
    key = os.environ.get(key_env, "") if key_env else ""
    if _UNSENDABLE.search(key) or not key.isascii():
        raise InputError(
            f"the API key in {key_env} holds a line break, a space or another character that cannot be sent",
            hint=f"set {key_env} to the key alone; tr -d '[:space:]' < FILE takes line breaks out of a file",
        )
    return f"Authorization: Bearer {key}\r\n" if key else ""
