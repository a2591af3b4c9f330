"""How well does this very training loop use its GPU, measured while it runs?

    from gpuledger.training.meter.meter import metered

    for batch in metered(loader, model, lake="gpuledger-data"):     # the one line that changes
        ...

    meter = Meter(model, lake="gpuledger-data")                     # the same, with the report in hand
    for batch in meter(loader):
        ...
    meter.report()

Nothing is synchronized and the batches pass through untouched. For a loop without a loader: `with meter.step(batch):`.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from gpuledger.arguments import takes
from gpuledger.errors import GpuledgerError
from gpuledger.lake.layout import AnyLake, lake_of
from gpuledger.training.findings import find_all
from gpuledger.training.meter.count import most_of
from gpuledger.training.meter.device import Energy, device_of, identify, loader_facts, memory_of, place_of
from gpuledger.training.meter.observed import Ended, Observed
from gpuledger.training.meter.report import (
    MeterReport,
    Ranks,
    boards_of,
    compare,
    gather,
    make_report,
    price_of,
    rank_and_size,
    store,
    to_json,
)
from gpuledger.training.meter.steps import Steps
from gpuledger.training.meter.totals import SizeCache, by_formula
from gpuledger.training.runtime import cpus, first_line, need_torch
from gpuledger.units import Unknown

B = TypeVar("B")
WARMUP = 3
WRITE_EVERY_S = 60.0


class Meter:
    """Measures a loop. `model` is the module whose forward pass is timed; optimizers are found automatically.

    `lake`: where to keep what was counted; None keeps nothing. `model_name`: take FLOPs from the closed formula of a
    model of the catalog (a step is still counted, for the precision). `usd_per_gpu_h`: default is the dated market
    median. `tokens` and `samples`: what one batch holds on this rank, where its tensors do not show it.
    """

    @takes()
    def __init__(
        self,
        model: Any | None = None,
        *,
        lake: AnyLake | None = None,
        run_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        model_name: str | None = None,
        usd_per_gpu_h: float | None = None,
        tokens: int | None = None,
        samples: int | None = None,
        warmup: int = WARMUP,
        count: bool = True,
    ) -> None:
        self._torch = need_torch("measuring a training loop")
        self.lake = None if lake is None else lake_of(lake)
        self._formula = by_formula(model_name) if model_name else None
        self._usd = usd_per_gpu_h
        device = device_of(self._torch, model)
        self._place = place_of(self._torch, device)
        rank, size = rank_and_size(self._torch)
        self.who = identify(run_id, labels, rank, size)
        self.steps = Steps(
            self._torch, model, device, warmup=max(warmup, 2 if count else 0), count=count,
            sizes=SizeCache(samples, tokens), energy=Energy(self._place.gpu_uuid),
        )  # fmt: skip
        self._loader = loader_facts(None)
        self._ended: Ended = "running"
        self._state, self._written_s = "running", time.monotonic()
        self.problem = ""
        self._last: MeterReport | None = None
        if self.lake is not None:  # else there is nothing to write, and it may be dropped
            atexit.register(self.finish)

    def begin_loop(self, loader: object) -> None:
        """Put the hooks in place; callbacks of trainers then report the steps."""
        self._loader = loader_facts(loader)
        self.steps.attach()

    def end_step(self) -> None:
        """A step is over."""
        self.steps.ends()
        if self.lake is not None and not self.steps.resting and time.monotonic() - self._written_s >= WRITE_EVERY_S:
            self.write(settle=False)

    def __call__(self, loader: Iterable[B]) -> Iterator[B]:
        """The batches of a loader, one step each. May be called again for the next epoch."""
        steps = self.steps
        self.begin_loop(loader)
        try:
            steps.marks.phase = "data_wait"  # starting the loader's workers is not a wait of the user's code
            batches = iter(loader)
            while not (yield from steps.alone(batches)):
                steps.begins("data_wait")
                try:
                    batch = next(batches)
                except StopIteration:
                    steps.forgets()
                    return
                steps.has_batch(batch)
                yield batch
                self.end_step()
        finally:
            steps.detach()

    @contextlib.contextmanager
    def step(self, batch: object = None) -> Iterator[None]:
        """One step of a loop that has no loader of its own; a step that raises is left out."""
        self.steps.attach()
        self.steps.begins("other")
        self.steps.has_batch(batch, after="other")
        try:
            yield
        except BaseException:
            self.steps.drops()
            raise
        self.end_step()

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(error)

    def observed(self, *, settle: bool = True) -> Observed:
        """What was seen so far. With `settle` it waits for the device: call it after the loop."""
        steps = self.steps
        steps.add_up()
        if settle:
            with contextlib.suppress(RuntimeError):  # a device that failed cannot be read
                steps.marks.finish()
                steps.losses.look()
        totals, joules = steps.totals, steps.energy.joules()
        after_warmup = max(totals.steps - steps.warmup, 0)
        ratios = steps.counted.precision_ratios
        spans, share = totals.spans(Unknown("")), steps.rests.unslowed_ratio(totals.timed_s)
        return Observed(
            who=self.who,
            place=self._place,
            state=self._state,
            ended=self._ended,
            steps=totals.steps,
            timed_steps=totals.timed,
            updates=steps.hooks.updates,
            start_ms=spans[0].start_ms if spans else 0,
            end_ms=spans[-1].end_ms if spans else 0,
            phases_s=totals.mean(totals.device_s, share),
            host_s=totals.mean(totals.host_s, share),
            step=totals.step_seconds(share),
            precision=most_of(ratios),
            precision_ratios={} if isinstance(ratios, Unknown) else ratios,
            work=self._formula(totals) if callable(self._formula) else steps.counted.work,
            tokens_per_step=totals.tokens_per_step,
            samples_per_step=totals.samples_per_step,
            sequence=totals.sequence,
            batch_bytes=totals.bytes_per_step,
            energy_j_per_step=joules if isinstance(joules, Unknown) or not after_warmup else joules / after_warmup,
            memory=memory_of(self._torch, steps.device, self._place.memory_bytes),
            loader=self._loader,
            sites=(*steps.watch.sites.all(), *steps.debug.sites(max(steps.watched, 1))),
            watched_steps=steps.watched,
            compiled=steps.compiled or steps.in_compiled or steps.counted.hooks_compiled,
            fused_optimizer=steps.hooks.fused,
            optimizer=steps.hooks.optimizer,
            cpus=cpus(),
            own_ratio=steps.own_ratio,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        steps = self.steps
        if isinstance(self._formula, Unknown):
            yield f"FLOPs are counted by torch: {self._formula.why}"
        if steps.losses.not_finite_at is not None:
            gap = steps.losses.not_finite_gap
            before = f" or up to {gap} steps before it" if gap else ""
            yield f"the loss is not a number since step {steps.losses.not_finite_at}{before}"
        if steps.totals.steps and not steps.hooks.forwards:
            yield "the model's forward pass was not seen: it counts as other; give the meter the module you call"
        if steps.counted.hooks_compiled:
            yield (
                "the model is called by a compiled one, so its forward pass was seen in one step only; give the meter "
                "the module you call"
            )
        if steps.totals.steps and not steps.hooks.backwards:
            yield "no backward pass was seen"
        if steps.marks.left_out:
            yield f"{steps.marks.left_out} waits were not timed: a step has too many of them"
        after_warmup = steps.totals.steps - steps.warmup
        if steps.watched < after_warmup:
            yield (
                f"{steps.watched} of {after_warmup} steps after the first {steps.warmup} were watched, "
                f"{steps.totals.timed} of them timed, to keep the meter's own cost low: waits and phases are those of "
                "these steps, counts of steps and of what they hold are complete"
            )
        elif steps.every > 1:
            yield f"one step in {steps.every} was timed, to keep the meter's own cost low"

    def report(self, *, show: bool = True, all_ranks: bool = False) -> MeterReport:
        """The figures so far, shown on stderr. With `all_ranks` every rank must call it."""
        made = self._last if self._ended != "running" and self._last is not None else self._made(self.observed())
        ranks = compare(gather(self._torch, to_json(made)["seen"])) if all_ranks else None
        if show and (ranks is None or self.who.rank == 0):
            _show(made, ranks)
        return made

    def _made(self, seen: Observed) -> MeterReport:
        price = price_of(self._place.gpu, self._usd)
        return make_report(seen, price, boards_of(self.lake, self._place.gpu_uuid), find_all(seen))

    def write(self, *, settle: bool = True) -> None:
        """Into the lake; a lake that cannot be written does not stop the job."""
        self._written_s = time.monotonic()
        self._last = made = self._made(self.observed(settle=settle))
        if self.lake is None or not self.steps.totals.steps:
            return
        try:
            store(self.lake, made, self.steps.totals.spans(made.seen.work))
            self.problem = ""
        except (GpuledgerError, OSError) as error:
            self.problem = f"what was counted could not be written: {error}"

    def finish(self, error: BaseException | None = None) -> None:
        """The loop is over: write what was counted, remove everything. May be called again."""
        if self._ended != "running":
            return
        found = error or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        self._ended, self._state = _outcome(found)
        self.steps.detach()
        self.steps.watch.close()
        self.write()
        self.steps.energy.close()
        atexit.unregister(self.finish)


_METERS: WeakKeyDictionary[Any, Meter] = WeakKeyDictionary()


@takes(Meter)
def metered(loader: Iterable[B], model: Any, *, show: bool = True, **options: Any) -> Iterator[B]:
    """The batches of a loader, measured: one meter per model, kept over all epochs; takes what `Meter` takes."""
    meter = _METERS.get(model) if model is not None else None
    if meter is None:
        meter = Meter(model, **options)
        if model is not None:
            _METERS[model] = meter
    yield from meter(loader)
    meter.write()
    if show:
        meter.report(show=meter.who.rank == 0)


def _show(report: MeterReport, ranks: Ranks | None) -> None:
    """On stderr, as stdout is the job's own. The document is looked up by name: this room may not import reports."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, emoji=False)
    document = import_module("gpuledger.report.documents.training").meter_document(to_json(report), ranks)
    for part in import_module("gpuledger.report.render.terminal").screen(document, console.width):
        console.print(part)


def _outcome(error: BaseException | None) -> tuple[Ended, str]:
    """How it ended, and the same in words."""
    if error is None or isinstance(error, SystemExit):
        return "done", "done"
    text, kind = first_line(error), type(error).__name__
    if "out of memory" in text.casefold() or kind == "OutOfMemoryError":
        return "out_of_memory", f"ran out of memory: {text}"
    return "raised", f"raised {kind}: {text}"
