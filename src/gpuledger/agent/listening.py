"""Is the agent well, asked over HTTP?

/healthz   200 while samples are taken, else 503 and why: a restart may help
/metrics   Prometheus text: last sample, last shipment, spool, what was lost

A lake that cannot be reached does not make an agent unwell: restarting it would not help. It shows in the metrics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from gpuledger.agent.notes import AgentNotes, Why
from gpuledger.errors import InputError
from gpuledger.live.exposition import CONTENT_TYPE, Family, family, text_of


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 takes a free one."""

    host: str
    port: int


def address_of(text: str) -> Address:
    """HOST:PORT, or PORT alone for this machine only."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise InputError(f"{text!r} is not an address", hint="write HOST:PORT, for example 127.0.0.1:9465")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


class Listener:
    """Answers while the block runs."""

    def __init__(self, address: Address, notes: Callable[[], AgentNotes], unwell: Callable[[], str]) -> None:
        try:
            self._server = ThreadingHTTPServer((address.host, address.port), _handler(notes, unwell))
        except OSError as error:
            hint = "choose another address with --listen, or leave it out"
            where = f"{address.host}:{address.port}"
            raise InputError(f"cannot listen on {where}: {error.strerror or error}", hint=hint) from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Listener:
        threading.Thread(target=self._server.serve_forever, name="gpuledger-listener", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _t: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(notes: Callable[[], AgentNotes], unwell: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5.0

        def do_GET(self) -> None:
            if self.path.split("?")[0] == "/healthz":
                why = unwell()
                self._answer(503 if why else 200, f"{why or 'ok'}\n", "text/plain; charset=utf-8")
            elif self.path.split("?")[0] == "/metrics":
                self._answer(200, text_of(families(notes())), CONTENT_TYPE)
            else:
                self._answer(404, "there are /healthz and /metrics\n", "text/plain; charset=utf-8")

        def _answer(self, status: int, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's name
            """Probes come every few seconds: not worth a line."""

    return Handler


def families(notes: AgentNotes) -> Iterator[Family]:
    """The agent's figures for Prometheus."""
    gauges = {
        "last_sample_timestamp_seconds": ("Time of the newest sample in the spool.", _seconds(notes.last_sample_ms)),
        "last_ship_timestamp_seconds": ("Time of the last shipment.", _seconds(notes.last_ship_ms)),
        "spool_bytes": ("Size of the spool.", notes.spool_bytes),
        "spool_limit_bytes": ("Size at which the oldest samples are dropped.", notes.spool_max_bytes),
        "waiting_samples": ("Samples not shipped yet.", notes.waiting_rows),
        "devices": ("GPUs under recording.", len(notes.recording.devices) if notes.recording else 0),
    }
    for name, (meaning, value) in gauges.items():
        yield family(f"gpuledger_agent_{name}", meaning, [({}, value)])
    counters = {
        "shipped_samples_total": ("Samples shipped.", notes.shipped_rows),
        "rejected_samples_total": ("Samples that the lake rejected.", notes.rejected_rows),
        "ship_failures_total": ("Shipments that failed.", notes.failures),
        "cpu_seconds_total": ("CPU time of the agent.", notes.cpu_s),
    }
    for name, (meaning, amount) in counters.items():
        yield Family(f"gpuledger_agent_{name}", meaning, (({}, amount),), "counter")
    lost = tuple(({"reason": why.value}, sum(loss.rows for loss in notes.losses if loss.why is why)) for why in Why)
    yield Family("gpuledger_agent_lost_samples_total", "Samples the lake will not get.", lost, "counter")


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / 1000
