"""How is a torch model on this machine's GPU benchmarked, batch by batch?

Orders of a batch wait for each other and run as one. The energy counter of the GPU is read around each batch; each
order gets its share.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpuledger.bench.load import Order
from gpuledger.bench.targets import TARGETS, Answer, Opened, Target
from gpuledger.errors import GpuledgerError
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.training.local_model import Generated, LocalModel
    from gpuledger.training.meter.device import Energy


T = TypeVar("T")


class Settings(msgspec.Struct, frozen=True):
    """Which model, where and how; `compiled`: whether to try torch.compile."""

    model: str
    device: str = "cuda:0"
    dtype: str = "bfloat16"
    compiled: bool = True


@TARGETS.register("local_model")
class LocalModelTarget(Target):
    """One model on one GPU."""

    remote = False

    def __init__(self, settings: Mapping[str, Any], seed: str, timeout_s: float) -> None:
        self._set = msgspec.convert(dict(settings), Settings)
        self._seed, self._timeout_s = sum(seed.encode()), timeout_s
        self._model: LocalModel | None = None
        self._energy: Energy | None = None
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: list[tuple[Order, asyncio.Future[Answer]]] = []

    async def open(self) -> Opened:
        """Make the weights."""
        from gpuledger.training.local_model import open_model  # heavy libraries
        from gpuledger.training.meter.device import Energy
        from gpuledger.training.runtime import gpu_uuid

        s = self._set
        how = {"device": s.device, "dtype": s.dtype, "seed": self._seed, "compiled": s.compiled}
        model = await self._aside(lambda: open_model(s.model, **how))  # type: ignore[arg-type]
        self._model = model
        self._energy = Energy(gpu_uuid(model.torch, model.device) if model.device.type == "cuda" else None)
        self._energy.begin()
        return Opened(model.facts())

    def _aside(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """In one thread, which the GPU libraries have warmed up for."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def ask(self, order: Order) -> Answer:
        """Wait until the batch is complete; its last order runs it for all."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, future))
        if len(self._waiting) >= (order.batch or 1):
            waiting, self._waiting = self._waiting, []
            answer = await self._run([o for o, _ in waiting])
            for _, one in waiting:
                one.set_result(answer)
        return await future

    async def _run(self, orders: list[Order]) -> Answer:
        assert self._model is not None
        assert self._energy is not None
        tokens_in, tokens_out = (max(getattr(o, n) for o in orders) for n in ("input_tokens", "output_tokens"))
        before, begun = self._energy.joules(), time.perf_counter()
        model = self._model
        working = self._aside(lambda: model.generate(len(orders), tokens_in, tokens_out))
        try:
            made: Generated = await asyncio.wait_for(working, self._timeout_s)
        except TimeoutError:
            return Answer(False, time.perf_counter() - begun, error=f"no result within {self._timeout_s:g} s")
        except (GpuledgerError, RuntimeError) as error:
            words = error.message if isinstance(error, GpuledgerError) else f"torch: {str(error).splitlines()[0][:200]}"
            return Answer(False, time.perf_counter() - begun, error=words)
        after = self._energy.joules()
        known = None if isinstance(before, Unknown) or isinstance(after, Unknown) else after - before
        spent = {} if known is None else {"energy_j": known / len(orders)}
        return Answer(True, made.latency_s, made.ttft_s, tokens_in, tokens_out, more=spent)

    def found(self) -> Mapping[str, Any]:
        """How the model ran in the end."""
        return self._model.facts() if self._model is not None else {}

    async def close(self) -> None:
        """Release the driver."""
        if self._energy is not None:
            self._energy.close()
        self._thread.shutdown(wait=False, cancel_futures=True)
