"""How is a function of the user benchmarked?

`pkg.mod:function` takes those of the keyword arguments input_tokens, output_tokens and request that it names. It may be
a coroutine; it may return nothing, a number of tokens, or a mapping with output_tokens, input_tokens and ttft_s, or
yield its tokens one by one. An exception is a failed request, and so is a mapping in which ok is false.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from gpuledger.bench.load import Order
from gpuledger.bench.record_fields import REQUEST_FIELDS
from gpuledger.bench.targets import TARGETS, Answer, Opened, Target
from gpuledger.errors import InputError
from gpuledger.units import Unknown

NOT_REPORTED = Unknown("the function did not report it")
_GIVEN = ("request", "input_tokens", "output_tokens")


def load_callable(spec: str) -> Callable[..., Any]:
    """The function behind `pkg.mod:function`; modules in the working directory are found too."""
    module, colon, name = spec.partition(":")
    if not colon or not module or not name:
        raise InputError(f"callable {spec!r} is not MODULE:FUNCTION", hint="for example my_app.serve:answer")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"callable {spec!r}: {error}", hint="run it where `import` of the module works") from error
    if not callable(found):
        raise InputError(f"callable {spec!r} is a {type(found).__name__}, not a function", hint="name a function")
    return found


@TARGETS.register("python_callable")
class PythonCallable(Target):
    """One function; called in threads unless it is a coroutine."""

    remote = False

    def __init__(self, settings: Mapping[str, Any], _seed: str, timeout_s: float) -> None:
        self._spec, self._timeout_s = str(settings["callable"]), timeout_s
        self._function = load_callable(self._spec)
        named = inspect.signature(self._function).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in named.values())
        self._takes = [n for n in _GIVEN if open_ended or n in named]
        self._awaited = _is_awaited(self._function)

    async def open(self) -> Opened:
        """Nothing to do: the function is loaded."""
        return Opened({"callable": self._spec})

    async def ask(self, order: Order) -> Answer:
        """One call."""
        began = time.perf_counter()
        given = {n: getattr(order, n) for n in self._takes}
        try:
            return await asyncio.wait_for(self._answer(given, began), self._timeout_s)
        except TimeoutError:
            return Answer(False, time.perf_counter() - began, error=f"no result within {self._timeout_s:g} s")
        except Exception as error:  # noqa: BLE001 - whatever the function raises is its failure
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return Answer(False, time.perf_counter() - began, error=words[:300])

    async def _answer(self, given: Mapping[str, Any], began: float) -> Answer:
        """Called where it does not delay others; what it returns is followed to its end."""

        def call() -> Any:
            made = self._function(**given)
            return made if inspect.isawaitable(made) or inspect.isasyncgen(made) else _counted(made, began)

        made = self._function(**given) if self._awaited else await _in_thread(call)
        if inspect.isawaitable(made):
            made = await made
        if inspect.isasyncgen(made):
            made = await _streamed(made, began)
        return made if isinstance(made, Answer) else _counted(made, began)


def _is_awaited(function: Any) -> bool:
    """Whether it is a coroutine, an async generator, or an object called as one: not for a thread."""
    asked = (function, type(function).__call__)
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in asked)


async def _streamed(made: AsyncIterator[Any], began: float) -> Mapping[str, Any]:
    tokens, ttft = 0, None
    async for _ in made:
        tokens += 1
        ttft = ttft or time.perf_counter() - began
    return {"output_tokens": tokens, "ttft_s": ttft}


def _in_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """In its own daemon thread: a call that never returns must not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(result)

    def run() -> None:
        try:
            result, failure = work(), None
        except BaseException as error:  # noqa: BLE001 - passed on to the caller
            result, failure = None, error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return future


def _counted(made: Any, began: float) -> Answer:
    """What the function returned, as an answer."""
    more: dict[str, Any] = {}
    if isinstance(made, Mapping):
        more = dict(made)
    elif isinstance(made, int) and not isinstance(made, bool):
        more = {"output_tokens": made}
    elif inspect.isgenerator(made):
        tokens, ttft = 0, None
        for _ in made:
            tokens += 1
            ttft = ttft or time.perf_counter() - began
        more = {"output_tokens": tokens, "ttft_s": ttft}
    given = (more.pop(name, None) for name in ("ttft_s", "input_tokens", "output_tokens"))
    ttft_s, wanted, counted = (NOT_REPORTED if value is None else value for value in given)
    ok, error = more.pop("ok", True) is not False, str(more.pop("error", None) or "")
    # What the worker measures keeps its name; the function's own figure gets a prefix.
    kept = {f"own_{k}" if k in REQUEST_FIELDS else k: v for k, v in more.items()}
    why = "" if ok else error[:300] or "the function reported a failure"
    return Answer(ok, time.perf_counter() - began, ttft_s, wanted, counted, error=why, more=kept)
