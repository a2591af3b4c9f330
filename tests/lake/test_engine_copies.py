"""When is a process copied, and what does a copy keep of it?"""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from gpuledger.lake.engines.copies import Copy, may_copy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux")


def upper(given: IO[bytes], out: IO[bytes]) -> None:
    """Answer each line in capitals."""
    for line in given:
        out.write(line.upper())
        out.flush()


def open_files(_given: IO[bytes], out: IO[bytes]) -> None:
    """Name the files that are open."""
    names = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    out.write("\n".join(names).encode())


def fail(_given: IO[bytes], _out: IO[bytes]) -> None:
    raise RuntimeError("in the copy")


def test_a_copy_works_until_its_orders_end() -> None:
    copy = Copy(upper)
    for word in (b"one\n", b"two\n"):
        copy.stdin.write(word)
        copy.stdin.flush()
        assert copy.stdout.readline() == word.upper()
    copy.stdin.close()
    assert copy.stdout.read() == b""
    assert copy.wait() == 0
    copy.stdout.close()


def test_a_copy_that_is_killed_is_waited_for() -> None:
    copy = Copy(upper)
    copy.kill()
    assert copy.wait() != 0
    copy.kill()  # has ended: nothing happens
    copy.stdin.close()
    copy.stdout.close()


def test_the_ends_of_processes_may_be_ignored() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        for kill in (False, True):
            copy = Copy(upper)
            if kill:
                copy.kill()
            copy.stdin.close()
            assert copy.stdout.read() == b""
            copy.stdout.close()
            while Path(f"/proc/{copy.pid}").exists():
                time.sleep(0.01)
            copy.kill()
            copy.wait()
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(closed: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from pathlib import Path\n"
        "from gpuledger.lake.engines.copies import Copy\n"
        "def answer(given, out):\n"
        "    out.write(given.read().upper())\n"
        "copies = [Copy(answer), Copy(answer)]\n"
        "found = b''\n"
        "for copy in copies:\n"
        "    copy.stdin.write(b'word')\n"
        "    copy.stdin.close()\n"
        "    found += copy.stdout.read()\n"
        "    copy.wait()\n"
        f"Path({str(tmp_path / 'found')!r}).write_bytes(found)\n"
    )
    command = f'exec "$0" "$1" {closed}'
    done = subprocess.run(["bash", "-c", command, sys.executable, str(program)], timeout=60, check=False)
    assert done.returncode == 0
    assert (tmp_path / "found").read_bytes() == b"WORDWORD"


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_copy_that_fails_answers_nothing_and_says_why_where_asked(
    debug: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULEDGER_DEBUG", debug)
    copy = Copy(fail)
    assert copy.stdout.read() == b""
    assert copy.wait() != 0
    copy.stdin.close()
    copy.stdout.close()
    assert ("in the copy" in capfd.readouterr().err) == bool(debug)


def test_a_copy_holds_no_file_and_no_lock_of_the_process(tmp_path: Path) -> None:
    held = tmp_path / "lock"
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = Copy(upper)
        asked = Copy(open_files)
        assert str(held) not in asked.stdout.read().decode()
        asked.wait()
    with held.open("w") as again:  # the copy that waits still lives, and does not hold it
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for copy in (waiting, asked):
        copy.stdin.close()
        copy.stdout.close()
        copy.wait()


def test_a_process_with_another_thread_is_not_copied() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not may_copy()
    finally:
        done.set()
        thread.join()
