"""Do real trials in torch train the same whatever the batch, refuse what fails, and is the snippet's code right?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]

sys.path.insert(0, str(Path(__file__).parent))
import tiny_jobs  # noqa: E402
from loops import why_not  # noqa: E402

from gpuledger.cli.app import run  # noqa: E402
from gpuledger.errors import InputError  # noqa: E402
from gpuledger.training.tune.choices import load_plan  # noqa: E402
from gpuledger.training.tune.duel import compare_curves  # noqa: E402
from gpuledger.training.tune.machine import TorchMachine  # noqa: E402
from gpuledger.training.tune.settings import Settings  # noqa: E402
from gpuledger.training.tune.torch_trial import mover  # noqa: E402
from gpuledger.training.tune.trials import TrialFailed  # noqa: E402
from gpuledger.training.tune.tuner import figures, tune  # noqa: E402
from gpuledger.units import Unknown  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other make tiny products slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


QUICK = msgspec.structs.replace(load_plan(), window_s=0.01, parity_updates=3)
TINY = Path(__file__).parent / "tiny_jobs.py"


def curve(settings, job=tiny_jobs.line, updates=5):
    trial = TorchMachine(job, updates, "cpu").open(settings)
    trial.close()
    return trial.curve


@pytest.mark.parametrize("batch", [1, 2, 8, 32])
def test_the_loss_does_not_depend_on_the_batch_of_a_pass(batch):
    """The same samples in the same order, the same number between optimizer steps: accumulation keeps the training."""
    start = tiny_jobs.SETTINGS
    assert compare_curves(curve(start), curve(start.having({"batch": batch})), 1e-5).kept


def test_the_loss_does_not_depend_on_who_loads():
    start = tiny_jobs.SETTINGS
    assert curve(start) == curve(start.having({"workers": 1}))
    assert curve(start) == curve(start.having({"logging": "async"}))


def test_bf16_strays_a_little_and_another_seed_a_lot():
    start = tiny_jobs.SETTINGS
    stray = compare_curves(curve(start), curve(start.having({"precision": "bf16"})), 0.02)
    assert stray.kept
    assert 0 < stray.deviation_ratio < 0.02
    other = curve(start, tiny_jobs.make("other", seed=1))
    assert not compare_curves(curve(start), other, 0.02).kept


def test_switches_of_torch_are_put_back():
    before = (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32)
    curve(Settings(precision="tf32", cudnn_benchmark=True))
    after = (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32)
    assert before == after


def test_fp16_with_a_scaler_trains_too():
    start = tiny_jobs.SETTINGS
    assert compare_curves(curve(start), curve(start.having({"precision": "fp16"})), 0.05).kept


def test_flop_are_counted():
    """16 x 32 + 32 x 1 products of two FLOP; the way back costs as much again for weights, and for inputs but the
    first layer's."""
    found = TorchMachine(tiny_jobs.line, 1, "cpu").flop_per_sample(tiny_jobs.SETTINGS)
    assert found == 2 * (16 * 32 + 32) * 2 + 2 * 32


@pytest.mark.parametrize(
    ("job", "name", "said"),
    [
        (tiny_jobs.without_half, "bf16", "ValueError: this model knows no bf16"),
        (tiny_jobs.with_nan, "bf16", "the loss is nan at update 1"),
        (tiny_jobs.large, "batch 32", "no room in memory: OutOfMemoryError"),
    ],
)
def test_a_step_that_fails_is_named_and_passed_over(job, name, said):
    found = tune(job, QUICK.only(["precision", "batch"]), device="cpu")
    why = {s.name: s.why for s in found.climb.steps if s.outcome == "refused"}
    assert said in why[name]
    assert any(s.outcome in ("kept", "no gain") for s in found.climb.steps if s.name != name)
    assert found.climb.winner.effective_batch == 32


def test_a_job_that_fails_from_the_start_is_an_error_with_the_line():
    with pytest.raises(InputError, match=r"RuntimeError: wrong shape at tiny_jobs.py:\d+") as raised:
        tune(tiny_jobs.faulty, QUICK, device="cpu")
    assert raised.value.hint


def test_a_dataset_without_items():
    with pytest.raises(TrialFailed, match="empty"):
        TorchMachine(tiny_jobs.make("none", dataset=lambda: tiny_jobs.Points(0)), 1, "cpu").open(tiny_jobs.SETTINGS)


def test_figures_say_what_is_not_known_on_a_cpu():
    found = figures(tune(tiny_jobs.line, QUICK.only(["batch"]), device="cpu"))
    assert json.loads(json.dumps(found)) == found
    assert found["ladder"][0]["mfu_pct"] is None
    assert "'CPU' is not in the catalog" in why_not(found, "ladder[].mfu_pct")
    assert found["denominator"].startswith("not known")
    assert found["effective_batch"] == 32
    assert found["tuning_s"] > 0


def test_more_passes_than_needed_are_found_out():
    """32 passes of one sample each against one pass of 32: no noise hides that."""
    slow = tiny_jobs.make("one by one", settings=Settings(batch=1, accumulate=32))
    plan = msgspec.structs.replace(QUICK.only(["batch"]), window_s=0.05)
    for _ in range(4):  # but a machine that stands still in the one and not in the other does
        found = tune(slow, plan, device="cpu")
        if found.climb.winner.batch >= 8 and found.total.ratio > 1.5:
            break
    assert found.climb.winner.batch >= 8
    assert found.total.ratio > 1.5


@pytest.mark.parametrize(
    "settings",
    [
        Settings(batch=4, accumulate=8),
        Settings(batch=32, precision="bf16", logging="async"),
        Settings(batch=16, accumulate=2, precision="fp16"),
        Settings(batch=8, accumulate=4, workers=1, prefetch=4, channels_last=True, cudnn_benchmark=True),
    ],
    ids=["plain", "bf16", "fp16", "loader"],
)
def test_the_snippet_runs_and_trains_as_the_trial_did(settings):
    job = tiny_jobs.convolutions
    done = tune(job, msgspec.structs.replace(QUICK, axes=()), device="cpu")
    text = msgspec_replace(done, settings).snippet()
    if settings.precision == "fp16":
        text = text.replace('GradScaler("cuda")', 'GradScaler("cpu")')
    names: dict[str, object] = {}
    exec(compile(text, "snippet.py", "exec"), names)
    assert names["MICRO_BATCH"] * names["ACCUMULATE"] == settings.effective_batch
    torch.manual_seed(job.seed)
    model, loss_of = names["prepare"](job.model(), job.loss, "cpu")
    optimizer = names["make_optimizer"](torch.optim.AdamW, model, lr=1e-4)
    order = iter(ordered(settings))
    losses = [float(names["train_update"](model, loss_of, optimizer, order, "cpu")) for _ in range(3)]
    torch.backends.cudnn.benchmark = False
    assert losses == pytest.approx(curve(settings, job, 3), rel=1e-4)
    assert next(iter(names["make_loader"](job.dataset())))[0].shape == (settings.batch, 16)


class Pair(NamedTuple):
    x: object
    y: object


class Own:
    """A batch of a class of its own."""

    def __init__(self):
        self.at = None

    def to(self, device):
        self.at = device
        return self


def test_batches_of_any_make_reach_the_device():
    """What the tuner can move, the code it writes can move too."""
    done = tune(tiny_jobs.convolutions, msgspec.structs.replace(QUICK, axes=()), device="cpu")
    names: dict[str, object] = {}
    exec(compile(done.snippet(), "snippet.py", "exec"), names)
    settings = Settings()
    for move in (mover(torch, "meta", settings), lambda value: names["to_device"](value, "meta")):
        x, own = torch.ones(2, 3), Own()
        found = move({"ids": x, "pair": Pair(x, [x, 3]), "text": "a", "own": own})
        assert found["ids"].is_meta
        assert isinstance(found["pair"], Pair)
        assert found["pair"].x.is_meta
        assert found["pair"].y[0].is_meta
        assert (found["pair"].y[1], found["text"]) == (3, "a")
        assert found["own"].at == "meta"


def msgspec_replace(done, winner):
    from dataclasses import replace

    return replace(done, climb=replace(done.climb, winner=winner))


def ordered(settings):
    """The batches of a trial, in its order."""
    from gpuledger.training.tune.torch_trial import open_loader

    return open_loader(torch, tiny_jobs.Points(), settings.having({"workers": 0}), 0, 0, None)


def test_the_command_prints_the_ladder_and_writes_the_settings(tmp_path, capsys):
    out = tmp_path / "settings.py"
    plan = tmp_path / "plan.toml"
    text = (Path(sys.modules["gpuledger.training"].__file__).parent / "data" / "tune.toml").read_text()
    plan.write_text(text.replace("window_s = 0.5", "window_s = 0.01"))
    shared = ["train", "tune", f"{TINY}:line", "--only", "batch", "--plan", str(plan), "--price", "3.50"]
    assert run([*shared, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for words in ("Step by step", "as it", "Tuning cost", "32 samples between optimizer steps", str(out)):
        assert words in said
    assert "MICRO_BATCH" in out.read_text()
    assert run([*shared, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["usd_per_h"] == "3.5"
    assert float(told["tuning_usd"]) == pytest.approx(3.5 * told["tuning_s"] / 3600, rel=1e-3)


def test_an_unknown_price_is_said_for_a_cpu(capsys):
    assert run(["train", "tune", f"{TINY}:line", "--only", "fused", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tuning_usd"] is None
    assert "no price" in why_not(told, "tuning_usd")
    assert told["gained"] is False


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([f"{TINY}:lime"], "did you mean line"),
        ([f"{TINY}:line", "--budget", "0"], "leaves no time"),
        ([f"{TINY}:line", "--only", "presicion"], "did you mean precision"),
        ([f"{TINY}:line", "--price", "cheap"], "is not a number"),
        ([f"{TINY}:line", "--price", "-1"], "is not a price"),
        ([f"{TINY}:faulty"], "wrong shape"),
    ],
)
def test_bad_input_is_exit_2(more, said, capsys):
    assert run(["train", "tune", *more]) == 2
    assert said in capsys.readouterr().err


def test_memory_is_not_known_on_a_cpu():
    machine = TorchMachine(tiny_jobs.line, 1, "cpu")
    assert isinstance(machine.memory_bytes, Unknown)
    assert isinstance(machine.open(tiny_jobs.SETTINGS).peak_bytes, Unknown)


def test_the_outcome_so_far_is_told_with_its_figures():
    seen = []
    plan = msgspec.structs.replace(load_plan().only(["batch"]), window_s=0.01)
    found = tune(tiny_jobs.line, plan, device="cpu", watch=lambda so_far: seen.append(figures(so_far)))
    assert [len(told["steps"]) for told in seen] == list(range(1, len(found.climb.steps) + 1))
    assert all(told["flop_per_sample"] == found.flop_per_sample > 0 for told in seen)
    assert all(told["total"] is None and told["ladder"][0]["name"] == "as it is" for told in seen)
    if found.climb.gained:
        assert "not measured end to end" in seen[-1]["snippet"]


def test_where_nothing_could_be_tried_no_gain_is_not_claimed(capsys):
    assert run(["train", "tune", f"{TINY}:line", "--only", "batch", "--budget", "0.0001"]) == 0
    said = capsys.readouterr().out
    assert "nothing was tried" in said
    assert "no gain" not in said


def test_ctrl_c_shows_what_was_found_until_then(capsys, monkeypatch):
    def interrupted(job, plan, **more):
        def say(what):
            if what != "start":
                raise KeyboardInterrupt

        return tune(job, QUICK.only(["batch"]), **{**more, "say": say})

    monkeypatch.setattr("gpuledger.training.tune.tuner.tune", interrupted)
    assert run(["train", "tune", f"{TINY}:line", "--json"]) == 130
    told = json.loads(capsys.readouterr().out)
    assert [step["outcome"] for step in told["steps"]] == ["start"]
    assert told["total"] is None
