"""Is a command recorded without anyone noticing, and does nothing of ours change its end?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpuledger.devices.device import Source
from gpuledger.devices.replay.clock import HUNG_S, QuickClock
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import open_part
from gpuledger.recording.command import (
    CANNOT_RUN,
    NOT_FOUND,
    CannotStart,
    Relay,
    check_command,
    run_command,
    wait_for_end,
)
from gpuledger.recording.runs import read_runs

DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"
REPLAY = f"replay:{DATA}"


def rows(lake: Path) -> int:
    return sum(p.rows for p in Lake(lake).manifest().parts)


def lasting(clock: QuickClock, seconds: float, file: Path, then: str) -> list[str]:
    """A command that ends, in a way of its own, once the clock of its recording shows so many seconds."""

    def tell() -> None:
        clock.until(seconds)
        file.touch()

    threading.Thread(target=tell).start()
    code = f"import os, time\nwhile not os.path.exists({str(file)!r}): time.sleep(0.01)\n{then}"
    return [sys.executable, "-c", code]


def test_a_command_is_recorded_and_its_code_passes(tmp_path: Path) -> None:
    said: list[str] = []
    clock = QuickClock(50.0, lasts_s=23.95)
    argv = lasting(clock, 23.95, tmp_path / "end", "raise SystemExit(9)")
    done = run_command(argv, tmp_path, device=REPLAY, clock=clock, say=said.append, labels={"namespace": "ml"})
    assert done.exit_code == 9
    assert done.notes is not None
    assert done.notes.exit_code == 9
    assert done.notes.ticks == 240
    assert done.notes.rows == rows(tmp_path) >= 100
    assert read_runs(Lake(tmp_path)) == [done.notes]
    part = Lake(tmp_path).manifest().parts[0]
    with open_part(Lake(tmp_path).path(part)) as file:
        first = file.read().to_pylist()[0]
    assert (first["namespace"], first["run_id"]) == ("ml", done.notes.run_id)
    assert first["workload"] == Path(sys.executable).name


def test_a_command_killed_hard_leaves_its_samples(tmp_path: Path) -> None:
    clock = QuickClock(50.0)
    argv = lasting(clock, 8.0, tmp_path / "end", "os.kill(os.getpid(), 9)")
    done = run_command(argv, tmp_path, device=REPLAY, clock=clock, say=lambda _: None)
    assert done.exit_code == 137
    assert rows(tmp_path) > 20


@pytest.mark.parametrize(("argv", "code"), [(["no-such-command-here"], 127), (["/"], 126), (["/etc/passwd"], 126)])
def test_a_command_that_cannot_start_leaves_no_trace(tmp_path: Path, argv: list[str], code: int) -> None:
    said: list[str] = []
    lake = tmp_path / "lake"
    done = run_command(argv, lake, device=REPLAY, say=said.append)
    assert done.exit_code == code
    assert done.notes is None
    assert argv[0] in said[0]
    assert not lake.exists()


def test_without_a_driver_the_command_runs_and_it_is_said_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuledger.devices.nvml import NvmlSource
    from gpuledger.devices.replay.fake_nvml import FakeNvml
    from gpuledger.recording import record

    def none(_spec: str, _clock: object) -> Source:
        return NvmlSource(FakeNvml([], init_error=12))

    monkeypatch.setattr(record, "open_device", none)
    said: list[str] = []
    marker = tmp_path / "ran"
    argv = [sys.executable, "-c", f"open({str(marker)!r}, 'w'); raise SystemExit(3)"]
    done = run_command(argv, tmp_path / "lake", say=said.append)
    assert (done.exit_code, done.notes) == (3, None)
    assert marker.exists()
    assert "NOT RECORDING" in said[0]
    assert "replay:" in said[0]


@pytest.mark.parametrize("wrong", [{"labels": {"no_label": "x"}}, {"device": "replay:/none.csv"}, {"hz": -1}])
def test_what_we_cannot_do_is_125_and_the_command_is_not_started(tmp_path: Path, wrong: dict[str, object]) -> None:
    said: list[str] = []
    marker = tmp_path / "ran"
    argv = [sys.executable, "-c", f"open({str(marker)!r}, 'w')"]
    done = run_command(argv, tmp_path / "lake", **{"device": REPLAY, "say": said.append, **wrong})
    assert done.exit_code == 125
    assert not marker.exists()
    assert "not started" in said[0]


def test_a_lake_that_cannot_be_written_is_125(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_command([sys.executable, "-c", ""], tmp_path / "file" / "lake", device=REPLAY, say=lambda _: None)
    assert done.exit_code == 125


def test_no_command_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run_command([], tmp_path)


def test_output_input_and_signals_pass_through_the_tool_itself(tmp_path: Path) -> None:
    """The whole program: stdin to stdout, stderr apart, SIGTERM to the command, its code back, samples kept."""
    code = """
import signal, sys, time
def end(*_):
    print("ending", flush=True)
    sys.exit(77)
signal.signal(signal.SIGTERM, end)
print("to stderr", file=sys.stderr, flush=True)
print("heard", sys.stdin.readline().strip(), flush=True)
time.sleep(120)
"""
    tool = [
        sys.executable,
        "-m",
        "gpuledger",
        "record",
        "--lake",
        str(tmp_path),
        "--device",
        REPLAY,
        "--label",
        "workload=w",
    ]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    process = subprocess.Popen(
        [*tool, "--", sys.executable, "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == "heard hello\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HUNG_S)
    finally:
        process.kill()
        process.wait()
    assert out == "ending\n"
    assert process.returncode == 77
    assert err.startswith("to stderr\n")
    assert "recorded" in err
    (notes,) = read_runs(Lake(tmp_path))
    assert rows(tmp_path) == notes.rows > 0
    assert notes.exit_code == 77


def test_a_terminal_interrupts_the_command_once(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole process group: passing it on as well would interrupt twice."""
    code = """
import signal, sys, time
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(time.monotonic()))
print("ready", flush=True)
while not heard or time.monotonic() - heard[0] < 0.8:
    time.sleep(0.02)
sys.exit(10 + len(heard))
"""
    tool = [sys.executable, "-m", "gpuledger", "record", "-q", "--lake", str(tmp_path), "--device", REPLAY]
    script = tmp_path / "driver.py"
    script.write_text(
        "import os, pty, sys, time\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0: os.execv(sys.argv[1], sys.argv[1:])\n"
        "seen = b''\n"
        "while b'ready' not in seen: seen += os.read(fd, 4096)\n"
        "time.sleep(0.2); os.write(fd, b'\\x03')\n"
        "_, status = os.waitpid(pid, 0)\n"
        "sys.exit(os.waitstatus_to_exitcode(status))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), *tool, "--", sys.executable, "-c", code], timeout=HUNG_S, check=False
    )
    assert done.returncode == 11


def test_a_script_without_its_interpreter_is_127_and_the_recording_is_closed(tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    said: list[str] = []
    done = run_command([str(script)], tmp_path / "lake", device=REPLAY, say=said.append)
    assert done.exit_code == 127
    assert "job" in said[-1]
    assert read_runs(Lake(tmp_path / "lake"))[0].exit_code == 127


def test_a_recording_that_cannot_be_finished_does_not_change_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuledger.errors import LakeError
    from gpuledger.recording.writer import Recorder

    def fails(_self: Recorder) -> None:
        raise LakeError("the disk is full", hint="free some space")

    monkeypatch.setattr(Recorder, "close", fails)
    said: list[str] = []
    done = run_command([sys.executable, "-c", "raise SystemExit(5)"], tmp_path, device=REPLAY, say=said.append)
    assert done.exit_code == 5
    assert any("disk is full" in s for s in said)


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
