"""Is an argument of the wrong kind refused by its name, whatever it is?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import gpuledger
from gpuledger.arguments import check, takes
from gpuledger.errors import GpuledgerError, InputError

FILE = Path(__file__).parents[2] / "fuzz/seeds/csv/plain.csv"
ODD = [3, 3.5, True, object(), b"x", [3], {"a": object()}, "\0"]


@pytest.mark.parametrize("name", ["tz", "mapping", "host", "gpu_model", "jobs", "jobs_tz"])
@pytest.mark.parametrize("value", ODD, ids=lambda v: type(v).__name__)
def test_reading_files(name, value):
    if value == "\0" and name in ("host", "gpu_model", "jobs_tz"):
        return  # text, if odd text: a label may hold anything, and without a job table no zone is looked up
    with pytest.raises(GpuledgerError) as caught:
        gpuledger.read(FILE, **{name: value})
    assert caught.value.hint


@pytest.fixture(scope="module")
def files():
    return gpuledger.read(FILE)


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        ("analyze", "thresholds"), ("analyze", "by"), ("analyze", "achievable"), ("audit", "inventory"),
        ("audit", "instance"), ("audit", "teams"), ("audit", "limits"), ("moves", "to"), ("moves", "clouds"),
        ("samples", "since"), ("anomalies", "instance"), ("budget", "month"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [True, object(), b"x", [3]], ids=lambda v: type(v).__name__)
def test_asking(files, ask, name, value):
    with pytest.raises(GpuledgerError) as caught:
        getattr(files, ask)(**{name: value})
    assert caught.value.hint


@pytest.mark.parametrize("value", [None, *ODD], ids=lambda v: type(v).__name__)
def test_opening_and_pulling(value, tmp_path):
    with pytest.raises(InputError, match="root is"):
        gpuledger.open(value)
    with pytest.raises(GpuledgerError):
        gpuledger.open(tmp_path).pull(value)
    with pytest.raises(GpuledgerError):
        gpuledger.read(value)


def test_a_price_that_is_not_a_number_is_refused(files):
    with pytest.raises(InputError, match="not a price"):
        files.audit(usd_per_kwh=float("nan"))


def test_what_is_empty_or_no_yes_or_no_is_not_taken_as_nothing_given(files):
    table = pa.table({"host": ["n1"]}).to_pandas()
    wrong = [
        {"previous": "no"}, {"previous": 1}, {"inventory": []}, {"inventory": ""}, {"inventory": [""]}, {"prices": {}},
        {"instance": ""}, {"region": " "}, {"by": ""}, {"inventory": table}, {"usd_per_kwh": -1},
    ]  # fmt: skip
    for given in wrong:
        with pytest.raises(InputError) as caught:
            files.audit(**given)
        assert caught.value.hint, given
    with pytest.raises(InputError, match="n=True is not a number of GPUs"):
        files.give_back(True)


def test_paths_and_lists_of_them_are_taken():
    @takes(files="files", names="texts", text="text")
    def call(**given):
        return given

    given = {"files": [Path("a"), "b"], "names": ("x",), "text": None}
    assert call(**given) == given
    check("files", "files", Path("a"))
    with pytest.raises(InputError, match="names is 3, not a list of names"):
        call(names=3)
