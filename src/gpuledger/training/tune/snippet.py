"""How are the winning settings written, so that they can be pasted into a training script?"""

from __future__ import annotations

from gpuledger.training.tune.settings import Settings, in_words

_TO_DEVICE = """

def to_device(value, device):
    if isinstance(value, dict):
        return {name: to_device(item, device) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        moved = [to_device(item, device) for item in value]
        return type(value)(*moved) if hasattr(value, "_fields") else moved
    if not isinstance(value, torch.Tensor):
        return value.to(device) if hasattr(value, "to") else value"""


def write(found: str, settings: Settings) -> str:
    """Python that sets up a loop with these settings: `make_loader`, `prepare`, `make_optimizer`, `train_update`."""
    head = [f"# {found}, loss compared over the first updates.", f"# {in_words(settings)}"]
    parts = (_switches(settings), _loader(settings), _prepare(settings), _optimizer(settings), _update(settings))
    return "\n".join([*head, *(line for part in parts for line in part)]) + "\n"


def _switches(settings: Settings) -> list[str]:
    lines = ["import torch", ""]
    lines.append(f"MICRO_BATCH = {settings.batch}")
    passes = "an optimizer step follows every pass" if settings.accumulate == 1 else "passes before an optimizer step"
    lines.append(
        f"ACCUMULATE = {settings.accumulate}  # {passes}; {settings.effective_batch} samples per step as before"
    )
    tf32 = settings.precision != "fp32"
    words = "matrix products in fp32 may use TF32" if tf32 else "matrix products in full fp32"
    lines.append(f'torch.set_float32_matmul_precision("{"high" if tf32 else "highest"}")  # {words}')
    lines.append(f"torch.backends.cudnn.allow_tf32 = {tf32}")
    if settings.cudnn_benchmark:
        lines.append("torch.backends.cudnn.benchmark = True  # shapes must not change from step to step")
    if settings.precision == "fp16":
        lines.append('scaler = torch.amp.GradScaler("cuda")')
    return lines


def _loader(settings: Settings) -> list[str]:
    options = ["batch_size=MICRO_BATCH", "shuffle=True", "drop_last=True", f"num_workers={settings.workers}"]
    if settings.workers:
        options += [f"prefetch_factor={settings.prefetch}", "persistent_workers=True"]
    if settings.pin:
        options.append("pin_memory=True")
    return [
        "",
        "",
        "def make_loader(dataset, **options):  # collate_fn=... where you have one",
        f"    return torch.utils.data.DataLoader(dataset, {', '.join(options)}, **options)",
    ]


def _prepare(settings: Settings) -> list[str]:
    form = ", memory_format=torch.channels_last" if settings.channels_last else ""
    lines = ["", "", "def prepare(model, loss_of, device):", f"    model = model.to(device{form})"]
    if settings.compile != "off":
        lines.append(f'    loss_of = torch.compile(loss_of, mode="{settings.compile}", dynamic=False)')
    return [*lines, "    return model, loss_of"]


def _optimizer(settings: Settings) -> list[str]:
    fused = ", fused=True" if settings.fused else ""
    call = f"    return kind(model.parameters(){fused}, **options)"
    return ["", "", "def make_optimizer(kind, model, **options):", call]


def _update(settings: Settings) -> list[str]:
    """The loop of one optimizer step."""
    half = {"bf16": "bfloat16", "fp16": "float16"}.get(settings.precision)
    pad, scaled = "        ", settings.precision == "fp16"
    lines = [_TO_DEVICE]
    if settings.channels_last:
        lines += ["    if value.dim() == 4:", "        value = value.to(memory_format=torch.channels_last)"]
    lines += [
        f"    return value.to(device, non_blocking={settings.pin})",
        "",
        "",
        "def train_update(model, loss_of, optimizer, batches, device):",
        f"    total = torch.zeros((), device=device)  # {_reading(settings)}",
        "    for _ in range(ACCUMULATE):",
        f"{pad}batch = to_device(next(batches), device)",
    ]
    if half:
        lines.append(f"{pad}with torch.autocast(torch.device(device).type, torch.{half}):")
    loss = "loss = loss_of(model, batch) / ACCUMULATE"
    lines.append(f"{pad}    {loss}" if half else f"{pad}{loss}")
    lines.append(f"{pad}scaler.scale(loss).backward()" if scaled else f"{pad}loss.backward()")
    lines.append(f"{pad}total += loss.detach()")
    lines += ["    scaler.step(optimizer)", "    scaler.update()"] if scaled else ["    optimizer.step()"]
    return [*lines, "    optimizer.zero_grad(set_to_none=True)", "    return total"]


def _reading(settings: Settings) -> str:
    if settings.logging == "async":
        return "call .item() on it every few hundred steps, not each time: that waits for the device"
    return "reading it at every step cost nothing that could be measured"
