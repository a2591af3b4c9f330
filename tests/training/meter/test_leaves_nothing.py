"""Does a metered job go on as it would without the meter: copies, faults, odd batches, an early end?"""

from __future__ import annotations

import copy
import gc
import importlib
import io
import pickle
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # noqa: E402

from gpuledger.training.meter.meter import Meter, metered  # noqa: E402
from gpuledger.training.meter.totals import SizeCache  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)
OPTIMIZERS = importlib.import_module("torch.optim.optimizer")
X = torch.ones(2, 4)


def train(model, batches, each=lambda: None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in batches:
        model(X).sum().backward()
        optimizer.step()
        each()


def hooks_of(model):
    found = (model._forward_hooks, model._forward_pre_hooks)
    found += (OPTIMIZERS._global_optimizer_pre_hooks, OPTIMIZERS._global_optimizer_post_hooks)
    return [len(hooks) for hooks in found]


@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_a_step_that_fails_and_is_caught_leaves_no_counting_behind(at):
    model = nn.Linear(4, 1)
    with Meter(model) as meter:
        for index in range(8):
            try:
                with meter.step(X):
                    model(X).sum().backward()
                    if index == at:
                        raise torch.OutOfMemoryError("CUDA out of memory")
            except torch.OutOfMemoryError:
                assert not _get_current_dispatch_mode_stack()
    assert not _get_current_dispatch_mode_stack()
    assert meter.report(show=False).seen.steps == 7


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: torch.optim.swa_utils.AveragedModel(m).module],
)
def test_a_model_is_copied_within_the_loop(copied):
    model, made = nn.Linear(4, 1), []
    meter = Meter(model)
    train(model, meter([X] * 4), lambda: made.append(copied(model)))
    assert len(made) == 4
    seen = meter.steps.hooks.forwards
    assert torch.equal(made[-1](X), model(X))
    assert meter.steps.hooks.forwards == seen, "a copy is not the model that is measured"
    assert [type(h).__module__ for h in made[0]._forward_hooks.values()] == ["functools"], "it loads without us"
    meter.finish()


def test_a_whole_model_is_saved_within_the_loop():
    model, file = nn.Linear(4, 1), io.BytesIO()
    train(model, Meter(model)([X]), lambda: torch.save(model, file))
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(X), model(X))


def test_an_end_within_the_loop_leaves_nothing():
    model = nn.Linear(4, 1)
    before, meter, left = hooks_of(model), Meter(model), iter(range(200))
    train(model, meter([X] * 200), lambda: meter.finish() if next(left) == 100 else None)
    assert hooks_of(model) == before


class _Odd:
    @property
    def shape(self):
        raise RuntimeError("ask somebody else")


ODD = {
    "object": _Odd(),
    "list": [_Odd()],
    "dict": {"x": _Odd()},
    "sparse": torch.eye(3).to_sparse(),
    "none": None,
    "number": 7,
    "empty": [],
}


@pytest.mark.parametrize("name", ODD)
def test_a_batch_that_cannot_be_looked_at_stops_nobody(name):
    batch = ODD[name]
    model = nn.Linear(4, 1)
    meter = Meter(model)
    train(model, meter([batch] * 6))
    assert meter.report(show=False).seen.steps == 6


def test_a_scripted_model_is_trained_and_its_passes_are_said_to_be_unseen():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        model = torch.jit.script(nn.Linear(4, 1))
    meter = Meter(model)
    train(model, meter([X] * 6))
    seen = meter.report(show=False).seen
    assert seen.steps == 6
    assert any("forward pass was not seen" in note for note in seen.notes)
    meter.finish()


def test_no_model():
    model = nn.Linear(4, 1)
    train(model, metered([X] * 6, None, show=False))


def test_batches_alike_are_looked_at_once():
    sizes = SizeCache()
    for make in (lambda: {"pixel_values": X, "labels": X}, lambda: {"input_ids": X.long()}, lambda: (X, X), lambda: X):
        assert sizes.of(make()) is sizes.of(make())
        assert sizes.of(make()).samples == 2
    assert sizes.of({"input_ids": X.long()}).tokens == 8
    assert sizes.of(None) is sizes.of(None)


def test_a_meter_keeps_no_model(tmp_path):
    model = nn.Linear(4, 1)
    gone = weakref.ref(model)
    train(model, metered([X] * 12, model, show=False, lake=tmp_path))
    del model
    gc.collect()
    assert gone() is None


def test_what_was_told_of_a_model_stays_when_it_is_gone(tmp_path):
    model = nn.Linear(4, 1).bfloat16()
    meter = Meter(model, lake=tmp_path)
    for _ in meter([X] * 8):
        model(X.bfloat16()).sum().backward()
    meter.write()
    del model
    gc.collect()
    meter.finish()
    assert meter.report(show=False).seen.precision == "bf16"


def test_a_meter_that_is_dropped_takes_its_watch_along():
    gc.collect()
    before = vars(torch.Tensor).get("item")
    model = nn.Linear(4, 1)
    train(model, Meter(model)([X] * 4))
    gc.collect()
    assert vars(torch.Tensor).get("item") is before
