"""What a command of our own sets up before it loads anything."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

from gpuledger.quick_start import keep_memory

SHOW = """
import gc, json, os, sys
sys.argv = ["gpuledger", *sys.argv[1:]]
from gpuledger.cli import main
main()
print(json.dumps([gc.get_threshold()[0], os.environ.get("MIMALLOC_PURGE_DELAY")]))
"""


def _set_up(command: str) -> list[object]:
    clean = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
    run = [sys.executable, "-c", SHOW, command, "--help"]
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=clean)
    found: list[object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_commands_of_our_own_keep_memory_and_those_of_users_are_left_alone():
    threshold, purge = _set_up("analyze")
    assert (threshold, purge) == (150_000, "-1")
    assert _set_up("record") == [_default_threshold(), None]


def _default_threshold() -> int:
    code = "import gc; print(gc.get_threshold()[0])"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def test_a_c_library_without_the_call_is_no_fault(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "5")
    keep_memory()
