"""What of a single file is stated instead of asked, and what is asked where files are read together?"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault, NotSaid

WRITTEN = dt.datetime(2026, 11, 16, 8, 30, tzinfo=dt.UTC)
LOG = """timestamp, index, name, utilization.gpu [%], memory.used [MiB]
2026/03/01 10:00:00.000, 0, NVIDIA L4, 50 %, 100 MiB
2026/03/01 10:00:05.000, 0, NVIDIA L4, 70 %, 100 MiB
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "rack7.csv"
    file.write_text(LOG)
    return file


def written(file: Path) -> Path:
    os.utime(file, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return file


@pytest.mark.parametrize("command", [("analyze",), ("audit",), ("import", "--lake", "lake"), ()])
def test_every_command_answers_and_states_what_it_took(log, tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    assert run([*command, str(log)]) == 0
    streams = capsys.readouterr()
    first = (streams.err or streams.out).split("stated: ")[1]
    assert " ".join(first.split()).startswith("host 'rack7' after the file's name (--host), zone UTC (--tz)")


def test_what_the_user_says_is_not_stated(log, tmp_path):
    taken = gpuledger.open(tmp_path / "lake").ingest(log, host="n1", tz="Europe/Berlin")
    assert [one.what for one in taken.stated] == ["zone Europe/Berlin"]
    assert set(gpuledger.open(tmp_path / "lake").samples().df()["host"]) == {"n1"}


def test_the_same_file_again_adds_nothing(log, tmp_path):
    lake = gpuledger.open(tmp_path / "lake")
    assert lake.ingest(log).rows_added == 2
    assert lake.ingest(log).rows_added == 0


def test_files_read_together_are_asked(log, tmp_path):
    other = tmp_path / "rack8.csv"
    shutil.copy(log, other)
    with pytest.raises(NotSaid, match="which host it is from"):
        gpuledger.open(tmp_path / "lake").ingest(log, other)
    assert not (tmp_path / "lake").exists()


def test_rounds_without_times_end_before_the_file_was_written(tmp_path):
    file = tmp_path / "dmon.txt"
    file.write_text("".join(["# gpu    pwr     sm\n# Idx      W      %\n", *["    0    300     90\n"] * 60]))
    taken = gpuledger.open(tmp_path / "lake").ingest(written(file))
    assert [one.option.partition(" ")[0] for one in taken.stated] == ["--host", "--gpu-model", "--every", "--at"]
    at_ms = gpuledger.open(tmp_path / "lake").samples().df()["at_ms"]
    assert set(at_ms.diff().dropna()) == {1000}
    assert at_ms.max() <= WRITTEN.timestamp() * 1000 < at_ms.max() + 10_000


def test_a_model_is_unknown_where_no_column_names_it(tmp_path, capsys):
    file = tmp_path / "log.csv"
    file.write_text(LOG.replace(" name,", "").replace(" NVIDIA L4,", ""))
    assert run(["audit", str(file)]) == 0
    assert "GPU model unknown (--gpu-model)" in capsys.readouterr().err
    assert run(["audit", str(file), "--json"]) == 0
    assert '"paid_usd": null' in capsys.readouterr().out


def test_a_command_comes_before_a_file_of_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalog").write_text(LOG)
    assert run(["catalog", "gpu", "l4", "--json"]) == 0
    capsys.readouterr()
    assert run(["./catalog"]) == 0
    assert "1 GPU" in capsys.readouterr().out
    assert run(["catalogue.csv"]) == 2


@pytest.mark.parametrize("hours", [2, 9, 14])
def test_a_fresh_log_from_east_of_utc_is_of_a_zone_in_which_it_is_past(tmp_path, capsys, hours):
    now = dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)
    stamps = [f"{now - dt.timedelta(seconds=60 - n):%Y/%m/%d %H:%M:%S}.000" for n in range(60)]
    file = tmp_path / "rack7.csv"
    file.write_text("\n".join([LOG.split("\n")[0], *(f"{at}, 0, NVIDIA L4, 50 %, 100 MiB" for at in stamps)]))
    assert run(["analyze", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["gpu_util_pct"] == 50
    zone = f"zone UTC+{hours} or further east, as in UTC its times are later than now"
    assert zone in [one["what"] for one in said["reading"]["stated"]]
    with pytest.raises(FileFault) as refused:  # in a lake it would be another zone each hour
        gpuledger.open(tmp_path / "lake").ingest(file)
    assert "--tz" in refused.value.hint


def test_a_clock_that_no_zone_explains_is_refused(tmp_path):
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    (tmp_path / "rack7.csv").write_text(LOG.replace("2026/03/01", f"{later:%Y/%m/%d}"))
    with pytest.raises(FileFault, match="later than now"):
        gpuledger.open(tmp_path / "lake").ingest(tmp_path / "rack7.csv")


def test_seconds_since_a_start_end_when_the_file_was_written(tmp_path):
    file = tmp_path / "run.csv"
    file.write_text("elapsed_s,gpu,gpu_util_pct\n" + "".join(f"{60 * n},0,50\n" for n in range(240)))
    lake = gpuledger.open(tmp_path / "lake")
    assert lake.ingest(written(file)).rows_rejected == 0
    assert lake.samples().df()["at_ms"].max() == WRITTEN.timestamp() * 1000


def on_a_terminal(*words: str, columns: int) -> str:
    """What a command writes to a terminal of this width, with the codes that move its cursor."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    running = subprocess.Popen([sys.executable, "-m", "gpuledger", *words], stdout=side, stderr=side, env=env)
    os.close(side)
    seen = b""
    with contextlib.suppress(OSError):  # the other end closes
        while part := os.read(main, 1 << 16):
            seen += part
    os.close(main)
    assert running.wait() == 0
    return seen.decode()


@pytest.mark.parametrize("columns", [60, 100])
def test_bars_leave_what_is_stated_on_a_terminal(log, columns):
    seen = on_a_terminal("audit", str(log), columns=columns)
    line = next(line for line in re.split(r"[\r\n]+", seen) if "stated:" in line)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)
    assert plain.startswith("stated: host 'rack7' after the file's name (--host), zone UTC (--tz)")
    assert "posting" not in plain


def test_a_file_of_the_same_name_from_another_host_is_asked(log, tmp_path):
    lake = gpuledger.open(tmp_path / "lake")
    assert lake.ingest(log).rows_added == 2
    other = tmp_path / "other" / log.name
    other.parent.mkdir()
    other.write_text(LOG.replace(".000", ".400"))
    with pytest.raises(NotSaid, match="other samples of a host called 'rack7'"):
        lake.ingest(other)
    assert len(lake.samples().df()) == 2
    assert lake.ingest(other, host="rack8").rows_added == 2
    log.write_text(LOG + "2026/03/01 10:00:10.000, 0, NVIDIA L4, 70 %, 100 MiB\n")  # the log has grown
    assert lake.ingest(log).rows_added == 1


@pytest.mark.parametrize(
    ("watts", "mib", "model"), [(320, 10240, "RTX-3080-10GB"), (400, 81920, None), (700, 81559, None)]
)
def test_a_model_that_others_share_limit_and_memory_with_stays_unknown(tmp_path, watts, mib, model):
    """An A800 reports the limit and the memory of an A100: it must not have its price."""
    rows = "".join(f"2026/03/01 10:00:{s:02}.000, 0, 30 %, {watts}.00 W, {mib} MiB\n" for s in range(10))
    head = "timestamp, index, utilization.gpu [%], power.default_limit [W], memory.total [MiB]\n"
    (tmp_path / "log.csv").write_text(head + rows)
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(tmp_path / "log.csv")
    assert {name for name in lake.samples().df()["gpu_model"] if isinstance(name, str)} == ({model} if model else set())
