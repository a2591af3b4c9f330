"""Do the jobs of examples/ train, and does the worked case run as it is told?"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from gpuledger.training.job import load_job  # noqa: E402
from gpuledger.training.tune.duel import finite  # noqa: E402
from gpuledger.training.tune.machine import TorchMachine  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", ["naive_training.py:job", "tuning_jobs.py:language_model", "tuning_jobs.py:images"])
def test_a_job_trains_as_it_is(name):
    job = load_job(f"{EXAMPLES}/{name}")
    trial = TorchMachine(job, 2, "cpu").open(job.settings)
    assert finite(trial.curve)
    assert trial.window(0.01) > 0
    trial.close()


def test_the_one_already_tuned_is_the_language_model_tuned():
    tuned, plain = (load_job(f"{EXAMPLES}/tuning_jobs.py:{name}") for name in ("tuned", "language_model"))
    assert (tuned.model, tuned.loss, tuned.dataset) == (plain.model, plain.loss, plain.dataset)
    assert tuned.settings.effective_batch == plain.settings.effective_batch
    assert tuned.settings.compile != "off"


def test_the_naive_loop_goes_on_after_its_first_epoch(capsys, monkeypatch):
    naive = importlib.import_module("naive_training")
    an_epoch = len(naive.ImageFiles()) // (naive.BATCH * naive.ACCUMULATE)
    monkeypatch.setattr(sys, "argv", ["naive_training.py", "--updates", str(an_epoch + 1)])
    naive.main()
    assert "images a second, as first written" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["naive_training.py", "--updates", "0"])
    with pytest.raises(SystemExit):
        naive.main()
    assert "give at least 1" in capsys.readouterr().err
