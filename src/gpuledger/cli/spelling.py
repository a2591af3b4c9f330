"""How are the parameters that errors and plans name written as the options of a command?

The domain names parameters, as Python does: name=value, "name is ...", or a name with an underscore anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from gpuledger.errors import FactError, FileFault, InputError

if TYPE_CHECKING:
    from gpuledger.report.document import Document

Names = Mapping[str, str]
_EQUALS = re.compile(r"(?<![\w-])([a-z_]+)=(True\b|(?=\S))")  # a flag that is True has no value
_FIRST = re.compile(r"^([a-z_]+)(?= is | '| and [a-z_]+ )")
# A name with an underscore is not an English word; within a path or a dotted name it is a part of that.
_BARE = re.compile(r"(?<![\w./\\'\"-])([a-z]+(?:_[a-z]+)+)(?![\w/\\'\"]|\.\w)")
_EITHER = re.compile(r"\beither ([a-z_]+) or ([a-z_]+)\b")
# A word after an option: "--service-s and concurrency".
_LISTED = re.compile(r"(?<=\s)(--[a-z-]+(?:,| and| or|, or|, and) )([a-z]+)(?![\w=-])")
# Of a block: what a program reads, not a person.
_NOT_PROSE = frozenset({"id", "name", "kind", "tone", "data", "files", "main_table", "key", "language"})


def option_names(command: click.Command) -> dict[str, str]:
    """How each parameter of a command is written on a command line."""
    options = [p for p in command.params if isinstance(p, click.Option)]
    return {str(n): p.opts[0] for p in options for n in (p.name, p.opts[0].strip("-"))}


def spell_error(error: InputError, names: Names) -> None:
    """Write the parameters in an error as options. Names within a file's own error may be its columns or fields."""
    of_file = isinstance(error, FileFault | FactError)
    spell = spelled_pairs if of_file else spelled
    error.message, error.hint = (_FIRST.sub(_option(names), spell(text, names)) for text in (error.message, error.hint))


def spelled(text: str, names: Names) -> str:
    """The text with its parameters as options."""

    def both(found: re.Match[str]) -> str:
        known = found[1] in names and found[2] in names
        return f"either {names[found[1]]} or {names[found[2]]}" if known else found[0]

    text = _BARE.sub(_option(names), spelled_pairs(_EITHER.sub(both, text), names))
    return _LISTED.sub(lambda found: found[1] + names.get(found[2], found[2]), f" {text}")[1:]


def spelled_pairs(text: str, names: Names) -> str:
    """The text with every name=value as an option with its value."""

    def option(found: re.Match[str]) -> str:
        return names[found[1]] + ("" if found[2] else " ") if found[1] in names else found[0]

    return _EQUALS.sub(option, text)


def _option(names: Names) -> Any:
    return lambda found: names.get(found[1], found[0])


def spelled_document(document: Document, names: Names) -> Document:
    """The document with the parameters in its prose as options; its JSON keeps the names of the parameters."""
    return _respelled(document, names)


def _respelled(value: Any, names: Names) -> Any:
    from gpuledger.report.document import Chart, Code

    if isinstance(value, str):
        return spelled(value, names)
    if isinstance(value, list | tuple):
        return type(value)([_respelled(one, names) for one in value])
    if not is_dataclass(value) or isinstance(value, type | Chart | Code):
        return value
    prose = (f.name for f in fields(value) if f.name not in _NOT_PROSE)
    return replace(value, **{name: _respelled(getattr(value, name), names) for name in prose})
