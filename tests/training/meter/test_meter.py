"""Does the meter follow a real loop, change nothing of it, and lose nothing when it fails?"""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from gpuledger.lake.counted import read_counted  # noqa: E402
from gpuledger.lake.layout import Lake  # noqa: E402
from gpuledger.training.findings import facts  # noqa: E402
from gpuledger.training.meter.meter import Meter, metered  # noqa: E402
from gpuledger.units import Unknown  # noqa: E402

pytestmark = pytest.mark.torch
WIDTH, BATCH = 32, 8
torch.set_num_threads(1)  # the models are tiny, and other tests want the other cores


def job(seed: int = 0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(torch.randn(20 * BATCH, WIDTH), torch.randint(0, 8, (20 * BATCH,)))
    return model, optimizer, DataLoader(data, batch_size=BATCH)


def train(model, optimizer, batches, *, look=False):
    losses = []
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item() if look else loss.detach())
    return losses


def failing(batches, after: int, error: Exception):
    """The batches of a loop whose body raises."""
    for i, batch in enumerate(batches):
        if i == after:
            raise error
        yield batch


def test_a_metered_loop_gives_the_very_same_losses():
    plain = train(*job())
    model, optimizer, loader = job()
    meter = Meter(model)
    assert all(torch.equal(a, b) for a, b in zip(plain, train(model, optimizer, meter(loader)), strict=True))
    meter.finish()


def test_every_trace_is_taken_away():
    gc.collect()  # meters of other tests that nobody holds any more
    own = "item" in vars(torch.Tensor)  # those that keep a lake are held until the end
    before = torch.autograd.backward, torch.Tensor.item, torch.Tensor.__bool__
    model, optimizer, loader = job()
    meter = Meter(model)
    train(model, optimizer, meter(loader))
    assert torch.autograd.backward is before[0]
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    meter.finish()
    assert (torch.autograd.backward, torch.Tensor.item, torch.Tensor.__bool__) == before
    assert ("item" in vars(torch.Tensor)) is own


def test_the_phases_are_told_apart():
    model, optimizer, loader = job()

    class Slow:
        def __iter__(self):
            for batch in loader:
                time.sleep(0.004)
                yield batch

    meter = Meter(model)
    for inputs, targets in meter(Slow()):
        out = model(inputs)
        time.sleep(0.002)
        nn.functional.cross_entropy(out, targets).backward()
        time.sleep(0.001)
        optimizer.step()
        optimizer.zero_grad()
    seen = meter.observed()
    meter.finish()
    assert seen.phases_s["data_wait"] >= 0.004
    assert seen.phases_s["forward"] >= 0.002, "the loss belongs to the forward pass"
    assert seen.phases_s["other"] >= 0.001, "between backward and update"
    assert seen.phases_s["backward"] > 0
    assert seen.phases_s["optimizer"] > 0
    assert seen.phases_s["h2d"] == 0
    assert seen.timed_steps >= 1
    assert seen.steps == 20
    assert seen.updates == 20
    assert (seen.optimizer, seen.fused_optimizer) == ("AdamW", False)
    topics = {f.topic for f in meter.report(show=False).findings}
    # More than a third of each step, unless the machine held up another part of one.
    assert ("loader" in topics) == (seen.share("data_wait") >= facts("loader")["wait_from_ratio"])


def test_flops_are_those_of_the_pencil():
    model, optimizer, loader = job()
    meter = Meter(model)
    train(model, optimizer, meter(loader))
    work = meter.observed().work
    meter.finish()
    first, second = 2 * BATCH * WIDTH * 64, 2 * BATCH * 64 * 8
    assert work.forward_flop == first + second
    # Backward: both products of the second layer; of the first only that of its weights, as nothing is before it.
    assert work.model_flop == 2 * first + 3 * second
    assert work.hardware_flop == work.model_flop
    assert (work.samples, work.tokens) == (BATCH, None)
    assert work.odd_ratio == 0


def test_waits_are_told_with_file_and_line():
    model, optimizer, loader = job()
    meter = Meter(model)
    train(model, optimizer, meter(loader), look=True)
    (site,) = meter.observed().sites
    meter.finish()
    assert site.file == __file__
    assert "loss.item() if look" in Path(__file__).read_text().splitlines()[site.line - 1]
    assert (site.call, site.times) == (".item()", 17)  # the three steps of the warm-up are left out
    said = next(f.why for f in meter.report(show=False).findings if f.topic == "sync_points")
    assert f"{__file__}:{site.line} .item()" in said


def test_print_of_a_tensor_and_a_branch_on_one_are_waits(capsys):
    model, optimizer, loader = job()
    meter = Meter(model)
    for inputs, targets in meter(loader):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        sys.stdout.write(repr(loss))
        if loss > 100:
            break
    calls = {s.call for s in meter.observed().sites}
    meter.finish()
    assert "tensor(" in capsys.readouterr().out
    assert ".__bool__()" in calls
    assert {".item()", ".tolist()"} & calls


def test_it_is_kept_in_the_lake_and_writing_again_replaces(tmp_path):
    model, optimizer, loader = job()
    meter = Meter(model, lake=tmp_path, run_id="r", labels={"workload": "w"}, usd_per_gpu_h=2.0)
    for _ in range(2):
        train(model, optimizer, meter(loader))
        meter.write()
    meter.finish()
    (run,) = read_counted(Lake(tmp_path))
    assert (run.run_id, run.state, run.labels["workload"]) == ("r", "done", "w")
    assert sum(s.steps for s in run.spans) == 40
    assert sum(s.tflop for s in run.spans) == pytest.approx(40 * meter.observed().work.hardware_flop / 1e12)
    assert run.report["seen"]["steps"] == 40
    assert run.gpu_uuid is None, "a processor is no GPU of the ledger"


def test_one_line_keeps_one_meter_over_epochs(tmp_path, capsys):
    model, optimizer, loader = job()
    for _ in range(2):
        train(model, optimizer, metered(loader, model, lake=tmp_path))
    (run,) = read_counted(Lake(tmp_path))
    assert run.report["seen"]["steps"] == 40
    assert "Samples per second" in capsys.readouterr().err


def test_a_step_without_a_loader():
    model, optimizer, loader = job()
    meter = Meter(model, samples=BATCH)
    for inputs, targets in loader:
        with meter.step():
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    seen = meter.observed()
    meter.finish()
    assert (seen.steps, seen.samples_per_step) == (20, BATCH)
    assert seen.phases_s["data_wait"] == 0


def test_gradient_accumulation_counts_updates_apart():
    model, optimizer, loader = job()
    meter = Meter(model)
    for i, (inputs, targets) in enumerate(meter(loader)):
        nn.functional.cross_entropy(model(inputs), targets).backward()
        if i % 4 == 3:
            optimizer.step()
    seen = meter.observed()
    meter.finish()
    assert (seen.steps, seen.updates) == (20, 5)


def test_evaluation_is_no_forward_pass_of_training():
    model, optimizer, loader = job()
    meter = Meter(model)
    for inputs, targets in meter(loader):
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        with torch.no_grad():
            model(inputs)
            time.sleep(0.002)
    seen = meter.observed()
    meter.finish()
    assert seen.phases_s["other"] >= 0.002


def test_recomputation_is_hardware_work_not_the_models():
    from torch.utils.checkpoint import checkpoint

    model = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])
    model.forward = lambda x: checkpoint(lambda y: model[1](torch.relu(model[0](y))), x, use_reentrant=False)
    meter = Meter(model)
    for _ in range(5):
        with meter.step():
            model(torch.randn(BATCH, WIDTH, requires_grad=True)).sum().backward()
    work = meter.observed().work
    meter.finish()
    once = 2 * 2 * BATCH * WIDTH * WIDTH
    assert work.forward_flop == once
    assert work.model_flop == 3 * once
    # torch stops recomputing at the last value it needs: the second of the two layers is not done again.
    assert work.hardware_flop == 3.5 * once
    assert work.recompute_ratio == pytest.approx(0.5)


def test_causal_attention_is_half_for_the_hardware():
    def attend(causal):
        from gpuledger.training.meter.count import Counting

        q, k, v = (torch.randn(1, 2, 64, 16) for _ in range(3))
        counting = Counting(torch, lambda: "forward")
        counting.start()
        nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return counting.stop()

    full, half = attend(False), attend(True)
    assert full.forward_flop == half.forward_flop == 2 * 2 * (2 * 64 * 64 * 16)  # heads, products, FLOP of one
    assert full.hardware_flop == full.forward_flop
    assert half.hardware_flop == half.forward_flop / 2


def test_a_compiled_model_stays_compiled_and_is_counted_apart():
    compiled = []

    def backend(graph, _inputs):
        compiled.append("made")

        def run(*args):
            compiled.append("ran")
            return graph(*args)

        return run

    model, optimizer, loader = job()
    fast = torch.compile(model, backend=backend)
    meter = Meter(fast)
    train(fast, optimizer, meter(loader))
    seen = meter.observed()
    meter.finish()
    assert compiled.count("ran") == 20, "counting must not leave the model uncompiled"
    assert seen.compiled
    assert seen.work.forward_flop == 2 * BATCH * WIDTH * 64 + 2 * BATCH * 64 * 8
    assert seen.work.model_flop == 3 * seen.work.forward_flop
    assert "compiled" in seen.work.how


def test_a_loss_that_is_no_number_is_said():
    model, optimizer, loader = job()
    meter = Meter(model)
    for inputs, _ in meter(loader):
        (model(inputs).sum() * float("nan")).backward()
        optimizer.step()
    notes = meter.observed().notes
    meter.finish()
    assert any("not a number since step 0" in n for n in notes)


def test_a_job_that_raises_loses_nothing(tmp_path):
    model, optimizer, loader = job()
    with pytest.raises(ValueError, match="boom"), Meter(model, lake=tmp_path) as meter:
        train(model, optimizer, failing(meter(loader), 10, ValueError("boom")))
    (run,) = read_counted(Lake(tmp_path))
    assert run.state == "raised ValueError: boom"
    assert sum(s.steps for s in run.spans) == 10


def test_out_of_memory_is_said_plainly(tmp_path):
    model, optimizer, loader = job()
    full = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    with pytest.raises(torch.OutOfMemoryError), Meter(model, lake=tmp_path) as meter:
        train(model, optimizer, failing(meter(loader), 5, full))
    (run,) = read_counted(Lake(tmp_path))
    assert run.state.startswith("ran out of memory")
    assert "out_of_memory" in {f.topic for f in run.findings}


def test_a_job_that_dies_writes_on_its_way_out(tmp_path):
    code = f"""
        import torch
        from torch import nn
        from gpuledger.training.meter.meter import metered
        model = nn.Linear(4, 4)
        for i, x in enumerate(metered([torch.ones(2, 4)] * 9, model, lake={str(tmp_path)!r}, run_id="r")):
            model(x).sum().backward()
            if i == 6:
                raise RuntimeError("the node is gone")
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert "the node is gone" in ended.stderr
    (run,) = read_counted(Lake(tmp_path))
    assert run.state == "raised RuntimeError: the node is gone"
    assert run.report["seen"]["steps"] == 6


def test_a_lake_that_cannot_be_written_does_not_stop_the_job(tmp_path):
    (tmp_path / "counted").write_text("a file where a folder should be")
    model, optimizer, loader = job()
    meter = Meter(model, lake=tmp_path)
    assert len(train(model, optimizer, meter(loader))) == 20
    meter.finish()
    assert "could not be written" in meter.problem


def test_an_unknown_model_name_is_said_and_the_step_is_counted():
    model, optimizer, loader = job()
    meter = Meter(model, model_name="lama-3.1-8b")
    train(model, optimizer, meter(loader))
    seen = meter.observed()
    meter.finish()
    assert not isinstance(seen.work, Unknown)
    assert any("llama-3.1-8b" in n for n in seen.notes)


def test_a_model_that_does_not_multiply_has_unknown_flops():
    model = nn.Embedding(8, 4)
    meter = Meter(model)
    for ids in meter([torch.zeros(2, 3, dtype=torch.long)] * 5):
        model(ids).sum().backward()
    seen = meter.observed()
    meter.finish()
    assert isinstance(seen.work, Unknown)
    assert seen.tokens_per_step == 6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_precision_is_that_of_the_products(dtype):
    model, optimizer, loader = job()
    meter = Meter(model)
    for inputs, targets in meter(loader):
        with torch.autocast("cpu", dtype):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    seen = meter.observed()
    meter.finish()
    assert seen.precision == {torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
    assert isinstance(Meter(nn.Linear(2, 2).to(dtype)).observed().precision, Unknown), "nothing was multiplied yet"


def test_leaving_the_loop_early_is_no_failure():
    model, optimizer, loader = job()
    meter = Meter(model)
    for i, (inputs, targets) in enumerate(meter(loader)):
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        if i == 7:
            break
    seen = meter.observed()
    meter.finish()
    assert seen.steps == 8
    assert functools.reduce(lambda a, b: a + b, seen.phases_s.values()) > 0
