"""What a command of our own sets up before it loads anything."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

from gpuledger.quick_start import ONE_THREAD, keep_memory

SHOW = """
import gc, json, os, sys
sys.argv = ["gpuledger", *sys.argv[1:]]
from gpuledger.cli import main
main()
names = ("MIMALLOC_PURGE_DELAY", "OPENBLAS_NUM_THREADS")
print(json.dumps([gc.get_threshold()[0], *map(os.environ.get, names), gc.get_freeze_count() > 0]))
"""


def _set_up(command: str, **given: str) -> list[object]:
    clean = {name: value for name, value in os.environ.items() if name not in {"MIMALLOC_PURGE_DELAY", *ONE_THREAD}}
    clean |= given
    run = [sys.executable, "-c", SHOW, command, "--help"]
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=clean)
    found: list[object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_commands_of_our_own_keep_memory_and_those_of_users_are_left_alone():
    assert _set_up("analyze") == [150_000, "-1", "1", True]
    assert _set_up("record") == [_default_threshold(), None, None, False]


def test_threads_that_the_user_set_stay():
    assert _set_up("analyze", OPENBLAS_NUM_THREADS="4")[2] == "4"


def _default_threshold() -> int:
    code = "import gc; print(gc.get_threshold()[0])"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def test_a_c_library_without_the_call_is_no_fault(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "5")
    keep_memory()


HELP = """
import sys
from gpuledger.quick_start import without_help_texts
with without_help_texts():
    import pyarrow.compute as pc
    from pyarrow.vendored import docscrape
    assert "pydoc" not in sys.modules, "help texts were taken apart"
    assert pc.sum([1, 2]).as_py() == 3 and pc.sum.__doc__.startswith("Compute the sum")
    assert docscrape.NumpyDocString("").keys() is not None
    assert docscrape.dedent_lines([" a"]) == ["a"]
from pyarrow.vendored.docscrape import NumpyDocString
assert NumpyDocString("Sum.")["Summary"] == ["Sum."]
with without_help_texts():
    from pyarrow.vendored.docscrape import NumpyDocString as again
assert again is NumpyDocString
"""


def test_arrow_works_without_its_help_texts():
    subprocess.run([sys.executable, "-c", HELP], check=True)
