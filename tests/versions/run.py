"""Does the package work with the lowest versions that pyproject.toml allows, and with the newest that resolve?

    python tests/versions/run.py lowest                     on the oldest Python, from requirements/lowest.lock
    python tests/versions/run.py newest                     on the newest Python found here
    python tests/versions/run.py newest "pyarrow==23.*"     with these held back, all else newest

It builds the wheel, installs it into an environment of its own and runs commands.toml there; exit code 1 if one fails.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent  # uv and hatchling, as locked
LOCK = ROOT / "requirements" / "lowest.lock"
ASKED = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HUNG_S = 300


class Failed(Exception):
    """What went wrong with a command."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# -- the environment


def oldest_python() -> str:
    """The oldest Python that pyproject.toml allows."""
    return str(PROJECT["requires-python"]).removeprefix(">=")


def newest_python() -> str:
    """The newest Python that pyproject.toml names and that is here."""
    named = [int(found[1]) for c in PROJECT["classifiers"] if (found := re.search(r":: 3\.(\d+)$", c))]
    for minor in sorted(named, reverse=True):
        find = [TOOLS / "uv", "python", "find", "--quiet", "--no-python-downloads", f"3.{minor}"]
        if subprocess.run(find, check=False, capture_output=True).returncode == 0:
            return f"3.{minor}"
    return oldest_python()


def uv(*words: str) -> None:
    subprocess.run([TOOLS / "uv", "--quiet", *words], check=True)


class Environment:
    """A Python with the package in it."""

    def __init__(self, folder: Path, python: str, limits: Path) -> None:
        """`limits`: a file of versions, with or without hashes; of what it does not name the newest is taken."""
        self.bin, self._limits = folder / "env" / "bin", limits
        uv("venv", "--python", python, str(self.bin.parent))
        build = [TOOLS / "python", "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (self._wheel,) = folder.glob("*.whl")

    def install(self, extras: Sequence[str], tools: Sequence[str]) -> None:
        """Install the package with these extras, and what its commands are run with."""
        python = ("--python", str(self.bin / "python"))
        asked = f"gpuledger[{','.join(extras)}] @ {self._wheel.as_uri()}"
        uv("pip", "install", *python, "--constraint", str(self._limits), asked, *tools)
        uv("pip", "check", *python)


# -- what is run in it


class Runs:
    """The commands of one environment in one folder, and how many of them failed."""

    def __init__(self, programs: Path, folder: Path) -> None:
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        given = {"PATH": path, "GPULEDGER_CONFIG": "", "COLUMNS": "100", "TERM": "xterm-256color"}
        left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"}
        self.folder, self.passed, self.failed = folder, 0, 0
        self.environ = {name: value for name, value in os.environ.items() if name not in left_out} | given

    def run(self, check: Callable[[str], None], line: str) -> None:
        """Check one command, and print how it went."""
        start = time.monotonic()
        try:
            check(line)
            fault = None
        except (Failed, OSError, subprocess.TimeoutExpired) as error:
            fault = error
        self.passed, self.failed = self.passed + (fault is None), self.failed + (fault is not None)
        say(f"{'ok' if fault is None else 'FAILED':6} {time.monotonic() - start:5.1f} s  {line}")
        if fault is not None:
            say(str(fault))

    def _start(self, line: str, **streams: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(shlex.split(line), cwd=self.folder, env=self.environ, **streams)

    def command(self, line: str) -> None:
        """To its end."""
        with self._start(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, errors = process.communicate(timeout=HUNG_S)
            finally:
                process.kill()
        if process.returncode:
            said = "\n".join(text.decode(errors="replace")[-2000:] for text in (out, errors))
            raise Failed(f"exit code {process.returncode}\n{said}")

    def terminal(self, line: str) -> None:
        """On a terminal: q is pressed once it has drawn a GPU."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 120))
        drawn, end = b"", time.monotonic() + HUNG_S
        with self._start(line, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            with contextlib.suppress(OSError):  # the program has closed its end
                while time.monotonic() < end:
                    if select.select([ours], [], [], 1)[0]:
                        drawn += os.read(ours, 1 << 16)
                    if b"H200" in drawn:
                        os.write(ours, b"q")
            process.kill()
        os.close(ours)
        if process.returncode or b"H200" not in drawn:
            raise Failed(f"exit code {process.returncode}\n{drawn[-2000:].decode(errors='replace')}")

    def dashboard(self, line: str) -> None:
        """Until its pages have figures and all of them were read."""
        with self._start(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            try:
                said = process.stdout.readline().decode() if process.stdout else ""
                if (found := re.search(r"http://\S+/", said)) is None:
                    raise Failed(f"no address: {said}")
                end = time.monotonic() + HUNG_S
                while json.loads(fetched(f"{found[0]}api/v1/status"))["state"] != "ready":
                    if time.monotonic() > end:
                        raise Failed("it never got ready")
                    time.sleep(0.1)
                for page in ASKED["everything"]["pages"]:
                    fetched(found[0] + page)
            finally:
                process.terminate()


def fetched(url: str) -> bytes:
    """What a page holds; an answer that is not one fails."""
    with urllib.request.urlopen(url, timeout=HUNG_S) as answer:
        return bytes(answer.read())


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder, and takes whatever is sent."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_what: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of that folder."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextlib.contextmanager
def bucket(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a bucket, and the environment that leads there."""
    sys.path.insert(0, str(ROOT / "tests"))
    from s3_server import BUCKET, Server

    server = Server(folder)
    try:
        yield f"s3://{BUCKET}", server.env
    finally:
        server.close()


def run_all(environment: Environment, folder: Path, runs: Runs) -> None:
    """Everything in commands.toml."""
    for name, text in ASKED["files"].items():
        (folder / name).write_text(text.lstrip())
    with served(folder) as address, bucket(folder) as (store, found_by):
        runs.environ |= found_by
        for stage in (ASKED["core"], ASKED["everything"]):
            environment.install(stage["extras"], stage.get("tools", ()))
            for kind, lines in (("command", stage["commands"]), ("terminal", stage.get("terminal", ())),
                                ("dashboard", stage.get("dashboard", ()))):  # fmt: skip
                for line in lines:
                    runs.run(getattr(runs, kind), line.format(root=ROOT, http=address, s3=store))


def main() -> int:
    """The command of the first lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("lowest", "newest"))
    parser.add_argument("held_back", nargs="*", help="requirements such as pyarrow==23.*")
    parser.add_argument("--python", help="another Python, as a version or a path")
    asked = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpuledger-versions-") as temporary:
        place, folder = Path(temporary), Path(temporary, "work")
        folder.mkdir()
        limits = place / "limits.txt"
        limits.write_text("\n".join([LOCK.read_text() if asked.which == "lowest" else "", *asked.held_back]))
        python = asked.python or (oldest_python() if asked.which == "lowest" else newest_python())
        environment = Environment(place, python, limits)
        runs = Runs(environment.bin, folder)
        run_all(environment, folder, runs)
    say(f"{asked.which} versions on Python {python}: {time.monotonic() - start:.0f} s")
    say(f"{runs.passed} passed, {runs.failed} failed")
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
