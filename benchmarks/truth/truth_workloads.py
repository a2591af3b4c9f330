"""How is a workload of a list such as truth_workloads.toml run, and how many FLOPs is one turn of it?

A maker prepares its data and returns (turn, FLOPs of a turn). FLOPs of models are counted by torch, which takes the
empty half of a causal mask for work: with long sequences it counts more than the hardware does.
"""

from __future__ import annotations

import gc
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (everybody calls it so)
from torch.utils.flop_counter import FlopCounterMode

Turn = tuple[Callable[[], Any], float]
DEVICE = "cuda"
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
DTYPES |= {"fp64": torch.float64}


def measure_all(seconds: float, only: Iterable[str], file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run each workload of a list, and say how many FLOPs it did in the time it took."""
    from heldout_makers import MAKERS as MORE

    wanted = set(only)
    listed = tomllib.loads(file.read_text(encoding="utf-8"))["workloads"]
    for facts in listed:
        name, maker, given = facts.pop("name"), facts.pop("make"), facts.pop("with", {})
        if wanted and name not in wanted:
            continue
        torch.backends.cuda.matmul.allow_tf32 = facts.get("precision") == "tf32"
        torch.backends.cudnn.allow_tf32 = facts.get("precision") == "tf32"
        try:
            turn, flop = (MAKERS | MORE)[maker](**given)
            for _ in range(2):
                turn()
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001  one that cannot run must not cost the others
            print(f"{name}: left out: {str(error)[:200]}", flush=True)
            continue
        yield name, {**run(turn, flop, seconds), **facts}
        del turn
        gc.collect()
        torch.cuda.empty_cache()
        time.sleep(0.5)


def run(turn: Callable[[], Any], flop: float, seconds: float) -> dict[str, Any]:
    start_at, start, turns, chunk = time.time(), time.perf_counter(), 0, 1
    while (spent := time.perf_counter() - start) < seconds:
        before = time.perf_counter()
        for _ in range(chunk):
            turn()
        torch.cuda.synchronize()
        turns += chunk
        # About 50 ms of work between synchronizations: seldom enough not to show, often enough to end on time.
        chunk = max(1, round(chunk * 0.05 / max(1e-6, time.perf_counter() - before)))
    spent = time.perf_counter() - start
    facts = {"tflop_per_s": turns * flop / spent / 1e12, "seconds": spent, "iterations": turns}
    return {**facts, "start_at": start_at, "end_at": time.time()}


def counted(turn: Callable[[], Any]) -> Turn:
    turn()
    with FlopCounterMode(display=False) as counter:
        turn()
    return turn, float(counter.get_total_flops())


def gemm(kind: str, m: int, n: int | None = None, k: int | None = None, transposed: bool = False) -> Turn:
    n, k = n or m, k or m
    a = torch.randn(m, k, device=DEVICE).to(DTYPES[kind])
    b = torch.randn(n, k, device=DEVICE).to(DTYPES[kind]).t() if transposed else None
    b = torch.randn(k, n, device=DEVICE).to(DTYPES[kind]) if b is None else b
    out = torch.empty(m, n, device=DEVICE, dtype=a.dtype)
    return lambda: torch.mm(a, b, out=out), 2.0 * m * n * k


def fp8(n: int, fast: bool) -> Turn:
    a = torch.randn(n, n, device=DEVICE).to(torch.float8_e4m3fn)
    b = torch.randn(n, n, device=DEVICE).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device=DEVICE)
    bf16 = torch.bfloat16
    return lambda: torch._scaled_mm(a, b, one, one, out_dtype=bf16, use_fast_accum=fast), 2.0 * n**3  # noqa: SLF001


def int8(n: int) -> Turn:
    a = torch.randint(-8, 8, (n, n), device=DEVICE, dtype=torch.int8)
    b = torch.randint(-8, 8, (n, n), device=DEVICE, dtype=torch.int8).t()
    return lambda: torch._int_mm(a, b), 2.0 * n**3  # noqa: SLF001


def attention(kind: str, seq: int, causal: bool, train: bool) -> Turn:
    shape = (max(1, 16384 // seq), 16, seq, 128)
    q, k, v = (torch.randn(shape, device=DEVICE, dtype=DTYPES[kind], requires_grad=train) for _ in range(3))

    def turn() -> None:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if train:
            out.backward(out)

    return counted(turn)


class Block(torch.nn.Module):
    """One layer of a language model."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, seq, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(torch.nn.Module):
    """A language model: embedding, layers, output."""

    def __init__(self, width: int, layers: int, words: int = 32000) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(words, width), torch.nn.Linear(width, words, bias=False)
        self.blocks = torch.nn.ModuleList(Block(width, max(1, width // 64)) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def lm(kind: str, width: int, layers: int, batch: int, seq: int, train: bool = True, wait_s: float = 0.0) -> Turn:
    with torch.device(DEVICE):
        model = Model(width, layers)
        tokens = torch.randint(0, 32000, (batch, seq))
    half = kind in ("bf16", "fp16")
    if not train:
        model = model.to(DTYPES[kind])
        with torch.no_grad():
            turn, flop = counted(lambda: model(tokens))
        return torch.no_grad()(turn), flop
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        if wait_s:
            torch.cuda.synchronize()
            time.sleep(wait_s)
        with torch.autocast("cuda", dtype=DTYPES[kind], enabled=half):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return counted(step)


def vision(model: str, kind: str, batch: int, train: bool = True, last: bool = False) -> Turn:
    import torchvision

    layout = torch.channels_last if last else torch.contiguous_format
    net = getattr(torchvision.models, model)().to(DEVICE, memory_format=layout)
    x = torch.randn(batch, 3, 224, 224, device=DEVICE).contiguous(memory_format=layout)
    target = torch.randint(0, 1000, (batch,), device=DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    half = kind in ("bf16", "fp16")

    def step() -> None:
        with torch.autocast("cuda", dtype=DTYPES[kind], enabled=half):
            loss = F.cross_entropy(net(x), target)
        if train:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return counted(step)


def elementwise(what: str, flop_each: float, kind: str) -> Turn:
    x = torch.randn(1 << 28, device=DEVICE).to(DTYPES[kind])
    rows = x.view(-1, 4096)
    runs: dict[str, Callable[[], Any]] = {
        "add": lambda: torch.add(x, x),
        "copy": x.clone,
        "sum": x.sum,
        "softmax": lambda: rows.softmax(-1),
        "layernorm": lambda: F.layer_norm(rows, (4096,)),
    }
    return runs[what], flop_each * x.numel()


def starved(n: int, turns: int, wait_s: float) -> Turn:
    turn, flop = gemm("bf16", n)

    def burst() -> None:
        for _ in range(turns):
            turn()
        torch.cuda.synchronize()
        time.sleep(wait_s)

    return burst, turns * flop


def raw(code: str, blocks: int, threads: int, args: Callable[[Any], tuple[Any, ...]]) -> Callable[[], None]:
    """A CUDA kernel called `go`."""
    import cupy

    kernel, given = cupy.RawKernel(code, "go"), args(cupy)
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def turn() -> None:
        with stream:
            kernel((blocks,), (threads,), given)

    return turn


def vector(body: str, flop_each: int, ctype: str = "float") -> Turn:
    """A loop of one vector operation on registers: the pipe alone, no memory."""
    code = (
        f'extern "C" __global__ void go({ctype}* out, {ctype} a, {ctype} b) {{ {ctype} x[8], s = 0;'
        "for (int i = 0; i < 8; i++) x[i] = threadIdx.x + i;"
        f'for (int t = 0; t < 4096; t++) {{ _Pragma("unroll") for (int i = 0; i < 8; i++) {{ {body} }} }}'
        "for (int i = 0; i < 8; i++) s += x[i]; if (s == 12345) out[0] = s; }"
    )

    def args(cupy: Any) -> tuple[Any, ...]:
        kind = cupy.float64 if ctype == "double" else cupy.float32
        return cupy.zeros(1, kind), kind(1.0001), kind(0.9999)

    return raw(code, 132 * 8, 256, args), 132 * 8 * 256 * 4096 * 8.0 * flop_each


def spin(blocks: int) -> Turn:
    code = 'extern "C" __global__ void go() { long long s = clock64(); while (clock64() - s < 20000000) { } }'
    return raw(code, blocks, 128, lambda _: ()), 0.0


def copies(mib: int) -> Turn:
    host = torch.empty(mib << 20, dtype=torch.uint8, pin_memory=True)
    board = torch.empty(mib << 20, dtype=torch.uint8, device=DEVICE)
    return lambda: board.copy_(host, non_blocking=True), 0.0


def mixed() -> Turn:
    (one, a), (two, b) = gemm("fp32", 4096), gemm("bf16", 8192)

    def turn() -> None:
        one()
        two()

    return turn, a + b


def conv(kind: str, channels: int, last: bool) -> Turn:
    layout = torch.channels_last if last else torch.contiguous_format
    w = torch.randn(channels, channels, 3, 3, device=DEVICE).to(DTYPES[kind]).contiguous(memory_format=layout)
    x = torch.randn(64, channels, 56, 56, device=DEVICE).to(DTYPES[kind]).contiguous(memory_format=layout)
    return counted(lambda: F.conv2d(x, w, padding=1))


def graphed(n: int) -> Turn:
    turn, flop = gemm("bf16", n)
    graph = torch.cuda.CUDAGraph()
    turn()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(200):
            turn()
    return graph.replay, 200 * flop


MAKERS: dict[str, Callable[..., Turn]] = {
    maker.__name__: maker
    for maker in (
        attention,
        conv,
        copies,
        elementwise,
        fp8,
        gemm,
        graphed,
        int8,
        lm,
        mixed,
        spin,
        starved,
        vector,
        vision,
    )
}
