"""What does the first sheet of a spreadsheet (.xlsx) hold, cell by cell?

Numbers are as they are stored. A date is stored as days since 1899-12-30; whether a number is one is in its format.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree as ET

from gpuledger.errors import FileFault, map_os_error

_NS = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_MOST_BYTES = 100_000_000
_MOST_COLUMNS = 16_384
_MOST_ROWS = 1_048_576
_EPOCH = dt.datetime(1899, 12, 30)
# Number formats that Excel has built in for dates and times.
_DATES = {*range(14, 23), *range(45, 48)}
_DATE_LETTERS = re.compile(r"[dyhs]", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')


def sheet_rows(path: str, most: int = _MOST_ROWS + 1) -> list[list[str]]:
    """The rows of the first sheet as text, at most as many; the first row is the header."""
    try:
        with zipfile.ZipFile(path) as book:
            names = book.namelist()
            first = min((n for n in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", n)), key=_number, default="")
            if not first:
                raise FileFault(Path(path), "a zip archive, not a spreadsheet", hint="unpack it, or save it as CSV")
            texts = _texts(book) if "xl/sharedStrings.xml" in names else []
            dates = _dates(book) if "xl/styles.xml" in names else set()
            rows = [_row(row, texts, dates) for row in islice(_rows(book, first), most)]
    except OSError as error:
        raise map_os_error(error, path, "read the spreadsheet") from error
    except (zipfile.BadZipFile, zlib.error, ET.ParseError, ValueError, IndexError, KeyError) as error:
        hint = "save the sheet as CSV in UTF-8"
        raise FileFault(path, f"cannot be read as a spreadsheet: {error}", hint=hint) from error
    if not rows:
        raise FileFault(path, "no rows", hint="is the table on the first sheet?")
    return rows


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _rows(book: zipfile.ZipFile, name: str) -> Iterator[ET.Element]:
    """The rows of a sheet, one at a time: as a tree, all cells take fifteen times their bytes."""
    count = 0
    for _, element in ET.iterparse(io.BytesIO(_bytes(book, name))):  # noqa: S314 - entities are refused
        if element.tag == f"{_NS}row":
            if (count := count + 1) > _MOST_ROWS:
                raise ValueError(f"{name} has more than {_MOST_ROWS:,} rows")
            yield element
            element.clear()


def _part(book: zipfile.ZipFile, name: str) -> ET.Element:
    return ET.fromstring(_bytes(book, name))  # noqa: S314 - entities are refused


def _bytes(book: zipfile.ZipFile, name: str) -> bytes:
    """A part of the workbook; refused where it is large or declares entities."""
    if book.getinfo(name).file_size > _MOST_BYTES:
        raise ValueError(f"{name} is larger than {_MOST_BYTES // 1_000_000} MB")
    data = book.read(name)
    if b"<!" in data.replace(b"<!--", b"").replace(b"<![CDATA[", b"") or b"\0" in data[:64]:
        raise ValueError(f"{name} declares entities, or is not UTF-8")
    return data


def _texts(book: zipfile.ZipFile) -> list[str]:
    """The strings that cells refer to by number."""
    return ["".join(t.text or "" for t in si.iter(f"{_NS}t")) for si in _part(book, "xl/sharedStrings.xml")]


def _dates(book: zipfile.ZipFile) -> set[int]:
    """The cell styles that show a date or time."""
    styles = _part(book, "xl/styles.xml")
    custom = {
        int(f.get("numFmtId", "0"))
        for f in styles.iter(f"{_NS}numFmt")
        if _DATE_LETTERS.search(_QUOTED.sub("", f.get("formatCode", "")))
    }
    cells = styles.find(f"{_NS}cellXfs")
    found = [] if cells is None else list(cells)
    return {i for i, xf in enumerate(found) if int(xf.get("numFmtId", "0")) in _DATES | custom}


def _row(row: ET.Element, texts: list[str], dates: set[int]) -> list[str]:
    out: list[str] = []
    for cell in row.iter(f"{_NS}c"):
        place = _column(cell.get("r", "")) if cell.get("r") else len(out)
        if place >= _MOST_COLUMNS:
            raise ValueError(f"cell {cell.get('r')} is beyond the last column")
        out += [""] * (place - len(out))
        out.append(_value(cell, texts, dates))
    return out


def _column(reference: str) -> int:
    """BC12 is the 55th column, from 0."""
    place = 0
    for letter in re.sub(r"[^A-Z]", "", reference.upper())[:4]:
        place = place * 26 + ord(letter) - 64
    return place - 1


def _value(cell: ET.Element, texts: list[str], dates: set[int]) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(f"{_NS}t"))
    value = cell.findtext(f"{_NS}v") or ""
    if kind == "s" and value:
        return texts[int(value)]
    if kind == "n" and value and int(cell.get("s", "0")) in dates:
        return (_EPOCH + dt.timedelta(milliseconds=round(float(value) * 86_400_000))).isoformat()
    return value
