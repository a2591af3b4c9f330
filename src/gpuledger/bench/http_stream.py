"""How is one HTTP/1.1 answer read as it comes, at the least cost per piece?

A protocol, not streams: each piece of an answer is handled in the call that received it, with no task to wake and no
copy into a reader's buffer. That is what lets one core follow tens of thousands of tokens per second.
"""

from __future__ import annotations

import asyncio

HEAD_LIMIT = 1 << 16
END = b"\r\n"
LARGE = 4096
# Hex digits of a length that carries no extension.
SHORT = 4


class Body:
    """One answer, kept as it is. `why`: what went wrong, empty where nothing did.

    Exactly one of `finished` and `broken` is called, last.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[None] = loop.create_future()
        self.code, self.raw, self.why = 0, b"", ""

    def status(self, code: int) -> None:
        """The first line came."""
        self.code = code

    def piece(self, data: bytes) -> None:
        """More of the body."""
        self.raw += data

    def fail(self, why: str) -> None:
        """Keep the first thing that went wrong."""
        self.why = self.why or why

    def finished(self) -> None:
        """The whole answer came."""
        if not self.done.done():
            self.done.set_result(None)

    def broken(self, why: str) -> None:
        """The answer will not come, or not to its end."""
        self.fail(why)
        Body.finished(self)


class Connection(asyncio.Protocol):
    """One connection, kept alive from request to request. `usable` while another request may be sent on it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._exchange: Body | None = None
        self._reset()
        self.usable = False
        self.silent = True  # nothing of the current answer came yet
        self.used = 0

    def _reset(self) -> None:
        self._buffer = b""
        self._headed = False
        self._left: int | None = None  # bytes to come: of the body, or of the current chunk
        self._chunked = self._stays = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is ready."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.usable = transport, True

    @property
    def free(self) -> bool:
        """Whether no answer is pending."""
        return self._exchange is None

    def ask(self, raw: bytes, exchange: Body) -> None:
        """Send a whole request; its answer goes to `exchange`."""
        assert self._transport is not None
        self._reset()
        self._exchange, self.silent = exchange, True
        self.used += 1
        self._transport.write(raw)

    def close(self) -> None:
        """Break off, whatever is pending."""
        self.usable = False
        self._exchange = None
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """The other side closed, or the network did."""
        self.usable = False
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if self._headed and not self._chunked and self._left is None and error is None:
            exchange.finished()  # an answer without a length ends with its connection
            return
        when = "before any answer" if self.silent else "in the middle of the answer"
        exchange.broken(f"the connection was closed {when}" + (f": {error}" if error else ""))

    def data_received(self, data: bytes) -> None:
        """More bytes."""
        if self._exchange is None:
            self.close()  # bytes without a request: the server is out of step
            return
        self.silent = False
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        if not self._headed:
            head, gap, data = data.partition(b"\r\n\r\n")
            if not gap:
                self._buffer = head
                if len(head) > HEAD_LIMIT:
                    self._fail("the answer's head does not end")
                return
            if not self._head(head):
                return
        try:
            if self._chunked:
                self._chunks(data)
            else:
                self._plain(data)
        except ValueError:
            self._fail("malformed HTTP: a chunk without its length")

    def _head(self, head: bytes) -> bool:
        lines = head.split(END)
        first = lines[0].split(b" ", 2)
        if len(first) < 2 or not first[0].startswith(b"HTTP/1.") or not first[1].isdigit():
            self._fail(f"malformed HTTP: it begins with {lines[0][:60]!r}")
            return False
        fields = {k.strip().lower(): v.strip().lower() for k, _, v in (line.partition(b":") for line in lines[1:])}
        self._headed, self._chunked = True, b"chunked" in fields.get(b"transfer-encoding", b"")
        length = fields.get(b"content-length")
        self._left = int(length) if length is not None and length.isdigit() and not self._chunked else None
        old = first[0] == b"HTTP/1.0"
        self._stays = fields.get(b"connection", b"close" if old else b"keep-alive") != b"close"
        assert self._exchange is not None
        self._exchange.status(int(first[1]))
        return self._exchange is not None

    def _plain(self, data: bytes) -> None:
        if data and self._exchange:
            self._exchange.piece(data)
        if self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                self._finish()

    def _chunks(self, data: bytes) -> None:
        """Pass on all complete chunks as one piece: what arrived together has one instant."""
        if self._alone(data):
            return
        at, left, size, found, last = 0, self._left, len(data), [], False
        while not last:
            if left is None:
                end = data.find(END, at)
                if end < 0:
                    break
                head = data[at:end]
                left = _length(head if b";" not in head else head.partition(b";")[0])
                at = end + 2
            if size - at < left + 2:
                # The part of a large chunk is not held back; its end must come whole.
                if LARGE < size - at <= left:
                    found.append(data[at:])
                    left -= size - at
                    at = size
                break
            last = left == 0
            if not last:
                found.append(data[at : at + left])
            at += left + 2
            left = None
        self._left, self._buffer = left, data[at:]
        if found and self._exchange is not None:
            self._exchange.piece(found[0] if len(found) == 1 else b"".join(found))
        if last:
            self._finish()

    def _alone(self, data: bytes) -> bool:
        """The usual case, one token: a single whole chunk with nothing before or after it."""
        if self._left is not None or self._exchange is None:
            return False
        end = data.find(END)
        if not 0 < end <= SHORT or not (head := data[:end]).isalnum():
            return False
        length = int(head, 16)
        if not length or len(data) != end + length + 4:
            return False
        self._exchange.piece(data[end + 2 : -2])
        return True

    def _finish(self) -> None:
        exchange, self._exchange = self._exchange, None
        self.usable = self._stays
        if not self._stays and self._transport is not None:
            self._transport.close()
        if exchange is not None:
            exchange.finished()

    def _fail(self, why: str) -> None:
        exchange = self._exchange
        self.close()
        if exchange is not None:
            exchange.broken(why)


def _length(digits: bytes) -> int:
    """The length of a chunk; a negative one would have the same bytes read again forever."""
    if (found := int(digits, 16)) < 0:
        raise ValueError(digits)
    return found
