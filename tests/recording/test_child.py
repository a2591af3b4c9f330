"""Does a command run as if nobody stood in between?"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.recording.command import CANNOT_RUN, NOT_FOUND, CannotStart, Relay, check_command, wait_for_end


def run(code: str) -> int:
    with Relay() as relay:
        return relay.run([sys.executable, "-c", code])


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_codes_pass(code: int) -> None:
    assert run(f"raise SystemExit({code})") == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_death_by_a_signal_is_128_and_its_number(number: signal.Signals) -> None:
    assert run(f"import os; os.kill(os.getpid(), {int(number)})") == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_reach_the_command_and_not_us(number: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"""
import pathlib, signal, sys, time
def got(number, frame):
    print("got", number, flush=True)
    sys.exit(42)
signal.signal({int(number)}, got)
pathlib.Path({str(ready)!r}).touch()
time.sleep(120)
"""

    def send() -> None:
        deadline = time.monotonic() + HUNG_S
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    with Relay() as relay:
        with relay.held_back():
            thread = threading.Thread(target=send)
            thread.start()
        assert relay.run([sys.executable, "-c", code]) == 42
        thread.join()


def test_our_own_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    run("pass")
    assert (signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, [])) == before


def test_the_command_has_an_ordinary_signal_mask() -> None:
    assert run("import signal, sys; sys.exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))") == 0


@pytest.mark.parametrize("code", ["pass", "import time; time.sleep(0.2)", "import os; os.kill(os.getpid(), 9)"])
def test_it_tells_when_the_command_starts_and_has_ended_and_its_number_is_still_its_own(code: str) -> None:
    seen: list[tuple[str, int]] = []

    def ending() -> None:
        (_, pid), *_ = seen
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        seen.append((state, pid))

    with Relay() as relay:
        relay.run([sys.executable, "-c", code], started=lambda pid: seen.append(("started", pid)), ending=ending)
    assert [what for what, _ in seen] == ["started", "Z"]
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0][1], 0)


def test_outside_the_main_thread_it_just_runs() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run("raise SystemExit(5)")))
    thread.start()
    thread.join()
    assert codes == [5]


def test_commands_that_cannot_start(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for argv, code in (
        (["no-such-command-here"], NOT_FOUND),
        ([str(tmp_path / "none")], NOT_FOUND),
        ([str(plain)], CANNOT_RUN),
        ([str(tmp_path)], CANNOT_RUN),
    ):
        with pytest.raises(CannotStart) as caught:
            check_command(argv)
        assert caught.value.exit_code == code
        assert "\n  next: " in str(caught.value)
    check_command([sys.executable])
    plain.chmod(0o755)
    with Relay() as relay, pytest.raises(CannotStart) as caught:
        relay.run([str(plain)])
    assert caught.value.exit_code == CANNOT_RUN
    plain.write_text("#!/no/such/interpreter\n")
    with Relay() as relay, pytest.raises(CannotStart) as caught:
        relay.run([str(plain)])
    assert caught.value.exit_code == NOT_FOUND


def test_waiting_ends_in_time_or_when_asked() -> None:
    start = time.monotonic()
    wait_for_end(0.1)
    assert time.monotonic() - start >= 0.1
    before, waited = signal.getsignal(signal.SIGTERM), threading.Event()

    def ask() -> None:
        # Sent before somebody listens, it would end the tests.
        while signal.getsignal(signal.SIGTERM) is before and not waited.is_set():
            time.sleep(0.01)
        if not waited.is_set():
            # To this thread and not to the one that waits: a machine that stood still deals them out so.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    thread = threading.Thread(target=ask)
    thread.start()
    start = time.monotonic()
    wait_for_end(HUNG_S)
    waited.set()
    thread.join()
    assert time.monotonic() - start < HUNG_S
    assert signal.getsignal(signal.SIGTERM) is before
