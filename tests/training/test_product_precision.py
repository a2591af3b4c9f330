"""Is the precision the one the matrix products run in, whatever puts it there?"""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from gpuledger.training.findings import find_all  # noqa: E402
from gpuledger.training.meter.count import Precisions, name_of, tf32_allowed  # noqa: E402
from gpuledger.training.meter.meter import Meter  # noqa: E402
from gpuledger.units import Unknown  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # the trainers' own
WIDTH, BATCH = 32, 8
torch.set_num_threads(1)


class Inside(nn.Module):
    """Switches autocast on within its own forward pass, as accelerate does; the head may stay out of it."""

    def __init__(self, *, head_in_fp32: bool = False) -> None:
        super().__init__()
        self.body, self.head, self._apart = nn.Linear(WIDTH, 64), nn.Linear(64, 8), head_in_fp32

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            x = self.body(x)
            with torch.autocast("cpu", enabled=not self._apart, dtype=torch.bfloat16):
                return self.head(x.float() if self._apart else x)


def data(dtype=torch.float32):
    torch.manual_seed(0)
    held = TensorDataset(torch.randn(6 * BATCH, WIDTH, dtype=dtype), torch.randint(0, 8, (6 * BATCH,)))
    return DataLoader(held, batch_size=BATCH)


def plain():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, 8))


def train(model, meter, loader, *, around=None):
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader if meter is None else meter(loader):
        with torch.autocast("cpu", around or torch.bfloat16, enabled=around is not None):
            loss = nn.functional.cross_entropy(model(inputs).float(), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return losses


def seen_of(model, loader=None, *, around=None, **options):
    meter = Meter(model, **options)
    train(model, meter, loader or data(), around=around)
    meter.finish()
    return meter.observed()


@pytest.mark.parametrize(
    ("model", "loader", "around", "precision"),
    [
        (plain, data, None, "fp32"),
        (plain, data, torch.bfloat16, "bf16"),
        (plain, data, torch.float16, "fp16"),
        (lambda: plain().to(torch.bfloat16), lambda: data(torch.bfloat16), None, "bf16"),
        (lambda: plain().to(torch.float64), lambda: data(torch.float64), None, "fp64"),
        (Inside, data, None, "bf16"),
    ],
)
def test_a_plain_loop(model, loader, around, precision):
    seen = seen_of(model(), loader(), around=around)
    assert seen.precision == precision
    assert seen.precision_ratios == {precision: 1.0}


def test_several_precisions_are_told_by_their_share_of_the_flops():
    seen = seen_of(Inside(head_in_fp32=True))
    # Of the body one product forward and one backward (nothing is before it), of the head one and two.
    body, head = 2 * WIDTH * 64, 3 * 64 * 8
    assert seen.precision == "bf16"
    assert seen.precision_ratios == pytest.approx({"bf16": body / (body + head), "fp32": head / (body + head)})


def test_convolutions_and_attention_are_products_too():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3, padding=1)

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                x = self.conv(x.view(-1, 1, 4, 8)).flatten(2).unsqueeze(1)
                return nn.functional.scaled_dot_product_attention(x, x, x).flatten(1)[:, :8]

    assert seen_of(Mixed()).precision_ratios == {"bf16": 1.0}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("model", "around", "precision"), [(plain, None, "fp32"), (plain, torch.bfloat16, "bf16"), (Inside, None, "bf16")]
)
def test_a_compiled_model(backend, model, around, precision):
    torch._dynamo.reset()
    seen = seen_of(torch.compile(model(), backend=backend), around=around)
    assert seen.compiled
    assert seen.precision_ratios == {precision: 1.0}


def test_counting_a_compiled_model_leaves_nothing_in_autocasts_cache():
    """Weights converted while counting hold no data; taken from the cache they would be what the job computes with."""

    def losses(meter):
        torch._dynamo.reset()
        model = torch.compile(plain(), backend="eager")
        return train(model, meter(model), data(), around=torch.bfloat16)

    expected, found = losses(lambda _: None), losses(Meter)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_a_model_that_something_compiled_calls():
    torch._dynamo.reset()
    inner = Inside()
    outer, meter = torch.compile(inner, backend="eager"), Meter(inner)
    train(outer, meter, data())
    seen = meter.observed()
    meter.finish()
    assert seen.compiled, "else it would be advised to compile what is compiled"
    assert seen.precision == "bf16"
    assert any("give the meter the module you call" in note for note in seen.notes)


def test_an_uncompiled_model_is_not_taken_for_a_compiled_one():
    torch._dynamo.reset()
    assert not seen_of(plain()).compiled


def test_a_compiled_part_that_is_called_on_its_own_is_not_guessed_at():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = torch.compile(plain(), backend="eager")

    torch._dynamo.reset()
    whole = Whole()
    meter = Meter(whole)
    train(whole.part, meter, data())
    seen = meter.observed()
    meter.finish()
    assert isinstance(seen.precision, Unknown)
    assert "was not called" in seen.precision.why
    assert "was not called" in seen.work.why


def test_what_was_not_observed_is_unknown_with_the_reason():
    before = Meter(plain().to(torch.bfloat16)).observed()
    assert isinstance(before.precision, Unknown), "weights do not tell what products run in"
    assert "second step" in before.precision.why
    off = seen_of(plain(), count=False)
    assert "count=False" in off.precision.why
    nothing = Meter(None)
    with nothing.step():
        pass
    with nothing.step():
        pass
    assert "no matrix product" in nothing.observed().precision.why


def test_with_a_formula_the_precision_is_observed_all_the_same():
    seen = seen_of(Inside(), model_name="resnet-18")
    assert "by formula" in seen.work.how
    assert seen.precision == "bf16"


def hugging_face(tmp_path, *, pure=False, **options):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from gpuledger.training.meter.hf_callback import MeterCallback

    torch._dynamo.reset()
    # Attention with dropout has no fused kernel on a processor, and torch then computes it in fp32.
    small = transformers.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=32, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(small)
    ids = [{"input_ids": list(range(16)), "labels": list(range(16))} for _ in range(64)]
    args = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=4, max_steps=6, report_to=[], use_cpu=True,
        save_strategy="no", logging_strategy="no", disable_tqdm=True, **options,
    )  # fmt: skip
    callback = MeterCallback(show=False)
    made = model.bfloat16() if pure else model
    transformers.Trainer(made, args, train_dataset=ids, callbacks=[callback]).train()
    return callback.report.seen


@pytest.mark.parametrize(
    ("options", "precision"), [({"bf16": False}, "fp32"), ({"bf16": True}, "bf16"), ({"pure": True}, "bf16")]
)
def test_hugging_face(tmp_path, options, precision):
    seen = hugging_face(tmp_path, **options)
    assert seen.precision_ratios == {precision: 1.0}
    assert not seen.compiled


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hugging_face_compiled(tmp_path, backend):
    seen = hugging_face(tmp_path, bf16=True, torch_compile=True, torch_compile_backend=backend)
    assert seen.compiled
    assert seen.precision_ratios == {"bf16": 1.0}
    assert seen.phases_s["forward"] > 0, "the compiled model is what is called"
    assert seen.tokens_per_step == 4 * 16
    weights = 2 * 12 * 32 * 32 + 32 * 64  # of two layers, and the head
    assert seen.work.model_flop == 64 * (6 * weights + 12 * 2 * 16 * 32), "as a pencil counts it"


@pytest.mark.parametrize(("mixed", "precision"), [("no", "fp32"), ("bf16", "bf16")])
def test_accelerate(mixed, precision):
    accelerate = pytest.importorskip("accelerate")
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    try:
        accelerator = accelerate.Accelerator(mixed_precision=mixed, cpu=True)
        made = plain()
        model, optimizer, loader = accelerator.prepare(made, torch.optim.SGD(made.parameters(), lr=0.1), data())
        meter = Meter(model)
        for inputs, targets in meter(loader):
            accelerator.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
        seen = meter.observed()
        meter.finish()
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
    assert next(model.parameters()).dtype == torch.float32
    assert seen.precision_ratios == {precision: 1.0}


def test_fully_sharded_weights(tmp_path):
    """FSDP2 keeps fp32 weights and gathers them in bf16."""
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        mesh = dist.init_device_mesh("cpu", (1,))
        policy = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        model = fsdp.fully_shard(plain(), mesh=mesh, mp_policy=policy)
        assert next(model.parameters()).dtype == torch.float32
        assert seen_of(model).precision_ratios == {"bf16": 1.0}
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("asked", "precision", "compiled"),
    [
        ("32-true", "fp32", False),
        ("bf16-mixed", "bf16", False),
        ("bf16-true", "bf16", False),
        ("bf16-mixed", "bf16", True),
    ],
)
def test_lightning(asked, precision, compiled):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightning = pytest.importorskip("pytorch_lightning")
        from gpuledger.training.meter.lightning_callback import MeterCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = plain()

        def training_step(self, batch, _index):
            inputs, targets = batch
            return nn.functional.cross_entropy(self.net(inputs).float(), targets)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch._dynamo.reset()
    callback = MeterCallback(show=False)
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[callback], precision=asked,
    )  # fmt: skip
    trainer.fit(torch.compile(Module(), backend="eager") if compiled else Module(), data())
    assert callback.report.seen.precision_ratios == {precision: 1.0}
    assert callback.report.seen.compiled is compiled


class Operand:
    """Of a product on a GPU."""

    dtype, device = torch.float32, torch.device("cuda")


def gpu_torch(capability=(9, 0), *, matmul=False, conv=True, newer=True, cudnn=True):
    """What torch says of its switches on a GPU; before 2.9 it had only the older ones."""
    said = {True: "tf32", False: "ieee"}
    switches = {
        "matmul": {"fp32_precision": said[matmul]} if newer else {"allow_tf32": matmul},
        "cudnn": {"conv": SimpleNamespace(fp32_precision=said[conv])} if newer else {"allow_tf32": conv},
    }
    return SimpleNamespace(
        cuda=SimpleNamespace(get_device_capability=lambda _device: capability),
        backends=SimpleNamespace(
            cuda=SimpleNamespace(matmul=SimpleNamespace(**switches["matmul"])),
            cudnn=SimpleNamespace(enabled=cudnn, **switches["cudnn"]),
        ),
    )


@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.parametrize(
    ("told", "name", "precision"),
    [
        ({}, "mm", "fp32"),
        ({"matmul": True}, "addmm", "tf32"),
        ({"matmul": True, "conv": False}, "convolution", "fp32"),
        ({}, "convolution_backward", "tf32"),
        ({"cudnn": False}, "convolution", "fp32"),
        ({"matmul": True, "capability": (7, 0)}, "mm", "fp32"),
        ({"matmul": True}, "_scaled_dot_product_efficient_attention", "fp32"),
    ],
)
def test_fp32_operands_on_a_gpu_run_as_torchs_switches_say(newer, told, name, precision):
    precisions = Precisions(gpu_torch(newer=newer, **told))
    precisions.saw(name, (Operand, Operand, Operand), 8.0)
    assert precisions.ratios() == {precision: 1.0}


def test_the_switches_are_read_as_this_torch_has_them():
    before = torch.get_float32_matmul_precision()
    try:
        for said, allowed in (("high", True), ("highest", False), ("medium", True)):
            torch.set_float32_matmul_precision(said)
            assert tf32_allowed(torch) is allowed
    finally:
        torch.set_float32_matmul_precision(before)
    assert tf32_allowed(torch, convolution=True) is torch.backends.cudnn.allow_tf32


def test_what_is_next_to_nothing_is_left_out():
    precisions = Precisions(torch)
    precisions.saw("mm", (torch.empty(1, dtype=torch.bfloat16),), 1e9)
    precisions.saw("bmm", (torch.empty(1),), 1e3)
    assert precisions.ratios() == {"bf16": 1.0}


@pytest.mark.parametrize(
    ("dtype", "name"), [(torch.float8_e4m3fn, "fp8"), (torch.float8_e5m2, "fp8"), (torch.complex64, "complex64")]
)
def test_names(dtype, name):
    assert name_of(dtype) == name


def test_nobody_is_advised_to_switch_on_what_is_on(tmp_path):
    """On a GPU the same run would be told of bf16 if its precision came from the weights, which are fp32."""
    from dataclasses import replace

    from loops import place

    on_gpu = {False: "fp32", True: "bf16"}
    for bf16, precision in on_gpu.items():
        seen = replace(hugging_face(tmp_path, bf16=bf16), place=place())
        assert seen.precision == precision
        assert ("precision" in {found.topic for found in find_all(seen)}) is not bf16
