"""Are the arguments of a Python call of the kind they should be? One that is not is refused by its name.

@takes(tz="text", mapping="file")
def ingest(self, *data, tz="UTC", mapping=None): ...
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, ParamSpec, TypeVar

from gpuledger.errors import InputError

Kind = Literal["text", "file", "files", "texts"]
P = ParamSpec("P")
R = TypeVar("R")
_WORDS = {"text": "text", "file": "a path", "files": "a path or a list of paths", "texts": "a list of names"}
_HINTS = {"text": '{}="..."', "file": '{}="FILE"', "files": '{}=["FILE", "FILE"]', "texts": '{}=["NAME", "NAME"]'}


def takes(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The call with its keyword arguments checked before anything runs; None is left to the call."""

    def wrap(call: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(call)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            for name, value in given.items():
                if name in kinds and value is not None:
                    check(name, kinds[name], value)
            return call(*args, **given)

        return checked

    return wrap


def check(name: str, kind: Kind, value: object) -> None:
    """Refuse a value that is not of its kind."""
    if kind == "text":
        good = isinstance(value, str)
    elif kind == "file":
        good = is_path(value)
    else:
        good = is_path(value) or (
            isinstance(value, Iterable)
            and not isinstance(value, (str, bytes))
            and all(is_path(v) if kind == "files" else isinstance(v, str) for v in value)
        )
    if not good:
        raise InputError(f"{name} is {_shown(value)}, not {_WORDS[kind]}", hint=f"give {_HINTS[kind].format(name)}")


def is_path(value: object) -> bool:
    """Whether a file can be called this."""
    return isinstance(value, (str, os.PathLike)) and "\0" not in str(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
