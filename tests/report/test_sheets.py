from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree as ET

import pytest

from gpuledger.report.document import Document
from gpuledger.report.sheets import as_csv, as_xlsx, is_one_file, tables_of

ROWS = [
    {"owner": "=HYPERLINK(1)", "paid_usd": "12.345678", "since_utc": "2026-01-05T06:00:00Z", "gpus": 3,
     "gpu_index": "007", "buckets": {"idle": "1.5"}},
    {"owner": "@x", "paid_usd": None, "since_utc": None, "gpus": -1, "gpu_index": "1", "buckets": {"idle": "0"}},
]  # fmt: skip
DATA = {"v": 1, "statement": "s", "other": [{"a": 1}], "by_owner": ROWS, "not_known": []}
DOCUMENT = Document("s", "Kind", "Title", "Headline", data=lambda: DATA, main_table="by_owner")


def test_a_csv_holds_the_main_table_unrounded_and_runs_no_formula():
    head, first, second = as_csv(DOCUMENT).splitlines()
    assert head == "owner,paid_usd,since_utc,gpus,gpu_index,buckets.idle"
    assert first == "'=HYPERLINK(1),12.345678,2026-01-05T06:00:00Z,3,007,1.5"
    assert second == "'@x,,,-1,1,0"


def test_tables_of_joined_statements_keep_their_part():
    assert set(tables_of({"audit": DATA, "x": 1})) == {"audit.other", "audit.by_owner"}


def test_a_workbook_has_numbers_dates_and_text(tmp_path):
    pytest.importorskip("xlsxwriter")
    book = zipfile.ZipFile(io.BytesIO(as_xlsx(DOCUMENT)))
    names = [e.get("name") for e in ET.fromstring(book.read("xl/workbook.xml")).iter() if e.get("sheetId")]
    assert names == ["summary", "other", "by_owner"]
    sheet = ET.fromstring(book.read("xl/worksheets/sheet3.xml"))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    cells = {c.get("r"): (c.get("t"), c.findtext(f"{space}v")) for c in sheet.iter(f"{space}c")}
    assert not list(sheet.iter(f"{space}f"))
    assert cells["A2"][0] == "s"
    assert cells["B2"] == (None, "12.345678")
    assert cells["C2"] == (None, "46027.25")  # days since 1900, as spreadsheets count
    assert cells["D3"] == (None, "-1")
    assert cells["E2"][0] == "s"  # an index is a name, not a number
    assert cells["F2"] == (None, "1.5")
    assert "B3" not in cells


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "odd.csv").mkdir()
    assert is_one_file(tmp_path / "a.XLSX")
    assert not is_one_file(tmp_path / "odd.csv")
    assert not is_one_file(tmp_path / "folder")
