"""When has tuning paid for itself, what did it cost, and are settings checked?"""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import why_not

from gpuledger.errors import FactError, InputError, MissingExtra, UnknownName
from gpuledger.training.job import TrainingJob, load_job
from gpuledger.training.tune.choices import Means, candidates, load_plan
from gpuledger.training.tune.settings import Settings, in_words
from gpuledger.training.tune.torch_trial import EndlessBatches
from gpuledger.training.tune.trials import Climb, Reading, Step
from gpuledger.training.tune.tuner import Tuning, figures, payback, usd
from gpuledger.units import Unknown


def test_the_numbers_of_the_published_case():
    """12 to 45 samples a second, 777,600 samples: 18 h to 4.8 h. An hour of tuning is back after 1/13.2 epochs."""
    back = payback(3600, 12, 45, 777_600)
    assert back.epoch_before_s == 18 * 3600
    assert back.epoch_after_s == pytest.approx(4.8 * 3600)
    assert back.epochs == pytest.approx(1 / 13.2)
    assert back.hours == pytest.approx(4.8 / 13.2)


def test_nothing_saved_is_never_paid_back():
    assert isinstance(payback(60, 10, 10, 100), Unknown)


@given(spent=st.floats(1, 1e4), before=st.floats(1, 1e3), faster=st.floats(1.02, 20), samples=st.integers(1000, 10**7))
def test_after_the_payback_both_ways_have_taken_equally_long(spent, before, faster, samples):
    back = payback(spent, before, before * faster, samples)
    assert spent + back.epochs * back.epoch_after_s == pytest.approx(back.epochs * back.epoch_before_s)


def test_dollars():
    assert usd(90, Decimal("4.00")) == Decimal("0.1")


@given(st.integers(1, 64), st.integers(0, 6), st.integers(0, 6))
def test_a_new_batch_keeps_the_effective_batch(batch, more, other):
    start = Settings(batch=batch, accumulate=2**more)
    size = batch * 2 ** min(more, other)
    assert start.having({"batch": size}).effective_batch == start.effective_batch


def test_a_batch_that_does_not_divide_is_refused():
    with pytest.raises(InputError, match="not the effective batch of 12"):
        Settings(batch=4, accumulate=3).having({"batch": 5})


def test_batches_of_any_size_hold_the_same_samples():
    def first(batch, count, start=0):
        stream = iter(EndlessBatches(10, batch, seed=3, start=start))
        return [i for _ in range(count) for i in next(stream)]

    assert first(2, 15) == first(5, 6) == first(30, 1)
    assert sorted(first(10, 1)) == list(range(10))
    assert first(5, 4, start=10) == first(5, 6)[10:]


def test_the_shipped_plan_tries_what_the_case_names():
    plan = load_plan()
    assert [axis.name for axis in plan.axes][:4] == ["loader", "batch", "precision", "logging"]
    assert [axis.name for axis in plan.axes if axis.opens_s] == ["compile"]
    with pytest.raises(UnknownName, match="no axis of the tuner"):
        plan.only(["presicion"])


def test_a_choice_names_what_it_lacks():
    plan = load_plan()
    offered, left_out = candidates(plan.axes[2], Settings(), Means(bf16=True))
    assert list(offered) == ["bf16"]
    assert set(left_out) == {"fp16", "tf32"}
    loader = candidates(plan.only(["loader"]).axes[0], Settings(), Means(cores=2))[0]
    assert loader["2 workers"].pin is False, "pinned memory is for copies to a GPU"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('precision = "bf16"', 'precison = "bf16"', "sets precison"),
        ("looks = [3, 5, 8]", "looks = [1, 5]", "not numbers of pairs"),
        ("looks = [3, 5, 8]", "looks = [5, 3]", "not numbers of pairs"),
        ("parts = [", "choices = []\nother = [", "unknown field"),
        ("p = 0.05", 'p = "low"', "Expected `float`"),
    ],
)
def test_a_wrong_plan_is_named(tmp_path, old, new, said):
    from gpuledger.catalog.files import data_dir

    text = data_dir("gpuledger.training", "data", "tune.toml").read_text()
    assert old in text
    file = tmp_path / "plan.toml"
    file.write_text(text.replace(old, new))
    with pytest.raises(FactError, match=said):
        load_plan(file)


def job_file(tmp_path, text, name):
    file = tmp_path / f"{name}.py"
    file.write_text(f"from gpuledger.training.job import TrainingJob\n{text}\n")
    return str(file)


def test_a_job_is_found_by_file_and_by_function(tmp_path):
    made = 'TrainingJob(name="x", model=None, dataset=None, loss=None)'
    file = job_file(tmp_path, f"job = {made}\ndef make(): return {made}", "a_job_file")
    assert isinstance(load_job(f"{file}:job"), TrainingJob)
    assert load_job(f"{file}:make").name == "x"
    with pytest.raises(UnknownName, match="did you mean job"):
        load_job(f"{file}:jop")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nothing", "is not module:job"),
        ("no_such_module_here:job", "cannot import"),
        ("no_such.py:job", "no such file"),
    ],
)
def test_a_job_that_is_not_there(reference, said):
    with pytest.raises(InputError, match=said) as raised:
        load_job(reference)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "wanted", "error"),
    [
        ("import torch\njob = 3", "jop", UnknownName),
        ("import torch\njob = 3", "job", MissingExtra),
        ("import torch\nif True:\n    job, other = 3, 4", "other", MissingExtra),
        ("import torch\nfrom json import *", "jop", MissingExtra),
        ("import torch\nglobals()['jop'] = 3", "jop", MissingExtra),
        ("import torch\ndef make(): ...", "mak", UnknownName),
    ],
)
def test_a_wrong_name_is_said_before_a_missing_torch(tmp_path, monkeypatch, text, wanted, error):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(error) as raised:
        load_job(f"{job_file(tmp_path, text, f'no_torch_{abs(hash(text))}')}:{wanted}")
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job = 3", "is a int, not a TrainingJob"),
        ("def job(): raise ValueError('no data')", r"raised ValueError: no data at .*\.py:2"),
        ("1 / 0", "importing .* raised ZeroDivisionError"),
    ],
)
def test_a_job_that_is_none(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        load_job(f"{job_file(tmp_path, text, f'bad_job_{abs(hash(text))}')}:job")


def test_wrong_settings_are_named():
    with pytest.raises(InputError, match="batch is 0"):
        TrainingJob(name="x", model=None, dataset=None, loss=None, settings=Settings(batch=0))


def test_settings_in_words():
    assert in_words(Settings(batch=8, accumulate=4)) == "fp32, 0 workers, batch 8 x 4, loss read every step"


def test_a_share_above_all_is_refused_on_every_rung():
    """A job that switches autocast on by itself starts as fp32: half the bf16 peak is seven times that of fp32."""
    start = Settings(precision="fp32")
    reading = Reading(100.0, Unknown("not read"), Unknown("not read"))
    rungs = tuple(Step("start", "start", having, "start", reading=reading) for having in (start, start))
    climb = Climb(rungs, start, start, None, 60.0, 0.02, side_by_side=(100.0, 300.0))
    job = TrainingJob(name="job", model=object, dataset=list, loss=len, settings=start)
    told = figures(Tuning(job, climb, "NVIDIA H100 80GB HBM3", 989.5e12 / 2 / 100, 1000, Unknown("none given")))
    for rung in told["ladder"]:
        assert rung["mfu_pct"] == pytest.approx(50)
        assert rung["mfu_in_use_pct"] is None
    assert "% of the dense fp32 peak" in why_not(told, "ladder[].mfu_in_use_pct")
    assert told["side_by_side"]["start_mfu_pct"] == pytest.approx(50)
    assert told["side_by_side"]["winner_mfu_pct"] is None, "150 % cannot be"
