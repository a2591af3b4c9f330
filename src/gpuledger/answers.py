"""How does a statement show itself in Python? As a dict, a page, Markdown, files, and tables for pandas and DuckDB.

An `Answer` holds a statement and gives its attributes. How it is drawn is looked up when asked for, so that a room that
answers questions need not know the report room.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gpuledger.arguments import takes
from gpuledger.errors import InputError, MissingExtra, UnknownName

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa

S = TypeVar("S")
LINES_SHOWN = 12


class Rows:
    """A table: `.df()` for pandas, `.arrow()`, `.relation()` for DuckDB."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name = name
        self._table = table

    def arrow(self) -> pa.Table:
        """As an Arrow table."""
        return self._table

    def df(self) -> pd.DataFrame:
        """As a pandas data frame."""
        try:
            import pandas  # noqa: F401, ICN001
        except ImportError as error:
            raise MissingExtra("data frames", "pandas") from error
        return self._table.to_pandas()

    @takes()
    def relation(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """As a DuckDB relation, to filter, join and aggregate with SQL."""
        import duckdb

        return (connection or duckdb.connect()).from_arrow(self._table)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self):,} rows x {self._table.num_columns} columns; .df(), .arrow(), .relation()>"

    def _repr_html_(self) -> str | None:
        """Its first rows in a notebook; None, for which a notebook shows the text, where pandas is not installed."""
        try:
            first = Rows(self.name, self._table.slice(0, LINES_SHOWN)).df()
        except MissingExtra:
            return None
        return str(first.to_html(max_cols=LINES_SHOWN, border=0))


class Answer(Generic[S]):
    """A statement that shows itself; its own attributes are the statement's."""

    def __init__(self, statement: S, *, limits: Any = None) -> None:
        """`limits`: those of an efficiency statement, which its document names."""
        self.statement = statement
        self._given = {} if limits is None else {"limits": limits}
        self._made: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Every figure, as the JSON of the command line has it."""
        return dict(self._document().data())

    @takes()
    def to_html(self, charts: bool = True) -> str:
        """The whole page; with `charts` only where they can be drawn."""
        return str(_renderer("html").render_html(self._document(), None if charts and _can_draw() else {}))

    def to_markdown(self) -> str:
        """The whole document as Markdown."""
        return str(_renderer("markdown").render_markdown(self._document()))

    @takes()
    def save(self, folder: str | Path, charts: bool = True) -> dict[str, Path]:
        """Write the page, its Markdown, JSON and CSV versions and the charts into a folder; name to path.

        A name that ends in .csv or .xlsx is one file: the main table, or a workbook with every table.
        """
        sheets, place = importlib.import_module("gpuledger.report.sheets"), Path(folder)
        if sheets.is_one_file(place):
            return {place.name: sheets.write_sheets(self._document(), place)}
        write = importlib.import_module("gpuledger.report.write").write_document
        made: dict[str, Path] = write(self._document(), folder, charts=charts and _can_draw())
        return made

    @property
    def tables(self) -> list[str]:
        """The names of the tables in it, for `table` and `df`."""
        found = self.to_dict()
        return [name for name, rows in found.items() if isinstance(rows, list) and rows and isinstance(rows[0], dict)]

    @takes()
    def table(self, name: str) -> Rows:
        """One of its tables, such as by_gpu; nested figures become columns named a.b."""
        import pyarrow as pa

        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        rows = [flat(row) for row in self.to_dict()[name]]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        return Rows(name, pa.table({c: _column([row.get(c) for row in rows]) for c in columns}))

    @takes()
    def df(self, name: str) -> pd.DataFrame:
        """One of its tables as a pandas data frame."""
        return self.table(name).df()

    @property
    def charts(self) -> list[str]:
        """The names of its charts, for `chart`."""
        return [block.name for block in self._document().blocks() if block.kind == "chart"]

    @takes()
    def chart(self, name: str, theme: str = "light") -> Any:
        """One of its charts as an Altair chart, which a notebook shows."""
        found = {block.name: block for block in self._document().blocks() if block.kind == "chart"}
        if name not in found:
            raise UnknownName("chart", name, found)
        return importlib.import_module("gpuledger.report.charts").chart(name, found[name].subject, theme)

    def _document(self) -> Any:
        if self._made is None:
            documents = importlib.import_module("gpuledger.report.documents")
            self._made = documents.document_of(self.statement, **self._given)
        return self._made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.statement, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.statement)})

    def __repr__(self) -> str:
        made = self._document()
        figures = "\n".join(f"  {f.label}: {f.value}" for f in made.figures)
        return f"{made.kind}: {made.headline}\n{figures}\n  (.to_dict() .to_html() .save(folder) .tables .df(name))"

    def _repr_html_(self) -> str:
        made = self._document()
        return str(_renderer("html").render_summary(made))


def answer(statement: Any) -> Any:
    """The statement as an `Answer` where it has a document, else as it is."""
    documents = importlib.import_module("gpuledger.report.documents")
    has_one = documents.name_of(type(statement)) in documents.DOCUMENTS.names()
    return Answer(statement) if has_one else statement


def _renderer(name: str) -> Any:
    return importlib.import_module(f"gpuledger.report.render.{name}")


def _can_draw() -> bool:
    return bool(importlib.import_module("gpuledger.report.charts").can_draw())


def flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Nested figures as one level, named a.b."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            out |= flat(value, f"{before}{name}.")
        else:
            out[f"{before}{name}"] = value
    return out


def _column(values: list[Any]) -> pa.Array:
    """A column; text where its values are of several kinds."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if v is None else str(v) for v in values])


def given(value: object, what: str) -> None:
    """Refuse an argument that is missing."""
    if value is None or value == "":
        raise InputError(f"{what} is missing", hint=f"give {what}=...")
