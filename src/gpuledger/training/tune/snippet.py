"""How are the winning settings written, so that they can be pasted into a training script?"""

from __future__ import annotations

from gpuledger.training.tune.settings import Settings, in_words

_TEXT = """\
# {found}, loss compared over the first updates.
# {settings}
import torch

MICRO_BATCH = {batch}
ACCUMULATE = {accumulate}  # {passes}; {effective} samples per step as before
torch.set_float32_matmul_precision("{matmul}")  # {products}
torch.backends.cudnn.allow_tf32 = {tf32}
{switches}

def make_loader(dataset, **options):  # collate_fn=... where you have one
    return torch.utils.data.DataLoader(dataset, {loader}, **options)


def prepare(model, loss_of, device):
    model = model.to(device{memory_format})
{compiled}    return model, loss_of


def make_optimizer(kind, model, **options):
    return kind(model.parameters(){fused}, **options)


def to_device(value, device):
    if isinstance(value, dict):
        return {{name: to_device(item, device) for name, item in value.items()}}
    if isinstance(value, (list, tuple)):
        moved = [to_device(item, device) for item in value]
        return type(value)(*moved) if hasattr(value, "_fields") else moved
    if not isinstance(value, torch.Tensor):
        return value.to(device) if hasattr(value, "to") else value
{images}    return value.to(device, non_blocking={pin})


def train_update(model, loss_of, optimizer, batches, device):
    total = torch.zeros((), device=device)  # {reading}
    for _ in range(ACCUMULATE):
        batch = to_device(next(batches), device)
{loss}        total += loss.detach()
{step}    optimizer.zero_grad(set_to_none=True)
    return total
"""
_IMAGES = "    if value.dim() == 4:\n        value = value.to(memory_format=torch.channels_last)\n"
_FORWARD = "loss = loss_of(model, batch) / ACCUMULATE\n"


def write(found: str, settings: Settings) -> str:
    """Python that sets up a loop with these settings: `make_loader`, `prepare`, `make_optimizer`, `train_update`."""
    s, tf32, scaled = settings, settings.precision != "fp32", settings.precision == "fp16"
    half = {"bf16": "bfloat16", "fp16": "float16"}.get(s.precision)
    loader = ["batch_size=MICRO_BATCH", "shuffle=True", "drop_last=True", f"num_workers={s.workers}"]
    loader += [f"prefetch_factor={s.prefetch}", "persistent_workers=True"] if s.workers else []
    loader += ["pin_memory=True"] if s.pin else []
    benchmark = "torch.backends.cudnn.benchmark = True  # shapes must not change from step to step\n"
    autocast = f"        with torch.autocast(torch.device(device).type, torch.{half}):\n            {_FORWARD}"
    backward = "scaler.scale(loss).backward()" if scaled else "loss.backward()"
    each_step = "reading it at every step cost nothing that could be measured"
    seldom = "call .item() on it every few hundred steps, not each time: that waits for the device"
    return _TEXT.format(
        found=found,
        settings=in_words(s),
        batch=s.batch,
        accumulate=s.accumulate,
        passes="an optimizer step follows every pass" if s.accumulate == 1 else "passes before an optimizer step",
        effective=s.effective_batch,
        matmul="high" if tf32 else "highest",
        products="matrix products in fp32 may use TF32" if tf32 else "matrix products in full fp32",
        tf32=tf32,
        switches=benchmark * s.cudnn_benchmark + 'scaler = torch.amp.GradScaler("cuda")\n' * scaled,
        loader=", ".join(loader),
        memory_format=", memory_format=torch.channels_last" * s.channels_last,
        compiled=f'    loss_of = torch.compile(loss_of, mode="{s.compile}", dynamic=False)\n' * (s.compile != "off"),
        fused=", fused=True" * s.fused,
        images=_IMAGES * s.channels_last,
        pin=s.pin,
        reading=seldom if s.logging == "async" else each_step,
        loss=(autocast if half else f"        {_FORWARD}") + f"        {backward}\n",
        step="    scaler.step(optimizer)\n    scaler.update()\n" if scaled else "    optimizer.step()\n",
    )
