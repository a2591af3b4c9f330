"""How is a Ray cluster reached, and what is wrong where it is not?"""

from __future__ import annotations

import importlib
import os
import socket
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from gpuledger.errors import InputError, MissingExtra

KNOCK_S = 5.0
CONNECT_S = 45.0
CLIENT = "ray://"
NO_CLUSTER = (
    "start one (ray start --head), give the address of a running one (ray://HOST:10001), or set RAY_ADDRESS; "
    "without a cluster: --engine local"
)
NO_CLIENT = "10001 is the usual port for ray://; from a machine of the cluster itself: --engine ray"


def port_of(address: str) -> int | None:
    """The port of HOST:PORT or ray://HOST:PORT, where it is one."""
    try:
        found = urlsplit(address if "://" in address else f"//{address}")
        return found.port if found.hostname else None
    except ValueError:
        return None


def connect(address: str, what: str = "the Ray engine", hint: str = NO_CLUSTER) -> Any:
    """Ray, connected; a connection there is already is kept.

    `address`: auto (RAY_ADDRESS, else a cluster on this machine), HOST:PORT, ray://HOST:PORT from outside the cluster,
    or local: one is started here.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtra(what, "ray") from error
    if ray.is_initialized():
        return ray
    target = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    _knock(target, hint)
    settings = {"include_dashboard": False} if address == "local" else {}
    problem = _within(CONNECT_S, lambda: ray.init(target, log_to_driver=False, logging_level="error", **settings))
    if problem is not None:
        raise _explained(target, problem, hint) from problem
    return ray


def _knock(address: str, hint: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try for a minute."""
    port = port_of(address)
    if port is None:
        return
    host = urlsplit(address if "://" in address else f"//{address}").hostname or ""
    try:
        socket.create_connection((host, port), timeout=KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"Ray at {address}: {error}", hint=hint) from error


def _within(seconds: float, connect_now: Any) -> BaseException | None:
    """What went wrong while connecting; Ray has no limit of its own for every way to fail."""
    found: list[BaseException] = []

    def tried() -> None:
        try:
            connect_now()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the user gets it in words
            found.append(error)

    thread = Thread(target=tried, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return TimeoutError(f"it does not answer as Ray does within {seconds:.0f} s")
    return found[0] if found else None


def _explained(address: str, error: BaseException, hint: str) -> InputError:
    where = "Ray on this machine" if address == "auto" else f"Ray at {address}"
    text = (str(error) or type(error).__name__).strip()
    if "version mismatch" in text.casefold():
        words = " ".join(text.split())
        return InputError(f"{where}: {words}", hint="install the cluster's versions of Ray and Python here")
    first = text.splitlines()[0]
    if "ray[client]" in text:
        return InputError(f"{where}: {CLIENT} addresses need more of Ray", hint='pip install "ray[client]"')
    if "Could not find any running Ray" in text:
        return InputError("no Ray cluster runs on this machine, and RAY_ADDRESS names none", hint=hint)
    return InputError(f"{where}: {first}", hint=NO_CLIENT if address.startswith(CLIENT) else hint)
