"""Which bytes are alive, which are moved, and how many FLOP are done while a step runs on the meta device?"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch._prims_common import suggest_memory_format
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import flop_registry, shape_wrapper

from gpuledger.training.flops import formulas

# The CUDA allocator hands out blocks of this size.
BLOCK_BYTES = 512
# What a module that loops over a sequence may take before it is traced at shorter lengths instead.
MOST_OPERATORS = 120_000
# The multiprocessors of an H200, on which the factor of depthwise convolutions was fitted.
BUSY_CHANNELS = 132
_ITEM = torch.ops.aten._local_scalar_dense.default  # noqa: SLF001


class TooLong(Exception):
    """More operators than a trace should take."""


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Bytes alive now and at most; operators that launch a kernel, the bytes they read and write, and their FLOP."""

    def __init__(self, without: Iterable[Any], most: int = MOST_OPERATORS) -> None:
        super().__init__()
        self.alive: dict[int, int] = {tensor.untyped_storage()._cdata: 0 for tensor in without}  # noqa: SLF001
        self.now = self.peak = 0
        self.kernels = 0
        self.moved_bytes = 0
        self.depthwise_bytes = 0
        self.flop = 0
        self.product_flop_bytes: list[tuple[int, int]] = []
        self._left = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func is _ITEM and args[0].is_meta:  # a meta tensor holds nothing: conditions hold, counts are one
            return True if args[0].dtype == torch.bool else 1.0 if args[0].dtype.is_floating_point else 1
        out = func(*args, **given)
        self._left -= 1
        if self._left < 0:
            raise TooLong
        made = [tensor for tensor in tree_iter(out) if isinstance(tensor, torch.Tensor)]
        new = [tensor for tensor in made if self._count(tensor)]
        in_place = func._schema.is_mutable  # noqa: SLF001
        if new or in_place:
            self._work(func, args, given, out, new or made)
        return out

    def hold(self, tensors: Iterable[Any]) -> None:
        """Count tensors that were there before: the inputs."""
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                self._count(tensor)

    def _work(self, func: Any, args: Any, given: dict[str, Any], out: Any, written: list[Any]) -> None:
        read = [tensor for tensor in tree_iter((args, given)) if isinstance(tensor, torch.Tensor)]
        moved = sum(tensor.numel() * tensor.element_size() for tensor in (*read, *written))
        packet = func._overloadpacket  # noqa: SLF001
        if packet in _NO_KERNEL:
            return
        counted = _FLOP.get(packet)
        self.kernels += 1
        if packet in _CONVOLUTIONS:
            anew = _workspace(packet, args, out)
            self.peak = max(self.peak, self.now + anew)
            self.moved_bytes += 2 * anew
            self.depthwise_bytes += int(moved * _slow_share(packet, args))
        if counted is None:
            self.moved_bytes += moved
            return
        flop = int(counted(*args, **given, out_val=out))
        self.flop += flop
        self.product_flop_bytes.append((flop, moved))

    def _count(self, tensor: Any) -> bool:
        """Whether this storage is new."""
        storage = tensor.untyped_storage()
        key = storage._cdata  # noqa: SLF001
        if key in self.alive:
            return False
        size = -(-storage.nbytes() // BLOCK_BYTES) * BLOCK_BYTES
        self.alive[key] = size
        weakref.finalize(storage, self._gone, key, size)
        self.now += size
        self.peak = max(self.peak, self.now)
        return True

    def _gone(self, key: int, size: int) -> None:
        self.alive.pop(key, None)
        self.now -= size


def _workspace(packet: Any, args: Any, out: Any) -> int:
    """What a convolution takes while it runs.

    cuDNN works on images whose channels lie next to each other: it lays input, output and weights out anew where they
    are not, in all precisions. Measured on an H200 for 48 convolutions: 1.0 to 1.5 times these three; none at all where
    each channel has a filter of its own. One by one pixel: not backward.
    """
    backward = packet is _aten.convolution_backward
    image, weight = _image_and_weight(packet, args)
    if image.dim() != _IMAGES or _depthwise(packet, args) or _channels_last(packet, args):
        return 0
    if weight.shape[2:].numel() == 1 and (backward or image.dtype == torch.float32):
        return 0
    result = args[0] if backward else out
    return sum(tensor.numel() * tensor.element_size() for tensor in (image, result, weight))


def _image_and_weight(packet: Any, args: Any) -> tuple[Any, Any]:
    image, weight = args[1:3] if packet is _aten.convolution_backward else args[:2]
    return image, weight


def _depthwise(packet: Any, args: Any) -> bool:
    """Whether each channel of an image has a filter of its own."""
    image, weight = _image_and_weight(packet, args)
    return bool(weight.dim() == _IMAGES and weight.shape[1] == 1 and image.shape[1] > 1)


def _slow_share(packet: Any, args: Any) -> float:
    """Which share of its traffic a convolution waits for as torch's own depthwise kernels do.

    They sum the gradient of a filter over all pixels of its channel, so time goes with pixels: more channels than the
    GPU has multiprocessors take no longer. Images whose channels lie next to each other are left to cuDNN.
    """
    image, _ = _image_and_weight(packet, args)
    if not _depthwise(packet, args) or suggest_memory_format(image) is torch.channels_last:
        return 0.0
    return min(1.0, BUSY_CHANNELS / image.shape[1])


def _channels_last(packet: Any, args: Any) -> bool:
    """Whether the channels of an image lie next to each other."""
    image, _ = _image_and_weight(packet, args)
    laid_out = image.dim() == _IMAGES and image.is_contiguous(memory_format=torch.channels_last)
    return bool(laid_out and not image.is_contiguous())


_IMAGES = 4  # rows, channels, height and width
_aten = torch.ops.aten
_CONVOLUTIONS = frozenset({_aten.convolution, _aten.convolution_backward})
_FLOP = {**flop_registry, **{op: shape_wrapper(formula) for op, formula in formulas(_aten, hardware=False).items()}}
_NO_KERNEL = frozenset({_aten.empty, _aten.empty_like, _aten.new_empty, _aten.empty_strided, _aten.detach})
