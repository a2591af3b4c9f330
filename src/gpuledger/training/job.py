"""What must a training job provide, so that it can be measured and tuned?

    from gpuledger.training.job import TrainingJob
    job = TrainingJob(name="my model", model=build, dataset=data, loss=loss, settings=Settings(batch=8, accumulate=4))

`gpuledger train tune module:job` finds it by name. Nothing here imports torch.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from gpuledger.errors import InputError, UnknownName
from gpuledger.training.runtime import in_words, need_torch
from gpuledger.training.tune.settings import Settings, check


def _adamw(params: Iterable[Any], **options: Any) -> Any:
    """AdamW at a small rate: what most jobs begin with."""
    return need_torch("running a model").optim.AdamW(params, lr=1e-4, **options)


@dataclass(frozen=True)
class TrainingJob:
    """A model, its data, one forward pass to a loss, and how the loop runs today.

    model      builds the model, on the CPU; the seed is set before
    dataset    builds a dataset with len() and []; an item must not depend on the worker that loads it
    loss       (model, batch on the device) -> the mean loss of the batch, a scalar tensor
    optimizer  (parameters, **options) -> the optimizer; `fused=True` may be among the options
    settings   how the loop runs now; its effective batch (batch x accumulate) is kept
    """

    name: str
    model: Callable[[], Any]
    dataset: Callable[[], Any]
    loss: Callable[[Any, Any], Any]
    settings: Settings = field(default_factory=Settings)
    optimizer: Callable[..., Any] = _adamw
    collate: Callable[[list[Any]], Any] | None = None
    samples_per_epoch: int | None = None
    tokens_per_sample: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check(self.settings)
        for name in ("samples_per_epoch", "tokens_per_sample"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"job {self.name!r}: {name} is {value}", hint="give a number above 0, or leave it out")


def load_job(reference: str) -> TrainingJob:
    """The job that `module:name` or `file.py:name` means; a function of that name is called for it."""
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise InputError(f"{reference!r} is not module:job", hint="for example examples/naive_training.py:job")
    module = _module(place, name)
    found = getattr(module, name, None)
    if found is None:
        jobs = [n for n, value in vars(module).items() if isinstance(value, TrainingJob)]
        raise UnknownName(f"job in {place}", name, jobs)
    if not isinstance(found, TrainingJob) and callable(found):
        try:
            found = found()
        except Exception as error:  # the job's own code
            raise InputError(f"{reference} raised {in_words(error)}", hint="call it by itself and fix it") from error
    if not isinstance(found, TrainingJob):
        hint = "make it a gpuledger.training.job.TrainingJob, or a function that returns one"
        raise InputError(f"{reference} is a {type(found).__name__}, not a TrainingJob", hint=hint)
    return found


def _module(place: str, wanted: str) -> ModuleType:
    """A module by name, the working folder included, or a file by path."""
    try:
        if place.endswith(".py"):
            return _from_file(Path(place))
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            _check_name(place, wanted)
            need_torch("running a model")
        hint = "check the name; the working folder is searched too"
        raise InputError(f"cannot import {place}: {error}", hint=hint) from error
    except InputError:
        raise
    except Exception as error:  # the job's own code
        raise InputError(
            f"importing {place} raised {in_words(error)}", hint="import it by itself and fix it"
        ) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{path}: no such file", hint="give the path of the Python file that holds the job")
    # Registered under its own name, so that loader workers can find its classes again.
    sys.path.insert(0, str(path.resolve().parent))
    return importlib.import_module(path.stem)


def _check_name(place: str, wanted: str) -> None:
    """A wrong name is reported before a missing torch: the text of the file shows it, without running it."""
    try:
        spec = None if place.endswith(".py") else importlib.util.find_spec(place)
        file = Path(place) if place.endswith(".py") else Path(str(spec and spec.origin))
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    except (ImportError, OSError, SyntaxError, ValueError):
        return  # its text is not available
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    brought = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    anything = {"*", "globals", "__getattr__"} & (made | brought | {node.id for node in names})
    if wanted not in made | brought and not anything:
        raise UnknownName(f"job in {place}", wanted, sorted(made))
