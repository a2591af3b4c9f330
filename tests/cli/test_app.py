"""Which exit code and which words does each kind of ending have?"""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time

import click
import pytest

from gpuledger.cli import app
from gpuledger.cli.app import CommandFolder, root, run
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.errors import DeviceError


def start(*args, **how):
    return subprocess.Popen([sys.executable, "-m", "gpuledger", *args], text=True, **how)


def test_help_lists_every_command_with_its_sentence(cli):
    ended = cli("--help")
    assert ended.code == 0
    for name in ("analyze", "catalog", "demo", "import", "synth", "tidy"):
        assert f"\n  {name} " in ended.out
    assert "..." not in ended.out.split("Commands:")[1].split("\n\n")[0]
    assert cli().out == ended.out


def test_version(cli):
    from gpuledger import __version__

    assert cli("--version").out == f"gpuledger {__version__}\n"


def test_every_command_has_help(cli):
    for name in root.list_commands(click.Context(root)):
        assert cli(name, "--help").code == 0


def test_unknown_command_suggests_the_nearest(cli):
    ended = cli("imprt", "x.csv")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: no command is called 'imprt'\nnext: did you mean import?\n"


def test_bad_options_end_with_two(cli):
    for args in (
        ["import", "--no-such"],
        ["import"],
        ["synth", "x", "--gpus", "many"],
        ["import", "x", "--fail-on", "y"],
    ):
        ended = cli(*args)
        assert (ended.code, ended.out) == (2, ""), args
        assert ended.err.startswith("error: ")
        assert f"next: see gpuledger {args[0]} --help" in ended.err


@pytest.fixture
def failing(monkeypatch, cli):
    """Run a command that ends with the given error."""

    def call(error: BaseException, *args: str):
        def fail() -> None:
            raise error

        command = click.Command(
            "fail", callback=fail, params=[click.Option(["--json"], is_flag=True, expose_value=False)]
        )
        monkeypatch.setattr(CommandFolder, "get_command", lambda *_: command)
        monkeypatch.setattr(CommandFolder, "_modules", lambda _self: {"fail": "fail"})
        return cli("fail", *args)

    return call


def test_our_own_error(failing):
    ended = failing(DeviceError("GPU 3 does not answer", hint="run nvidia-smi"))
    assert (ended.code, ended.err) == (2, "error: GPU 3 does not answer\nnext: run nvidia-smi\n")


def test_a_bug_says_so_and_how_to_see_more(failing, monkeypatch):
    ended = failing(ZeroDivisionError("division by zero"))
    assert ended.code == 70
    assert "bug in gpuledger: ZeroDivisionError: division by zero" in ended.err
    assert "GPULEDGER_DEBUG=1" in ended.err
    assert "Traceback" not in ended.err
    monkeypatch.setenv("GPULEDGER_DEBUG", "1")
    assert "Traceback" in failing(ZeroDivisionError("division by zero")).err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (MemoryError(), 2, "out of memory"),
        (
            OSError(28, "No space left on device", "report.html"),
            2,
            "report.html: cannot read or write: the disk is full",
        ),
        (PermissionError(13, "Permission denied", "x"), 2, "x: cannot read or write: permission denied"),
        (SystemExit(5), 5, ""),
        (click.exceptions.Exit(3), 3, ""),
    ],
)
def test_other_endings(failing, error, code, words):
    ended = failing(error)
    assert ended.code == code
    assert words in ended.err
    assert bool(ended.err) == bool(words)


def test_errors_as_json_leave_stdout_empty(failing):
    ended = failing(DeviceError("two\nlines", hint="mend it"), "--json")
    assert ended.out == ""
    assert json.loads(ended.err) == {"error": "two lines", "next": "mend it", "exit_code": 2}


def test_a_closed_pipe_is_quiet():
    for args in (["catalog", "gpus"], ["catalog", "gpus", "--json"]):
        process = start(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        assert process.wait(timeout=HUNG_S) == 141
        assert process.stderr.read() == ""
        process.stderr.close()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_change_nothing_but_what_is_seen(tmp_path, closed):
    program = f"{shlex.quote(sys.executable)} -m gpuledger"
    for args, code in (
        (f"synth {tmp_path}/f.csv --gpus 1 --days 1", 0),
        (f"analyze {tmp_path}/f.csv", 0),
        ("analyze x", 2),
    ):
        done = subprocess.run(f"{program} {args} {closed}", shell=True, check=False, capture_output=True, text=True)
        assert done.returncode == code, done.stderr


def test_ctrl_c_leaves_the_lake_alone(tmp_path):
    # A test run in the background may have inherited that Ctrl-C is ignored; whoever presses it has not.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    synth = start("synth", str(tmp_path / "f.csv"), "--days", "3000", stderr=subprocess.PIPE, **heard)
    part = tmp_path / f".f.csv.{synth.pid}.part"
    deadline = time.monotonic() + HUNG_S
    while not part.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    synth.send_signal(signal.SIGINT)
    _, said = synth.communicate(timeout=HUNG_S)
    assert synth.returncode == 130
    assert said.startswith("error: interrupted\nnext: ")
    assert list(tmp_path.iterdir()) == []


def test_progress_needs_a_terminal(tmp_path):
    """On a terminal the bars are drawn on stderr and stdout stays clean; piped, nothing is drawn."""
    args = ["synth", str(tmp_path / "f.csv"), "--gpus", "2", "--days", "0.5"]
    for more, drawn in (([], True), (["--json"], False), (["-q"], False)):
        ours, theirs = pty.openpty()
        process = start(*args, *more, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        out = process.stdout.read()
        process.stdout.close()
        seen = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            seen += block
        os.close(ours)
        assert process.wait(timeout=HUNG_S) == 0
        assert (b"writing samples" in seen) == drawn, more
        assert "writing samples" not in out
    piped = subprocess.run([sys.executable, "-m", "gpuledger", *args], capture_output=True, text=True, check=True)
    assert piped.stderr == ""


def test_run_reads_the_real_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpuledger", "--version"])
    assert run() == 0
    assert capsys.readouterr().out.startswith("gpuledger ")


def test_commands_are_found_without_importing_them(monkeypatch):
    monkeypatch.setattr(app.importlib, "import_module", _only_packages(app.importlib.import_module))
    assert {"import", "analyze", "demo"} <= set(root.list_commands(click.Context(root)))


def _only_packages(real):
    def load(name: str):
        assert name == "gpuledger.cli.commands", f"{name} was imported to list the commands"
        return real(name)

    return load
