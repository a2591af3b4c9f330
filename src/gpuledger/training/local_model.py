"""How fast does this machine's GPU serve a model of a known shape, batch by batch?

The weights are random: speed does not depend on what a model knows. Needs torch and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpuledger.catalog.models import get_model
from gpuledger.catalog.models.shapes import TransformerShape
from gpuledger.errors import DeviceError, InputError
from gpuledger.training.runtime import first_line, gpu_uuid, need_torch
from gpuledger.training.torch_llama import Llama, check_shape, random_weights

DTYPES = ("bfloat16", "float16", "float32")
WARM_STEPS = 3


@dataclass(frozen=True)
class Generated:
    """One batch: seconds to the first token of all, and to the last."""

    batch: int
    input_tokens: int
    output_tokens: int
    ttft_s: float
    latency_s: float


@dataclass
class LocalModel:
    """A model on one device. `compiled` and `graph`: whether a step is compiled and captured, or why not."""

    name: str
    torch: Any
    device: Any
    shape: TransformerShape
    weights: Any
    seed: int
    wants_compile: bool
    compiled: str = "not tried yet"
    graph: str = "not tried yet"
    peak_bytes: int = 0
    _ready: dict[tuple[int, int], tuple[Llama, Callable[[], None]]] = field(default_factory=dict)

    def generate(self, batch: int, input_tokens: int, output_tokens: int) -> Generated:
        """Read a random prompt and generate `output_tokens`, for a whole batch at once."""
        if self.device.type == "cuda":
            self.torch.cuda.set_device(self.device)  # it is set per thread, and this may be another one
        llama, step = self._of(batch, input_tokens + output_tokens)
        torch = self.torch
        dice = torch.Generator(device=self.device).manual_seed(self.seed)
        prompt = torch.randint(self.shape.vocab, (batch, input_tokens), device=self.device, generator=dice)
        with torch.inference_mode():
            self._settle()
            begun = time.perf_counter()
            llama.prefill(prompt)
            self._settle()
            first_s = time.perf_counter() - begun
            for _ in range(output_tokens - 1):
                step()
            self._settle()
        took_s = time.perf_counter() - begun
        if self.device.type == "cuda":  # the most that the whole device held, as its driver counts it
            free, total = torch.cuda.mem_get_info(self.device)
            self.peak_bytes = max(self.peak_bytes, total - free)
        return Generated(batch, input_tokens, output_tokens, first_s, took_s)

    def _of(self, batch: int, context: int) -> tuple[Llama, Callable[[], None]]:
        """The model with a cache for this batch; only the last is kept, as the next needs its memory."""
        if (batch, context) not in self._ready:
            self._ready.clear()
            if self.device.type == "cuda":
                self.torch.cuda.empty_cache()
            try:
                llama = Llama(self.torch, self.shape, self.weights, batch, context)
                self._ready[batch, context] = llama, self._captured(llama)
            except self.torch.OutOfMemoryError as error:
                words = f"batch {batch} with {context} tokens each does not fit this GPU"
                raise DeviceError(words, hint="give smaller batches") from error
        return self._ready[batch, context]

    def _captured(self, llama: Llama) -> Callable[[], None]:
        """One step as a CUDA graph; on a CPU the step itself."""
        torch = self.torch
        with torch.inference_mode():
            if self.wants_compile:
                self._compile(llama)
            else:
                self.compiled = "no: it was not asked for"
            if self.device.type != "cuda":
                self.graph = "no: only a GPU has graphs"
                return llama.step
            try:
                replay = self._graph(llama)
            except RuntimeError as error:
                self.graph = f"no: capturing failed: {first_line(error)}"
                return llama.step
        self.graph = "yes: one step of the whole batch"
        return replay

    def _graph(self, llama: Llama) -> Callable[[], None]:
        torch = self.torch
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_STEPS):
                llama.place.fill_(0)
                llama.step()
        torch.cuda.current_stream().wait_stream(aside)
        llama.place.fill_(0)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            llama.step()
        replay: Callable[[], None] = graph.replay
        return replay

    def _compile(self, llama: Llama) -> None:
        """One layer is compiled, not the whole model: all are alike, and it takes seconds instead of minutes."""
        plain, torch = llama.layer, self.torch
        # A product with one row is memory-bound: tuned as a reduction it comes closer to the bandwidth.
        tuned = {"coordinate_descent_tuning": llama.batch == 1}
        try:
            torch.compiler.reset()
            llama.layer = torch.compile(plain, dynamic=False, options=tuned)
            llama.place.fill_(0)
            llama.step()
            self._settle()
            self.compiled = "yes: one layer, by torch.compile"
        except Exception as error:  # noqa: BLE001 - a missing compiler shows in many ways; the plain step always works
            llama.layer = plain
            self.compiled = f"no: torch.compile failed: {type(error).__name__}: {first_line(error)}"

    def _settle(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def facts(self) -> dict[str, Any]:
        """What ran, for the node of a benchmark."""
        cuda = self.device.type == "cuda"
        return {
            "model": self.name,
            "weights": "random",
            "params": self.weights.params,
            "weights_bytes_read_per_step": self.weights.read_bytes,
            "dtype": str(self.weights.embedding.dtype).removeprefix("torch."),
            "torch": str(self.torch.__version__),
            "cuda": str(self.torch.version.cuda),
            "device": str(self.device),
            "compiled": self.compiled,
            "graph": self.graph,
            **(self._card() if cuda else {}),
        }

    def _card(self) -> dict[str, Any]:
        named = {"gpu": self.torch.cuda.get_device_name(self.device), "gpus": 1}
        peak = {"memory_used_bytes": self.peak_bytes} if self.peak_bytes else {}
        return named | {"gpu_uuid": gpu_uuid(self.torch, self.device)} | peak


def open_model(
    name: str, *, device: str = "cuda:0", dtype: str = "bfloat16", seed: int = 0, compiled: bool = True
) -> LocalModel:
    """A model of the catalog with random weights on a device."""
    found, shape = check_model(name, dtype)
    return open_shape(found, shape, device=device, dtype=dtype, seed=seed, compiled=compiled)


def check_model(name: str, dtype: str) -> tuple[str, TransformerShape]:
    """The model's own name and shape; refused where this runner cannot do it."""
    model = get_model(name)
    if not isinstance(model.shape, TransformerShape):
        raise InputError(f"{model.name} is not a language model", hint="use a Llama-shaped one: llama-3.1-8b")
    _check(model.shape, dtype)
    return model.name, model.shape


def _check(shape: TransformerShape, dtype: str) -> None:
    check_shape(shape)
    if dtype not in DTYPES:
        raise InputError(f"dtype {dtype!r} is not known", hint=f"one of {', '.join(DTYPES)}")


def open_shape(
    name: str, shape: TransformerShape, *, device: str, dtype: str = "bfloat16", seed: int = 0, compiled: bool = True
) -> LocalModel:
    """A model of any shape this runner can do."""
    _check(shape, dtype)
    torch = need_torch("running a local model")
    if device.startswith("cuda") and not torch.cuda.is_available():
        hint = "check nvidia-smi, or try a small model on the device cpu"
        raise DeviceError("torch finds no GPU", hint=hint)
    place = torch.device(device)
    try:
        weights = random_weights(torch, shape, place, getattr(torch, dtype), seed)
    except torch.OutOfMemoryError as error:
        words = f"the weights of {name} in {dtype} do not fit {device}"
        raise DeviceError(words, hint="use a smaller model") from error
    return LocalModel(name, torch, place, shape, weights, seed, compiled and place.type == "cuda")
