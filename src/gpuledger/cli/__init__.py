"""How does a person at a terminal use all this? The command line draws; every figure comes from the rooms above.

app finds the commands (commands/, one file each), runs one and turns what went wrong into an exit code; failures has
the words. screen and showing print an answer, options has what commands share, the others turn options into questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["main", "program"]

# Commands that run nothing of the user's in this process.
_OWN_WORK = frozenset({"analyze", "ask", "audit", "demo", "import", "jobs", "prices", "tidy"})


def program() -> NoReturn:
    """Be the program `gpuledger`: run the command named on the command line, and end with its exit code."""
    import sys

    code = main()
    if _is_own_work(sys.argv):
        from gpuledger.quick_start import end_now

        end_now(code)
    sys.exit(code)


def main() -> int:
    """Run the command named on the command line; returns the exit code."""
    import sys
    import warnings

    warnings.showwarning = _warn
    if _is_own_work(sys.argv):
        return _own_work()
    from gpuledger.cli.app import run

    return run()


def _is_own_work(argv: list[str]) -> bool:
    return len(argv) > 1 and argv[1] in _OWN_WORK


def _own_work() -> int:
    from gpuledger import quick_start

    quick_start.collect_seldom()
    quick_start.keep_memory()
    quick_start.calculate_alone()
    with quick_start.without_help_texts(), quick_start.without_extras():
        from gpuledger.cli.app import run

        return run()


def _warn(message: Warning | str, *_where: object, **_more: object) -> None:
    """A warning as one line on stderr, without the place in the code."""
    import sys

    from gpuledger.plain_text import visible

    sys.stderr.write(f"warning: {visible(str(message))}\n")
