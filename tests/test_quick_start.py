"""What a command of our own sets up before it loads anything."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

from core_install import WITHOUT_PANDAS
from gpuledger.quick_start import ONE_THREAD, keep_memory

SHOW = """
import gc, json, os, sys
sys.argv = ["gpuledger", *sys.argv[1:]]
from gpuledger.cli import main
main()
names = ("MIMALLOC_PURGE_DELAY", "OPENBLAS_NUM_THREADS")
print(json.dumps([gc.get_threshold()[0], *map(os.environ.get, names)]))
"""


def _set_up(command: str, **given: str) -> list[object]:
    clean = {name: value for name, value in os.environ.items() if name not in {"MIMALLOC_PURGE_DELAY", *ONE_THREAD}}
    clean |= given
    run = [sys.executable, "-c", SHOW, command, "--help"]
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=clean)
    found: list[object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_commands_of_our_own_keep_memory_and_those_of_users_are_left_alone():
    assert _set_up("analyze") == [150_000, "-1", "1"]
    assert _set_up("record") == [_default_threshold(), None, None]


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


LEAN = """
import sys
from gpuledger.quick_start import without_extras, without_help_texts
with without_help_texts(), without_extras():
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet
    assert pa.array(np.arange(3)).to_pylist() == [0, 1, 2] and np.unique([2, 1, 2]).tolist() == [1, 2]
    spared = {"numpy._typing._char_codes", "numpy.ma.core", "pyarrow._s3fs"} & set(sys.modules)
    assert not spared, spared
    masked = np.ma.masked_array([1, 2], [True, False])
    assert "numpy.ma.core" in sys.modules, "what is used is the real one"
    assert pa.array(masked).to_pylist() == [None, 2] and np.ma.is_masked(masked)
    import numpy.typing
    assert numpy.typing.NDArray[np.int64].__origin__ is np.ndarray
import numpy._core._add_newdocs
assert "numpy._typing._char_codes" in sys.modules
"""


def test_what_is_spared_is_there_once_it_is_used():
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS + LEAN], check=True)


WITH_PANDAS = """
import sys
from gpuledger.quick_start import without_extras, without_help_texts
with without_help_texts(), without_extras():
    import pyarrow as pa
    assert pa.array([1, 2]).to_pylist() == [1, 2] and "pandas" in sys.modules, "Arrow no longer imports pandas"
    import pandas
    frame = pandas.DataFrame({"x": [1.0, None], "label": ["a", "b"], "at": pandas.to_datetime([0, 1], utc=True)})
    assert pa.table(frame).to_pandas().equals(frame)
    assert frame.groupby("label").x.sum().to_dict() == {"a": 1.0, "b": 0.0}
    assert frame.to_html() and frame.to_csv()
"""


def test_pandas_works_where_it_is_installed():
    subprocess.run([sys.executable, "-c", WITH_PANDAS], check=True)


PARTS = """
from gpuledger.quick_start import without_extras, without_help_texts
with without_help_texts(), without_extras():
    import numpy
    import numpy.ma
    import numpy.ma.core
    from numpy._typing import ArrayLike, _array_like
    assert numpy.ma.core.MaskedArray(1) is not None and ArrayLike and _array_like
    from numpy.ma import masked_array
    assert numpy.ma.MaskedArray is numpy.ma.core.MaskedArray
"""


def test_parts_of_what_is_spared_can_be_imported():
    subprocess.run([sys.executable, "-c", PARTS], check=True)


END = """
import atexit, sys
from gpuledger.quick_start import end_now
atexit.register(print, "last", end="")
print("said, ", end="")
{before}
end_now(3)
"""


def test_a_process_that_ends_at_once_has_said_all_and_cleaned_up():
    done = subprocess.run([sys.executable, "-c", END.format(before="")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said, last", "")


def test_a_process_without_output_ends_too():
    code = END.format(before="sys.stdout = None")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")


def test_the_program_ends_with_the_exit_code_of_its_command(tmp_path):
    for command, code in ((["analyze", "nothing.parquet"], 2), (["synth", "--help"], 0), (["import", "--help"], 0)):
        run = [sys.executable, "-m", "gpuledger", *command]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert done.stdout if code == 0 else done.stderr
