"""What does one step of this loop compute: FLOPs by phase, kernels, products of awkward sizes, and in which precision?

One step runs under torch's dispatcher, which shows every operation. FLOP formulas are torch's own (flop_counter).
`model_flop` counts attention over the whole square and the backward pass at most twice the forward one, the convention
for MFU; `hardware_flop` is what the device does: recomputation too, and only the half of causal attention that fused
kernels compute. The type of the weights does not show the precision: autocast converts operands on the way to each
product. The dispatcher shows the operands as the kernel gets them; for fp32 operands on a GPU, torch's switches decide
whether the kernel may round them to TF32.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpuledger.training.flops import in_groups
from gpuledger.training.meter.observed import Work
from gpuledger.training.meter.totals import BatchSize
from gpuledger.training.runtime import first_line
from gpuledger.units import Unknown

# Tensor cores want the sizes of 16-bit products in multiples of 8 (16 bytes).
ALIGNED = 8
# Less than this of the FLOPs is left out: most models multiply positions of rotary embeddings in fp32.
NEGLIGIBLE_RATIO = 1e-4
NO_PRODUCT = Unknown("the counted step held no matrix product that torch knows")
_FUSED = "scaled_dot_product"
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm")
_NO_KERNEL = ("_unsafe_view", "detach", "alias")
_KNOWN_SPACES = frozenset({"aten", "prims", "profiler", "prim", "c10d", "_c10d_functional"})
_COUNTED = "counted by torch on one step"
_APART = "forward pass counted by torch on tensors without data, backward taken as twice it: the model is compiled"
# torch's names of number types, and the catalog's.
_NAMES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64", "int8": "int8"}
_SHORT_NAMES = {"float8": "fp8", "float4": "fp4"}
# These add their product to their first argument: the operands come after it.
_ADDED_TO_FIRST = frozenset({"addmm", "baddbmm", "addbmm", "_addmm_activation"})
_TF32_FROM = (8, 0)  # compute capability


class Precisions:
    """FLOPs of the products by the precision they ran in."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._flop: defaultdict[str, float] = defaultdict(float)
        self._has_tf32: dict[Any, bool] = {}

    def saw(self, name: str, args: Any, flop: float) -> None:
        """A product with its arguments, as dispatched."""
        place = 1 if name in _ADDED_TO_FIRST else 0
        operand = args[place] if place < len(args) else None
        dtype = getattr(operand, "dtype", None)
        if dtype is None or operand is None:
            return
        found = name_of(dtype)
        if found == "fp32" and operand.device.type == "cuda" and self._in_tf32(name, operand.device):
            found = "tf32"
        self._flop[found] += flop

    def _in_tf32(self, name: str, device: Any) -> bool:
        if "attention" in name:
            return False  # fused attention of fp32 operands keeps their precision, whatever the switches
        if device not in self._has_tf32:
            self._has_tf32[device] = self._torch.cuda.get_device_capability(device) >= _TF32_FROM
        return self._has_tf32[device] and tf32_allowed(self._torch, convolution="conv" in name)

    def ratios(self) -> dict[str, float] | Unknown:
        """The share of the FLOPs by precision, largest first."""
        whole = sum(self._flop.values())
        if not whole:
            return NO_PRODUCT
        ordered = sorted(self._flop.items(), key=lambda item: -item[1])
        kept = {name: flop for name, flop in ordered if flop >= NEGLIGIBLE_RATIO * whole}
        return {name: flop / sum(kept.values()) for name, flop in kept.items()}


def most_of(ratios: Mapping[str, float] | Unknown) -> str | Unknown:
    """The precision of most FLOPs."""
    return ratios if isinstance(ratios, Unknown) else max(ratios, key=lambda name: ratios[name])


def tf32_allowed(torch: Any, *, convolution: bool = False) -> bool:
    """Whether torch lets products of fp32 operands, or convolutions, run in TF32 on a GPU that has it."""
    backends = torch.backends
    by_cudnn = convolution and backends.cudnn.enabled
    try:
        # From torch 2.9 on. The older switch cannot be read once this one has been set.
        newer = backends.cudnn.conv if by_cudnn else backends.cuda.matmul
        return bool(newer.fp32_precision == "tf32")
    except AttributeError:
        return bool((backends.cudnn if by_cudnn else backends.cuda.matmul).allow_tf32)


def name_of(dtype: Any) -> str:
    """The catalog's name of torch's type; torch's own where the catalog has none."""
    text = str(dtype).removeprefix("torch.")
    return _NAMES.get(text) or next((name for start, name in _SHORT_NAMES.items() if text.startswith(start)), text)


class Counting:
    """Counts from `start` to `stop` what one step computes; `phase` returns which part of the step runs.

    Odd sizes are rows x inner x columns of products that are not multiples of 8.
    """

    def __init__(self, torch: Any, phase: Callable[[], str]) -> None:
        self._torch, self._phase = torch, phase
        self.forward_flop = self.backward_flop = self.hardware_flop = self.odd_flop = self.product_flop = 0.0
        self.seen_flop = self.convolution_flop = 0.0
        self.kernels, self.precisions = 0, Precisions(torch)
        self.odd_sizes, self.unseen = Counter[tuple[int, ...]](), Counter[str]()
        self._stack = contextlib.ExitStack()

    def start(self) -> None:
        """From here on every operation is looked at."""
        if "torch._dynamo" in sys.modules:
            # A compiled model under a dispatch mode would stay uncompiled for good: run it eagerly this once.
            self._stack.enter_context(self._torch.compiler.set_stance("force_eager"))
        self._stack.enter_context(_mode(self._torch, self._saw))

    def stop(self) -> Counting:
        """Everything is restored, and counted."""
        self._stack.close()
        return self

    def work(self, how: str, size: BatchSize) -> Work | Unknown:
        """As MFU counts it: a backward pass is at most two products for each forward one."""
        forward, backward = self.forward_flop, self.backward_flop
        model_flop = forward + min(backward, 2 * forward)
        if not model_flop:
            return NO_PRODUCT
        if self.unseen:
            names = ", ".join(name for name, _ in self.unseen.most_common(3))
            how += f"; operations without a formula are left out: {names}"
        return Work(
            model_flop=model_flop, hardware_flop=self.hardware_flop, forward_flop=forward, how=how, tokens=size.tokens,
            samples=size.samples, kernels=self.kernels,
            odd_ratio=self.odd_flop / self.product_flop if self.product_flop else 0.0,
            odd_sizes=tuple(odd for odd, _ in self.odd_sizes.most_common(3)),
            recompute_ratio=max(0.0, backward / forward - 2) if forward else 0.0,
            convolution_ratio=self.convolution_flop / self.seen_flop if self.seen_flop else 0.0,
        )  # fmt: skip

    def _saw(self, func: Any, args: Any, kwargs: Any, out: Any, formula: Any) -> None:
        name = func._overloadpacket.__name__  # noqa: SLF001 - torch's own modes name operations by it
        if func.is_view or name in _NO_KERNEL:
            return
        self.kernels += 1
        if formula is None and _FUSED in name:
            formula = _attention  # the processor's own kernels are missing from torch's list
        if formula is None:
            if func.namespace not in _KNOWN_SPACES:
                self.unseen[f"{func.namespace}::{name}"] += 1
            return
        flop = float(formula(*args, **kwargs, out_val=out))
        self.precisions.saw(name, args, flop)
        self.seen_flop += flop
        self.convolution_flop += flop if "conv" in name else 0.0
        if self._phase() == "backward":
            self.backward_flop += flop
        else:
            self.forward_flop += flop
        self.hardware_flop += flop / 2 if _FUSED in name and _is_causal(func, args, kwargs) else flop
        if name in _PRODUCTS:
            a, b = (args[1], args[2]) if name in _ADDED_TO_FIRST else (args[0], args[1])
            sizes = (int(a.shape[-2]), int(a.shape[-1]), int(b.shape[-1]))
            self.product_flop += flop
            if any(n % ALIGNED for n in sizes):
                self.odd_flop += flop
                self.odd_sizes[sizes] += 1


def count_apart(torch: Any, model: Any, args: Any, kwargs: Any) -> Counting:
    """The forward pass of a compiled model on tensors without data; backward is taken as twice it.

    Nothing is computed or stored, so it can neither run out of memory nor change the random numbers of the job. The
    backward pass runs in the precision of the forward pass: torch gives gradients the type of their tensors.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    counting = Counting(torch, lambda: "forward")
    plain = getattr(model, "_orig_mod", model)
    if isinstance(plain, torch.nn.parallel.DistributedDataParallel):
        plain = plain.module  # it would exchange buffers with the other ranks
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        counting.start()
        try:
            plain(*args, **kwargs)
        finally:
            counting.stop()
            torch.clear_autocast_cache()  # it may hold converted weights without data, and the job would use them
    counting.backward_flop = 2 * counting.forward_flop
    counting.hardware_flop *= 3
    counting.kernels = 0  # a compiled model launches others than these
    return counting


def _attention(*args: Any, **_: Any) -> int:
    """FLOP of fused attention by its shapes: queries, keys and values, after the gradient where there is one."""
    from torch.utils import flop_counter

    shapes = [tuple(a.shape) for a in args[:4] if hasattr(a, "shape")]
    backward = len(shapes) == 4 and len(shapes[3]) == 4
    made = flop_counter.sdpa_backward_flop_count if backward else flop_counter.sdpa_flop_count
    return int(made(*shapes[: 4 if backward else 3]))


def _is_causal(func: Any, args: Any, kwargs: Any) -> bool:
    names = [a.name for a in func._schema.arguments]  # noqa: SLF001 - torch has no public name for it
    if "is_causal" not in names:
        return False
    place = names.index("is_causal")
    return bool(kwargs.get("is_causal", args[place] if place < len(args) else False))


@contextlib.contextmanager
def _mode(torch: Any, saw: Callable[[Any, Any, Any, Any, Any], None]) -> Iterator[None]:
    """Torch's dispatcher with a witness; the class is made here because its base is torch's."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry, shape_wrapper

    known = flop_registry | {op: shape_wrapper(formula) for op, formula in in_groups(torch.ops.aten).items()}

    class Witness(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            out = func(*args, **given)
            if isinstance(func, torch._ops.OpOverload):  # noqa: SLF001
                saw(func, args, given, out, known.get(func._overloadpacket))  # noqa: SLF001
            return out

    with Witness():
        yield


class StepWork:
    """Counts one step as it runs; the forward pass of a compiled model apart, so that it stays compiled."""

    def __init__(self, torch: Any, phase: Callable[[], str], forwards: Callable[[], int], *, wanted: bool) -> None:
        self._torch, self._phase, self._forwards = torch, phase, forwards
        why = "which did not come" if wanted else "and the meter was created with count=False"
        self.work: Work | Unknown = Unknown(f"FLOPs are counted in the second step, {why}")
        self.precision_ratios: dict[str, float] | Unknown = Unknown(f"precision is observed in the second step, {why}")
        self.wanted = wanted  # and not counted yet
        self._counting: Counting | None = None
        self._apart = self._unseen = self.hooks_compiled = False

    def start(self, *, compiled: bool) -> None:
        """The step to be counted begins."""
        self._apart, self._unseen = compiled, not self._forwards()
        if not compiled and self._counting is None:
            self._counting = Counting(self._torch, self._phase)
            self._counting.start()

    def forward(self, model: Any, args: Any, kwargs: Any, size: BatchSize) -> None:
        """The model is called with these."""
        if not self._apart:
            return
        self._apart = False
        try:
            self._keep(count_apart(self._torch, model, args, kwargs), _APART, size)
        except Exception as error:  # noqa: BLE001 - whatever a model does on tensors without data; the job goes on
            self._give_up(f"a compiled model is counted apart, and this one cannot be: {first_line(error)[:120]}")

    def stop(self, size: BatchSize, *, keep: bool) -> None:
        """The step is over; without `keep` it did not reach its end."""
        if self._apart and keep:
            self._give_up("a compiled model is counted when it is called, and its own forward pass was not called")
        self._apart = False
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.stop()
            if keep:
                self._keep(counting, _COUNTED, size)
                # A compiled caller compiles the model's hooks too: they run in this uncompiled step only.
                self.hooks_compiled = self._unseen and self._forwards() > 0

    def _keep(self, counting: Counting, how: str, size: BatchSize) -> None:
        self.work, self.precision_ratios = counting.work(how, size), counting.precisions.ratios()
        self.wanted = False

    def _give_up(self, why: str) -> None:
        self.work = self.precision_ratios = Unknown(why)
        self.wanted = False
