"""Is an HTTP answer read the same however the network cuts it?"""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.bench.http_stream import Connection

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Heard:
    def __init__(self):
        self.code, self.body, self.end = 0, b"", None

    def status(self, code):
        self.code = code

    def piece(self, data):
        assert data
        self.body += data

    def finished(self):
        assert self.end is None
        self.end = "finished"

    def broken(self, why):
        assert self.end is None
        self.end = why


class Line(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.sent, self.open = b"", True

    def write(self, data):
        self.sent += data

    def abort(self):
        self.open = False

    close = abort


def connected():
    connection, heard = Connection(), Heard()
    connection.connection_made(Line())
    connection.ask(b"GET", heard)
    return connection, heard


def chunked(pieces, more=b""):
    return CHUNKED + b"".join(b"%X%b\r\n%b\r\n" % (len(p), more, p) for p in pieces) + b"0\r\n\r\n"


@given(st.lists(st.binary(min_size=1, max_size=40) | st.binary(min_size=5000, max_size=9000), max_size=4), st.data())
def test_cuts_do_not_matter(pieces, data):
    raw = chunked(pieces, data.draw(st.sampled_from([b"", b";x", b";name=value"])))
    cuts = sorted({0, len(raw), *data.draw(st.lists(st.integers(0, len(raw)), max_size=8))})
    connection, heard = connected()
    for a, b in itertools.pairwise(cuts):
        connection.data_received(raw[a:b])
    assert (heard.code, heard.body, heard.end) == (200, b"".join(pieces), "finished")
    assert connection.usable
    assert connection.free


@given(st.binary(max_size=50), st.integers(1, 20))
def test_a_length_and_the_next_request_on_the_same_line(body, step):
    raw = b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    connection, heard = connected()
    for a in range(0, len(raw), step):
        connection.data_received(raw[a : a + step])
    assert (heard.code, heard.body, heard.end) == (404, body, "finished")
    again = Heard()
    connection.ask(b"GET", again)
    connection.data_received(chunked([b"hello"]))
    assert (again.body, again.end) == (b"hello", "finished")
    assert connection.used == 2


def test_ends_of_all_kinds():
    connection, heard = connected()
    connection.connection_lost(None)
    assert heard.end == "the connection was closed before any answer"
    connection, heard = connected()
    connection.data_received(CHUNKED + b"5\r\nhello\r\n")
    connection.connection_lost(ConnectionResetError("reset"))
    assert heard.end == "the connection was closed in the middle of the answer: reset"
    connection, heard = connected()
    connection.data_received(b"HTTP/1.0 200 OK\r\n\r\nall of it")
    assert heard.end is None
    connection.connection_lost(None)
    assert (heard.body, heard.end) == (b"all of it", "finished")
    connection, heard = connected()
    connection.data_received(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
    assert heard.end == "finished"
    assert not connection.usable


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "malformed HTTP: it begins with"),
        (CHUNKED + b"zz\r\nhello\r\n", "a chunk without its length"),
        (CHUNKED + b"-6\r\nhello\r\n", "a chunk without its length"),
        (b"x" * 70_000, "head does not end"),
    ],
)
def test_what_is_no_http(raw, words):
    connection, heard = connected()
    connection.data_received(raw)
    assert words in heard.end
    assert not connection.usable


def test_bytes_nobody_asked_for_end_the_connection():
    connection, _ = connected()
    connection.data_received(chunked([b"a"]))
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
    assert not connection.usable
