"""One server of each kind for the tests of a worker; a lake of its own for each test."""

import itertools
import os

import pytest

import gcs_server
from s3_lakes import Writers
from s3_server import BUCKET, Server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3_process(tmp_path_factory):
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    server = Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def gcs_process(tmp_path_factory):
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    server = gcs_server.Server(tmp_path_factory.mktemp("gcs"))
    yield server
    server.close()


@pytest.fixture
def s3(request, monkeypatch):
    """The server, without faults, and an environment that leads to it: S3's unless a module asks for both."""
    server = request.getfixturevalue(getattr(request, "param", "s3_process"))
    given = ("AWS_", "GOOGLE_", "GPULEDGER_CACHE", "GPULEDGER_STORE")
    for name in [n for n in os.environ if n.startswith(given)]:
        monkeypatch.delenv(name)
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    server.fault()
    yield server
    server.fault()


@pytest.fixture
def impatient(monkeypatch):
    """Gives up after two seconds. Clients are opened anew, so that they know."""
    from gpuledger.lake.stores import bucket

    monkeypatch.setenv("GPULEDGER_STORE_WAIT", "2")
    bucket._opened.cache_clear()
    yield
    bucket._opened.cache_clear()


@pytest.fixture
def place(s3):
    """The address of a lake that is not there yet."""
    return f"{s3.scheme}://{BUCKET}/test-{next(_NUMBERS)}/lake"


@pytest.fixture
def writers(s3, monkeypatch):
    """Writers in processes of their own; the test itself looks anew each time, not once a second."""
    monkeypatch.setattr("gpuledger.lake.stores.bucket.FRESH_S", 0.0)
    found = Writers(s3.env)
    yield found
    found.close()
