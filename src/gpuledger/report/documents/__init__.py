"""Which documents are there? Each file of this folder makes the `Document` of one kind of statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gpuledger.errors import InputError
from gpuledger.registry import Registry
from gpuledger.report.document import Document

Make = TypeVar("Make", bound=Callable[..., Document])
DOCUMENTS: Registry[Callable[..., Document]] = Registry("document", __name__)


def document_for(statement: type) -> Callable[[Make], Make]:
    """Decorator: the function makes the document of this class of statement."""

    def keep(make: Make) -> Make:
        DOCUMENTS.register(name_of(statement))(make)
        return make

    return keep


def document_of(statement: object, **more: Any) -> Document:
    """The document of any statement; `more` is passed on to its maker."""
    return maker_of(statement)(statement, **more)


def maker_of(statement: object) -> Callable[..., Document]:
    """The function that makes the document of a statement."""
    name = name_of(type(statement))
    if name not in DOCUMENTS.names():
        raise InputError(f"{name} has no document", hint=f"give one of: {', '.join(DOCUMENTS.names())}")
    return DOCUMENTS.get(name)


def name_of(statement: type) -> str:
    """The name a class of statement is registered by."""
    return f"{statement.__module__}.{statement.__qualname__}"
