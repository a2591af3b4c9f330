"""The modules next to these tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3_server import BUCKET, Server

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def s3_process(tmp_path_factory) -> Iterator[Server]:
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    server = Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.close()


@pytest.fixture
def bucket_lake(s3_process, monkeypatch, tmp_path) -> Iterator[str]:
    """The address of a lake on a real S3 server, and an environment that leads to it."""
    for name in [n for n in os.environ if n.startswith(("AWS_", "GPULEDGER_CACHE", "GPULEDGER_STORE"))]:
        monkeypatch.delenv(name)
    for name, value in s3_process.env.items():
        monkeypatch.setenv(name, value)
    s3_process.fault()
    yield f"s3://{BUCKET}/{tmp_path.name}/lake"
    s3_process.fault()
