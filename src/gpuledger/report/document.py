"""What is a document made of? Headline, key figures, tables, charts and prose, without a word on how they are drawn.

A module of `documents/` turns one statement into a `Document`. The modules of `render/` draw any document: as a page,
as Markdown, on a terminal. `screen` is the short answer a terminal shows by default; `summary` is the first page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar, overload

from gpuledger.report.tables import Table

T = TypeVar("T")
Tone = Literal["plain", "lead", "strong", "note", "warning", "dim"]


class Later(Sequence[T]):
    """Blocks that are made when they are first looked at: the JSON of a document needs none of its tables."""

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Sequence[T]:
        return self._make()

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...

    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._made[place]

    def __len__(self) -> int:
        return len(self._made)


@dataclass(frozen=True)
class KeyFigure:
    """A figure at the top; `range` is empty where it is one number."""

    label: str
    value: str
    range: str = ""
    note: str = ""
    unknown: bool = False


class Naming(str):
    """Text that names GPUs. `gpus`: where each name starts and ends, and which device it is, for pages that link it."""

    __slots__ = ("gpus",)
    gpus: tuple[tuple[int, int, str], ...]

    def __new__(cls, text: str, gpus: Sequence[tuple[int, int, str]] = ()) -> Naming:
        """The text, with the places of its names."""
        made = super().__new__(cls, text)
        made.gpus = tuple(gpus)
        return made

    def within(self, before: str, after: str) -> Naming:
        """The same as a part of a longer text."""
        at = len(before)
        return Naming(f"{before}{self}{after}", [(start + at, end + at, device) for start, end, device in self.gpus])


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    kind: ClassVar[str] = "prose"
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Bullets:
    """Sentences, one per line; `empty` where there are none."""

    kind: ClassVar[str] = "bullets"
    items: Sequence[str]
    title: str = ""
    empty: str = "None."
    strong: bool = False


@dataclass(frozen=True)
class Terms:
    """Words and what they mean."""

    kind: ClassVar[str] = "terms"
    pairs: Sequence[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True)
class Code:
    """Text to paste."""

    kind: ClassVar[str] = "code"
    text: str
    language: str = ""


@dataclass(frozen=True)
class Figures:
    """Key figures: cards on a page, lines on a terminal."""

    kind: ClassVar[str] = "figures"
    items: Sequence[KeyFigure]


@dataclass(frozen=True)
class Chart:
    """A chart of the registry, drawn from `subject`; `number` tells several of one name apart."""

    kind: ClassVar[str] = "chart"
    name: str
    subject: object
    number: int = 0

    @property
    def id(self) -> str:
        """Its name on the page and as a file."""
        return f"{self.name}-{self.number}" if self.number else self.name


@dataclass(frozen=True)
class Heading:
    """A heading inside a section, with a number before it and a badge after it where they are given."""

    kind: ClassVar[str] = "heading"
    text: str
    rank: int | None = None
    badge: str = ""


@dataclass(frozen=True)
class Fold:
    """Details that a page shows on demand."""

    kind: ClassVar[str] = "fold"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Article:
    """Blocks that belong together and can be linked to, such as one recommendation."""

    kind: ClassVar[str] = "article"
    id: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Pair:
    """Small tables side by side where there is room."""

    kind: ClassVar[str] = "pair"
    blocks: Sequence[Block]


Block = Prose | Bullets | Terms | Code | Figures | Chart | Heading | Fold | Article | Pair | Table


@dataclass(frozen=True)
class Section:
    """A section; `part` starts a new part of a joined document with its kind of statement."""

    id: str
    title: str
    blocks: Sequence[Block]
    part: str = ""


@dataclass(frozen=True)
class Document:
    """A whole document. `data` is its JSON, `files` are further files it writes, by name.

    `screen_notes`: whether the short answer on a terminal has the notes under its headline. `main_table`: the table of
    its JSON that a single CSV file holds; the first one where it names none.
    """

    name: str
    kind: str
    title: str
    headline: str
    facts: Sequence[str] = ()
    notes: Sequence[Prose] = ()
    figures: Sequence[KeyFigure] = ()
    summary: Sequence[Block] = ()
    sections: Sequence[Section] = ()
    screen: Sequence[Block] = ()
    screen_notes: bool = True
    data: Callable[[], Mapping[str, Any]] = field(default=dict)
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    main_table: str = ""

    @property
    def json_name(self) -> str:
        """The file that holds every figure."""
        return f"{self.name}.json"

    def blocks(self) -> Iterator[Block]:
        """Every block, also those inside others."""
        yield from inside(self.summary)
        for section in self.sections:
            yield from inside(section.blocks)


def inside(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks and the blocks within them."""
    for block in blocks:
        yield block
        if isinstance(block, Fold | Article | Pair):
            yield from inside(block.blocks)


def tables(made: Sequence[Table]) -> list[Block]:
    """Tables in a section: wide ones by themselves, those of two columns side by side."""
    wide: list[Block] = [t for t in made if len(t.heads) > 2]
    small = [t for t in made if len(t.heads) <= 2]
    if len(small) > 1:
        return [*wide, Pair(small)]
    return [*wide, *small]


def joined(first: Document, *others: Document, name: str) -> Document:
    """Several documents in one: the first leads, the others follow as parts of their own."""
    sections = list(first.sections)
    for other in others:
        opening: list[Block] = [Prose(other.headline, "strong"), *other.notes, Figures(other.figures), *other.summary]
        sections.append(Section(f"part-{other.name}", other.kind, opening, part=other.kind))
        for s in other.sections:
            # A title that two parts share, with the part it belongs to.
            shared = s.title in {mine.title for mine in first.sections}
            title = f"{s.title} ({other.kind.lower()})" if shared else s.title
            blocks = _renamed(s.blocks, other.name)
            sections.append(replace(s, id=f"{other.name}-{s.id}", title=title, blocks=blocks))
    both = {other.name: other for other in (first, *others)}
    files = {n: made for other in both.values() for n, made in other.files.items()}
    kinds = " and ".join((first.kind, *(other.kind.lower() for other in others)))
    return replace(
        first, name=name, kind=kinds, title=f"{kinds}{first.title.removeprefix(first.kind)}", sections=tuple(sections),
        files=files, data=lambda: {n: other.data() for n, other in both.items()},
    )  # fmt: skip


def _renamed(blocks: Sequence[Block], name: str) -> tuple[Block, ...]:
    """Blocks whose tables have names of their own, also next to another document's."""
    out: list[Block] = []
    for block in blocks:
        if isinstance(block, Table):
            out.append(replace(block, name=f"{name}-{block.name}"))
        elif isinstance(block, Pair | Fold | Article):
            out.append(replace(block, blocks=_renamed(block.blocks, name)))
        else:
            out.append(block)
    return tuple(out)
