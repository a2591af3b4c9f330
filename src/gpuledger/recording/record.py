"""How is a piece of work recorded: a with-block, a function?

with record(lake="gpuledger-data", labels={"workload": "train"}) as run:
    train()

@recorded(labels={"tensor_precision": "bf16"})
def train(): ...
"""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import functools
import getpass
import inspect
import os
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

from gpuledger.arguments import takes
from gpuledger.devices.attribution import Attribution, attribute, command_name, own_rank_only
from gpuledger.devices.clock import Clock
from gpuledger.devices.device import Facts, Row, Source, open_device
from gpuledger.devices.sampler import Sampler, check_rates, spread_s
from gpuledger.errors import GpuledgerError, InputError, UnknownName
from gpuledger.lake.layout import AnyLake, lake_of
from gpuledger.recording.ownership import OF_THE_PLACE, Ownership
from gpuledger.recording.runs import NOTES_EVERY_S, RunNotes, claim, device_notes, labels_of_run, write_notes
from gpuledger.recording.writer import Recorder
from gpuledger.telemetry import schema

DEFAULT_LAKE = "gpuledger-data"
P = ParamSpec("P")
R = TypeVar("R")


class Recording:
    """One recording; use it as a context manager.

    `device`: nvml, amd, replay:FILE or a source. `labels` win over what the surroundings say. What costs more is read
    every `slow_s`, rows are safe in the lake after `flush_s`. `of_job`: the devices' time belongs to this program
    (named `program`) and its children; otherwise to whichever processes hold them. `around_command`: not to this
    program but to a command that is started after us; `follow` says which process it is. `of_host`: we are a service of
    the machine, so time without a process has the labels of the place and those given, not those of our own pod or job.
    """

    @takes()
    def __init__(
        self,
        lake: AnyLake = DEFAULT_LAKE,
        *,
        hz: float = 10.0,
        labels: Mapping[str, str] | None = None,
        device: str | Source = "nvml",
        slow_s: float = 1.0,
        flush_s: float = 10.0,
        program: str = "",
        of_job: bool = True,
        around_command: bool = False,
        of_host: bool = False,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.lake = lake_of(lake)
        self._clock = clock or Clock()
        self._environ = os.environ if environ is None else environ
        self._program = program or command_name(sys.orig_argv)
        check_rates(hz, slow_s)
        if not 0 < flush_s <= 3600:
            raise InputError(f"cannot write every {flush_s} s", hint="give a number of seconds above 0; 10 is usual")
        self._flush_s = flush_s
        given, command = _checked(labels or {}), self._program if of_job else ""
        found = attribute(self._environ, host=socket.gethostname(), command=command, given=given)
        found = _of_place(found, given) if of_host else found
        self.labels, self._labels_from = dict(found.labels), found.found_in
        self.run_id = self.labels.get("run_id") or _new_run_id(self._clock)
        if of_job:
            self.labels["run_id"] = self.run_id
        self._source = open_device(device, self._clock) if isinstance(device, str) else device
        self.devices = devices = own_rank_only(self._environ, self._source.devices) if of_job else self._source.devices
        now = self._clock.monotonic
        self.ownership = Ownership(
            devices,
            self.labels,
            given,
            self._environ,
            now,
            of_job=of_job,
            around_command=around_command,
            other_run=lambda pid: labels_of_run(self.lake, pid, self.labels.get("host", ""), besides=self.run_id),
        )
        self.recorder = Recorder(self.lake, self.ownership.labels, self._renew_notes)
        self.sampler = Sampler(
            devices,
            self._take,
            hz=hz,
            slow_s=slow_s,
            # Where many devices take turns, the first ones' rows wait for the last ones'.
            release_s=flush_s - spread_s(len(devices), hz, slow_s),
            clock=self._clock,
            on_release=self.recorder.released,
            on_tick=self.ownership.look,
        )
        self._noted_s = self._clock.monotonic()
        self._state = "new"
        self._exit_code: int | None = None
        self.notes_file: Path | None = None

    def start(self) -> Recording:
        """Begin; fails before anything runs if the lake cannot be written."""
        try:
            self.notes_file = claim(self.lake, self.run_id)
            self._state = "running"
            self.look()
            self._write_notes()
        except BaseException:
            self._source.close()
            raise
        # A program that ends without stopping us must not lose what was read last.
        atexit.register(self.stop)
        self.recorder.start()
        self.sampler.start()
        return self

    def stop(self, exit_code: int | None = None) -> RunNotes:
        """End: when this returns, every sample is in the lake. May be called again."""
        if self._state == "running":
            self._state, self._exit_code = "done", exit_code
            atexit.unregister(self.stop)
            if exit_code is None:  # a command was looked at while it was still there
                self.look()
            self.sampler.stop()
            self.ownership.end(self.sampler.stamp())
            problems = []
            for step in (self.recorder.close, self._write_notes):
                try:
                    step()
                except GpuledgerError as error:
                    problems.append(error)
            self._source.close()
            if problems:
                raise problems[0]
        return self.notes()

    def follow(self, pid: int) -> None:
        """The command around which we record has been started as this process."""
        self.ownership.follow(pid, self.sampler.stamp())

    def look(self) -> None:
        """See right now who holds the devices."""
        self.ownership.look(self.sampler.stamp(), force=True)

    def _take(self, facts: Facts, columns: tuple[str, ...], rows: list[Row]) -> None:
        for owners, some in self.ownership.split(facts, rows):
            self.recorder.take(facts, columns, some, owners)

    def _renew_notes(self) -> None:
        """Done by the writer before it writes: now and then the notes."""
        if self._clock.monotonic() - self._noted_s >= NOTES_EVERY_S:
            self._noted_s = self._clock.monotonic()
            self._write_notes()

    def _write_notes(self) -> None:
        if self.notes_file is not None:
            write_notes(self.notes_file, self.notes(), self.lake)

    def notes(self) -> RunNotes:
        """What is known about the recording so far."""
        report, own = self.sampler.report(), self.ownership
        found = [
            device_notes(d, owned=own.owned(d.facts), held_by=own.holders(d.facts), times=own.times(d.facts))
            for d in report.devices
        ]
        return RunNotes(
            run_id=self.run_id,
            state=self._state,
            started_ms=report.started_ms,
            ended_ms=report.ended_ms if self._state == "done" else None,
            host=self.labels.get("host", ""),
            user=_user(),
            program=self._program,
            exit_code=self._exit_code,
            driver=self._source.driver,
            hz=self.sampler.hz,
            slow_s=self.sampler.slow_s,
            flush_s=self._flush_s,
            labels=self.labels,
            labels_from=self._labels_from,
            devices=tuple(found),
            rows=self.recorder.rows,
            rows_dropped=self.recorder.rows_dropped,
            ticks=report.ticks,
            skipped_ticks=report.skipped_ticks,
            clock_steps=report.clock_steps,
            sampler_cpu_s=round(report.cpu_s, 4),
            writer_cpu_s=round(self.recorder.cpu_s, 4),
            faults=(*self._source.notes, *report.faults),
            problem=self.recorder.problem,
            pid=os.getpid(),
        )

    def __enter__(self) -> Recording:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except GpuledgerError as problem:
            if error is None:
                raise
            error.add_note(f"gpuledger could not finish the recording: {problem}")


record = Recording


@overload
def recorded(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def recorded(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@takes(Recording)
def recorded(function: Callable[..., Any] | None = None, /, **options: Any) -> Callable[..., Any]:
    """Decorator: record every call of a function; takes what `record` takes."""
    if function is None:
        return functools.partial(_wrap, options)
    return _wrap(options, function)


def _wrap(options: Mapping[str, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    settings: dict[str, Any] = {"program": function.__name__, **options}

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        with Recording(**settings):
            return function(*args, **kwargs)

    @functools.wraps(function)
    async def later(*args: Any, **kwargs: Any) -> Any:
        with Recording(**settings):
            return await function(*args, **kwargs)

    return later if inspect.iscoroutinefunction(function) else inner


def _checked(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels a user may give: all but those that name the device."""
    known = [n for n in schema.labels() if n not in (*schema.DEVICE, "gpu_index", "gpu_model")]
    for name, value in labels.items():
        if name not in known:
            raise UnknownName("label", name, known)
        if not str(value).strip():
            raise InputError(f"label {name} has no value", hint=f"write {name}=VALUE")
    return dict(labels)


def _of_place(found: Attribution, given: Mapping[str, str]) -> Attribution:
    """The labels of the place and those given, without those of our own pod or job."""
    ours = {*OF_THE_PLACE, *given}
    return Attribution(*({k: v for k, v in some.items() if k in ours} for some in (found.labels, found.found_in)))


def _new_run_id(clock: Clock) -> str:
    return f"{dt.datetime.fromtimestamp(clock.wall(), tz=dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _user() -> str:
    with contextlib.suppress(OSError, KeyError):
        return getpass.getuser()
    return "not known: no entry for this user id"
