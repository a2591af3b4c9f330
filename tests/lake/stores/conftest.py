"""One S3 server for the tests of a worker; a lake of its own for each test."""

import itertools
import os

import pytest

from s3_server import BUCKET, Server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3_process(tmp_path_factory):
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    server = Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.close()


@pytest.fixture
def s3(s3_process, monkeypatch):
    """The server, without faults, and an environment that leads to it."""
    for name in [n for n in os.environ if n.startswith(("AWS_", "GPULEDGER_CACHE", "GPULEDGER_STORE"))]:
        monkeypatch.delenv(name)
    for name, value in s3_process.env.items():
        monkeypatch.setenv(name, value)
    s3_process.fault()
    yield s3_process
    s3_process.fault()


@pytest.fixture
def place(s3):
    """The address of a lake that is not there yet."""
    return f"s3://{BUCKET}/test-{next(_NUMBERS)}/lake"
