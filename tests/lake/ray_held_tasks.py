"""Tasks that do their work and then never answer, once: what a node that dies at the worst moment leaves behind."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TypeVar

import ray

from gpuledger.lake.engines.mapping import Answers, Share, ask_share
from gpuledger.lake.processes import Progress
from gpuledger.lake.taking import Taken, TakeTask, take_piece
from gpuledger.lake.writing import DayTask, DayWritten, write_day
from gpuledger.ledger import day

VARIABLE = "GPULEDGER_HELD"
T = TypeVar("T")


def _held(done: T, name: str) -> T:
    """The first task of that name to come here, of all processes, says where it runs and stays."""
    marker = Path(os.environ[VARIABLE], name)
    try:
        handle = os.open(marker.with_suffix(".taken"), os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return done
    os.close(handle)
    marker.with_suffix(".new").write_text(f"{os.getpid()} {ray.get_runtime_context().get_node_id()}")
    marker.with_suffix(".new").replace(marker)
    time.sleep(600)
    raise AssertionError("the test did not kill this task")


def take(task: TakeTask, progress: Progress) -> Taken:
    """Take a piece, and be held."""
    return _held(take_piece(task, progress), "take")


def write(task: DayTask, progress: Progress) -> DayWritten:
    """Write a day, and be held."""
    return _held(write_day(task, progress), "write")


def post(task: day.DayTask, progress: Progress) -> day.DayDone:
    """Post a day, and be held."""
    return _held(day.post_day(task, progress), "post")


def ask(task: Share, progress: Progress) -> Answers:
    """Answer, and be held."""
    return _held(ask_share(task, progress), "ask")


def failing(task: Share, progress: Progress) -> Answers:
    """Fail as no task should."""
    raise ValueError(f"a fault in {task.ask}")
