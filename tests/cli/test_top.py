"""Does `gpuledger top` print one look without a terminal, and run in one?"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

REPLAY = f"replay:{Path(__file__).parents[1] / 'data' / 'h200_replay.csv.gz'}"


def test_without_a_terminal_one_table_is_printed(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ended = cli("top", "--device", REPLAY, "--price", "4")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert "1 GPU" in lines[0]
    assert lines[3].split()[:3] == ["GPU", "UTIL%", "REAL%"]
    assert "$4.00/h, as given" in ended.out
    assert max(map(len, lines)) <= 80


def test_a_lake_as_json(cli, fleet_lake, tmp_path):
    shutil.copytree(fleet_lake, tmp_path / "lake")
    said = cli("top", "--lake", "lake", "--json").json()
    assert said["statement"] == "top"
    assert len(said["gpus"]) == said["totals"]["gpus"] == 3
    one = cli("top", "--lake", "lake", "--json", "--filter", said["gpus"][2]["device"]).json()
    assert [gpu["device"] for gpu in one["gpus"]] == [said["gpus"][2]["device"]]
    by_name = cli("top", "--lake", "lake", "--json", "--sort", "name").json()
    names = [gpu["name"] for gpu in by_name["gpus"]]
    assert names == sorted(names)


def test_a_market_price_comes_with_its_date(cli, fleet_lake, tmp_path):
    shutil.copytree(fleet_lake, tmp_path / "lake")
    assert "market median of 20" in cli("top", "--lake", "lake", "--once").out


@pytest.mark.parametrize(
    ("args", "what", "following"),
    [
        (("--lake", "nowhere"), "no lake was found", "gpuledger import"),
        (("--device", "nvml", "--lake", "x"), "--device and --lake", "give one"),
        (("--last", "1h"), "--last goes with --lake", "ten seconds"),
        (("--device", "replay:missing.csv"), "missing.csv", "check"),
        (("--device", "tpu"), "no device is called 'tpu'", "nvml"),
        (("--lake", "x", "--price", "free"), "--price", "for example 2.50"),
        (("--sort", "color"), "color", "--help"),
        (("--every", "0"), "--every: '0' is not a length of time", "5 is 5s"),
        (("--every", "2 weeks"), "--every: '2 weeks' is not a length of time", "0.5s to 1h"),
        (("--every", "2h"), "--every 2h is out of range", "0.5s to 1h"),
    ],
)
def test_bad_input_says_what_to_do_next(cli, args, what, following):
    ended = cli("top", *args)
    assert ended.code == 2
    assert not ended.out
    assert what in ended.err.splitlines()[0]
    assert following in ended.err.splitlines()[1]


def test_without_a_driver_the_next_step_is_named(cli, monkeypatch):
    import pynvml

    def missing():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    ended = cli("top")
    assert ended.code == 2
    assert "no NVIDIA driver" in ended.err
    assert "--device replay:FILE" in ended.err


def test_without_textual_the_extra_is_named_and_one_look_works(cli, fleet_lake, tmp_path, monkeypatch):
    shutil.copytree(fleet_lake, tmp_path / "lake")
    monkeypatch.setitem(sys.modules, "textual", None)
    assert cli("top", "--lake", "lake", "--once").code == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ended = cli("top", "--lake", "lake")
    assert ended.code == 2
    assert "gpuledger[tui]" in ended.err


def test_gpus_that_give_no_reading_are_shown_as_lost(cli, monkeypatch):
    """As where every GPU falls off the bus before the first reading."""
    from gpuledger.cli.commands import top
    from gpuledger.devices.nvml import NvmlSource
    from gpuledger.devices.replay.doors import from_csv
    from gpuledger.devices.replay.faults import LostGpu
    from gpuledger.tui import live_devices

    def opened(spec, clock):
        return NvmlSource(from_csv(spec.removeprefix("replay:"), clock=clock, faults=[LostGpu(at_s=0.5)]))

    monkeypatch.setattr(live_devices, "open_device", opened)
    monkeypatch.setattr(top, "_LONGEST_S", 2.0)
    ended = cli("top", "--device", REPLAY, "--json")
    assert ended.code == 0
    said = ended.json()
    assert said["gpus"][0]["state"] == "lost"
    assert said["totals"]["util_pct"] is None


def test_in_a_real_terminal_it_draws_and_quits(tmp_path):
    command = [sys.executable, "-m", "gpuledger", "top", "--device", REPLAY, "--price", "4"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ.update(TERM="xterm-256color")
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, asked, until = b"", False, time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        if not asked and b"REAL%" in seen and b"as given" in seen:
            os.write(terminal, b"q")
            asked = True
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert asked
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"Traceback" not in seen
    assert b"\x1b[?1049l" in seen  # the terminal is given back
