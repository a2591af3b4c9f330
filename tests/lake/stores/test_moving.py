"""Is a lake the same lake after it was copied between a folder and a bucket, and does Azure keep it as well?"""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from gpuledger.lake.layout import Lake
from gpuledger.lake.stores.path import StorePath
from s3_lakes import assert_whole, lines_samples, work, write

AZURITE = shutil.which("azurite-blob")
ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(b"any key will do, if both sides have it").decode()


def test_a_copied_lake_goes_on(place, tmp_path):
    files = [str(write(tmp_path / f"{i}.parquet", offset=100 * i)) for i in range(3)]
    work({"lake": str(tmp_path / "lake"), "files": files[:1]})
    for file in (tmp_path / "lake").rglob("*"):
        if file.is_file() and file.name != "lock":
            (StorePath(place) / file.relative_to(tmp_path / "lake").as_posix()).write_bytes(file.read_bytes())
    work({"lake": place, "files": files[:2]})
    assert assert_whole(Lake(place)) == 240
    for file in StorePath(place).glob("*/*/*.parquet"):
        target = tmp_path / "back" / file.relative_to(StorePath(place)).as_posix()
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Lake(place).store.local([file])[0], target)
    for name in ("manifest.json", "ledger/manifest.json"):
        (tmp_path / "back" / name).write_bytes((StorePath(place) / name).read_bytes())
    work({"lake": str(tmp_path / "back"), "files": files})
    assert assert_whole(Lake(tmp_path / "back")) == 360
    assert lines_samples(Lake(tmp_path / "back")) == 360


@pytest.fixture
def container(tmp_path, monkeypatch):
    """An Azure emulator as a process of its own, with one container."""
    pytest.importorskip("obstore")
    if AZURITE is None:
        pytest.skip("azurite-blob is not installed (npm install -g azurite)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = f"http://127.0.0.1:{port}/{ACCOUNT}"
    given = [AZURITE, "--inMemoryPersistence", "--blobPort", str(port), "--skipApiVersionCheck", "--silent"]
    monkeypatch.setenv("AZURITE_ACCOUNTS", f"{ACCOUNT}:{KEY}")
    server = subprocess.Popen([*given, "--disableTelemetry"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not _answers(port):
        assert time.monotonic() < end
        time.sleep(0.1)
    for name, value in {"ACCOUNT_NAME": ACCOUNT, "ACCOUNT_KEY": KEY, "ENDPOINT": root}.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    monkeypatch.setenv("GPULEDGER_CACHE", str(tmp_path / "cache"))
    _make_container(root, "lakes")
    yield "az://lakes/fleet"
    server.kill()
    server.wait()


def _answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def _make_container(root, name):
    date, version = email.utils.formatdate(usegmt=True), "2021-12-02"
    signed = "\n".join(
        [
            "PUT",
            *[""] * 11,
            f"x-ms-date:{date}",
            f"x-ms-version:{version}",
            f"/{ACCOUNT}/{ACCOUNT}/{name}",
            "restype:container",
        ]
    )
    mark = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers = {"x-ms-date": date, "x-ms-version": version}
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(mark).decode()}"
    request = urllib.request.Request(f"{root}/{name}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request).close()


def test_a_lake_on_azure(container, tmp_path):
    for i in range(2):
        work({"lake": container, "files": [write(tmp_path / f"{i}.parquet", offset=100 * i)]})
    assert assert_whole(Lake(container)) == 240
    assert lines_samples(Lake(container)) == 240
