"""Does a control character in a label ever reach a terminal, a page or a chart, and a formula a spreadsheet?"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from gpuledger.cli.app import run
from gpuledger.recording.command import to_stderr
from gpuledger.report.documents.training import meter_document
from gpuledger.report.render.terminal import screen

ESCAPE = "\x1b[31mRED\x1b]0;title\x07"
HOSTILE = [ESCAPE, "bell\x07bs\x08vt\x0bx", "c1\x9b31m", "\u202eevil", "=cmd|' /C calc'!A0", "@SUM(1+1)", "-2+3"]
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
HEADS = (
    "timestamp", "UUID", "modelName", "Hostname", "cluster", "namespace", "workload", "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE",
)  # fmt: skip


def clean(text: str) -> bool:
    return not RAW.search(text)


def text_files(folder: Path) -> list[Path]:
    files = [f for f in folder.rglob("*") if f.suffix in {".html", ".md", ".json", ".csv", ".svg"}]
    assert {f.suffix for f in files} == {".html", ".md", ".json", ".csv", ".svg"}
    return files


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """One GPU for each hostile label, three hours."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [
        [f"2026-03-02T{m // 60:02d}:{m % 60:02d}:00Z", f"GPU-{i}", "NVIDIA A100-SXM4-40GB", *[label] * 4, 95, 150,
         20000, 20000]
        for i, label in enumerate(HOSTILE) for m in range(0, 180, 5)
    ]  # fmt: skip
    with (folder / "f.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([HEADS, *rows])
    assert run(["import", str(folder / "f.csv"), "--lake", str(folder / "lake"), "-q"]) == 0
    return folder / "lake"


@pytest.fixture(scope="module")
def written(lake):
    """What each command shows, and the folder of what it writes."""
    made = {}
    for command in ("analyze", "audit"):
        folder = lake.parent / command
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert run([command, "--lake", str(lake), "--out", str(folder), "--full"]) == 0
        made[command] = (out.getvalue(), folder)
    return made


@pytest.mark.parametrize("command", ["analyze", "audit"])
def test_labels_change_no_terminal_and_no_document(written, command):
    said, folder = written[command]
    assert clean(said)
    assert "\\x1b[31mRED" in said
    assert "\\u202eevil" in said
    for file in text_files(folder):
        assert clean(file.read_text(encoding="utf-8")), file
    page = (folder / ("report.html" if command == "analyze" else "audit.html")).read_text(encoding="utf-8")
    assert "\\x1b[31mRED" in page
    assert "c1\\x9b31m" in page


def test_json_gives_the_labels_back_as_they_are(cli, lake):
    ended = cli("analyze", "--lake", lake, "--json")
    assert clean(ended.out)
    assert {row["namespace"] for row in ended.json()["per_gpu"]} == set(HOSTILE)


def test_a_label_is_never_a_formula_in_a_csv(written):
    names = set()
    for file in (file for _, folder in written.values() for file in folder.glob("*.csv")):
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
        for row in rows:
            for column, cell in row.items():
                number = re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)
                assert number or not cell.startswith(("=", "+", "-", "@")), (file, column, cell)
        names |= {row["namespace"] for row in rows if "namespace" in row}
    assert {"'=cmd|' /C calc'!A0", "'@SUM(1+1)", "'-2+3"} <= names
    assert "\\u202eevil" in names


def test_rejected_rows_are_written_as_words(cli, tmp_path):
    rows = [["2026-03-02T00:00:00Z", "GPU-1", 50], ["2026-03-02T00:01:00Z", "GPU-1", "=cmd|' /C calc'!A0"],
            [ESCAPE, "GPU-1", 50], ["2026-03-02T00:02:00Z", "GPU-1", 50]]  # fmt: skip
    with (tmp_path / "f.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("timestamp", "UUID", "DCGM_FI_DEV_GPU_UTIL"), *rows])
    said = cli("import", "f.csv", "--lake", "lake", "--json").json()
    text = Path(said["rejects_file"]).read_text(encoding="utf-8")
    assert clean(text.replace("\r\n", "\n"))
    values = [row["value"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    assert "'=cmd|' /C calc'!A0" in values
    assert any("\\x1b[31mRED" in value for value in values)


def test_words_around_a_command_write_control_characters_out(capsys):
    to_stderr(f"{ESCAPE}\n  next line")
    said = capsys.readouterr().err
    assert clean(said)
    assert said.startswith("gpuledger: \\x1b[31mRED")
    assert said.count("\n") == 2


def test_a_job_name_changes_no_meter_report():
    report = {
        "seen": {"steps": 0, "timed_steps": 0, "state": "done", "notes": [ESCAPE], "place": {"name": ESCAPE},
                 "who": {"run_id": ESCAPE, "rank": 0, "world_size": 1}},
        "findings": [{"title": ESCAPE, "gain_words": ESCAPE, "why": ESCAPE, "change": f"a{ESCAPE}\nb"}],
        "not_known": [{"figure": "mfu_pct", "why": ESCAPE}], "mfu_pct": None, "hfu_pct": None,
        "mfu_of_precision_pct": None, "mfu_of_measured_pct": None,
    }  # fmt: skip
    console = Console(file=io.StringIO(), width=100)
    for part in screen(meter_document(report), console.width):
        console.print(part)
    said = console.file.getvalue()
    assert clean(said)
    assert said.count("\\x1b[31mRED") == 8


def test_numbers_stay_numbers_in_a_csv(written):
    _, folder = written["analyze"]
    rows = csv.DictReader(io.StringIO((folder / "gpu_summary.csv").read_text(encoding="utf-8"), newline=""))
    assert all(float(row["gpu_util_pct"]) == 95 for row in rows)


def test_a_node_name_changes_no_scaling_report(cli, tmp_path):
    nodes = {"a" + ESCAPE: {"gpu": "NVIDIA A30", "gpus": 1}, "b\x00": {"gpu": "NVIDIA A30", "gpus": 1}}
    rows = [{"v": 1, "kind": "run", "planned": dict.fromkeys(nodes, 20), "nodes": nodes, "baseline": None,
             "wall_s": 10.0, "model": ESCAPE}]  # fmt: skip
    common = {"v": 1, "kind": "request", "input_tokens": 66, "output_tokens": 31, "ok": True, "latency_s": 0.5}
    rows += [{**common, "node": n, "request": i, "start_s": i * 0.5} for n in nodes for i in range(20)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    ended = cli("scaling", "r.jsonl", "--out", "out", "--full")
    assert ended.code == 0, ended.err
    assert clean(ended.out)
    assert "a\\x1b[31mRED" in ended.out
    for file in (f for f in Path("out").rglob("*") if f.suffix in {".html", ".md", ".json", ".svg"}):
        assert clean(file.read_text(encoding="utf-8")), file


def test_errors_write_control_characters_out(cli):
    for args in (("import", f"{ESCAPE}.csv"), ("analyze", "--lake", "x", "--since", ESCAPE), (ESCAPE,)):
        ended = cli(*args)
        assert ended.code == 2
        assert clean(ended.err), args
        assert "\\x1b[31mRED" in ended.err
        told = cli(*args, "--json")
        assert clean(told.err)
        if args[0] == "import":
            assert ESCAPE in json.loads(told.err)["error"]


def test_a_line_break_in_a_name_makes_no_line_of_its_own(cli):
    ended = cli("catalog", "gpu", "no\nnext: rm -rf /")
    assert ended.code == 2
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["error", "next"]
