"""Is an argument the address of a server, and where does that server answer?"""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from gpuledger.errors import InputError

SCHEMES = {"prometheus": "http", "prometheus+http": "http", "prometheus+https": "https"}


def api_root(address: str) -> str:
    """The web address of the API from prometheus://HOST:PORT/PATH."""
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise InputError(
            f"{address!r} is not the address of a Prometheus",
            hint="write prometheus://HOST:9090, or prometheus+https://HOST/PATH for https",
        )
    if "@" in parts.netloc:
        raise InputError(
            "credentials in the address would be stored and shown", hint="use --user NAME --password-file FILE"
        )
    path = re.sub(r"/api/v1/?$", "", parts.path.rstrip("/"))
    return urlunsplit((SCHEMES[parts.scheme], parts.netloc, path, "", ""))


def is_server(address: object) -> bool:
    """Whether an argument is the address of a server rather than a file."""
    return isinstance(address, str) and address.partition("://")[0] in SCHEMES and "://" in address
