"""Does a Python call take these arguments? A name that it does not take is refused with the nearest one that it takes,
and a value of the wrong kind by its name.

@takes(Window, thresholds="file")
def analyze(self, *, thresholds=None, **window: Unpack[Window]): ...
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, Literal, ParamSpec, TypeVar, is_typeddict

from gpuledger.errors import InputError, UnknownArgument

Kind = Literal["text", "word", "file", "files", "texts", "flag"]
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
_WORDS = {
    "text": "text", "word": "text that names something", "file": "a path", "files": "a path or a list of paths",
    "texts": "a list of names", "flag": "True or False",
}  # fmt: skip
_HINTS = {
    "text": '{}="..."', "word": '{}="..."', "file": '{}="FILE"', "files": '{}=["FILE", "FILE"]',
    "texts": '{}=["NAME", "NAME"]', "flag": "{}=True",
}  # fmt: skip


def takes(rest: object = None, /, **kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The call with its keyword arguments checked before anything runs; None is left to the call.

    `rest`: what its `**keywords` may be, as a TypedDict, or as the call or class that gets them.
    """

    def wrap(call: Callable[P, R]) -> Callable[P, R]:
        @functools.cache
        def known() -> frozenset[str]:
            return frozenset((*names_of(call), *(() if rest is None else names_of(rest)), *kinds))

        @functools.wraps(call)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            if given:
                name = call.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                refuse_unknown(name, given, known())
            for name, value in given.items():
                if name in kinds and value is not None:
                    check(name, kinds[name], value)
            return call(*args, **given)

        return checked

    return wrap


def takes_names(made: type[C]) -> type[C]:
    """Decorator: a class whose constructor refuses a keyword that it does not take with the nearest one."""
    made.__init__ = takes()(made.__init__)  # type: ignore[method-assign]
    return made


def names_of(call: object) -> tuple[str, ...]:
    """The keywords that a call, a class or a TypedDict takes."""
    import inspect  # only where keywords are given

    if is_typeddict(call):
        return tuple(call.__annotations__)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    return tuple(p.name for p in parameters if p.kind in kinds and p.name != "self")


def refuse_unknown(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first name that is not known."""
    names = set(known)
    for name in given:
        if name not in names:
            raise UnknownArgument(call, name, names)


def one_of(**named: Any) -> Any:
    """The value of an argument that goes by several names, such as price and prices; two of them are refused."""
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are two names of one argument", hint="give one of them")
    return next(iter(given.values()), None)


def check(name: str, kind: Kind, value: object) -> None:
    """Refuse a value that is not of its kind."""
    if kind in ("text", "word"):
        good = isinstance(value, str) and (kind == "text" or bool(value.strip()))
    elif kind == "flag":
        good = isinstance(value, bool)
    elif kind == "file":
        good = _named(value)
    else:
        good = _named(value) or _listed(value, kind)
    if not good:
        raise InputError(f"{name} is {_shown(value)}, not {_WORDS[kind]}", hint=f"give {_HINTS[kind].format(name)}")


def _named(value: object) -> bool:
    return is_path(value) and bool(str(value))


def _listed(value: object, kind: Kind) -> bool:
    """Whether it is a list of files, or of names. A table is none, though it has names of columns; nor is what can be
    read only once.
    """
    if not isinstance(value, Sequence | Set) or isinstance(value, (str, bytes)):
        return False
    return all(isinstance(v, str) for v in value) if kind == "texts" else bool(value) and all(map(_named, value))


def is_path(value: object) -> bool:
    """Whether a file can be called this."""
    return isinstance(value, (str, os.PathLike)) and "\0" not in str(value)


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
