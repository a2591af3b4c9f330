"""Are the screens of nvidia-smi and the reports of nvidia-smi -q read as what each GPU said at their times?"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, PAGE_BYTES, Fit, head_of, open_source, recognize

CORPUS = Path(__file__).parent.parent / "corpus"
LOOP, MIG = (CORPUS / f"nvidia_smi_screen_{name}.txt" for name in ("loop", "mig"))
REPORT, SLICES = (CORPUS / f"nvidia_smi_q_{name}.txt" for name in ("470", "610_mig"))
NARROW = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.85.12    Driver Version: 525.85.12    CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
{}
+-------------------------------+----------------------+----------------------+
"""
BOX = """\
|   0  {name:<18}{flag:>5}  | {bus} Off |                    0 |
|{usage}|"""
USAGE = " 38%   50C    P2   139W / 320W |   9184MiB / 10240MiB |     65%      Default "


def screen(usage: str = USAGE, name: str = "NVIDIA A30", flag: str = "Off", bus: str = "00000000:01:00.0") -> str:
    return NARROW.format(BOX.format(name=name, flag=flag, bus=bus, usage=usage))


def written(tmp_path: Path, text: str, name: str = "node1.txt") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a file, without the cells that are empty."""
    opened = open_source(file)
    rows = (row for batch in opened.batches(opened.names, ()) for row in batch.to_pylist())
    return [{name: str(cell) for name, cell in row.items() if cell} for row in rows]


def rejected(file: Path) -> int:
    opened = open_source(file)
    list(opened.batches(opened.names, ()))
    return len(opened.wrong_rows)


@pytest.mark.parametrize("flag", ["On", "Off", "WDDM", "TCC", "MCDM", "N/A"])
def test_a_box(tmp_path, flag):
    (row,) = read(written(tmp_path, "Tue Mar  3 10:00:00 2026\n" + screen(flag=flag)))
    assert row == {
        "time": "2026-03-03 10:00:00", "gpu": "0", "model": "NVIDIA A30", "temperature [C]": "50", "power [W]": "139",
        "power limit [W]": "320", "memory used [MiB]": "9184", "memory total [MiB]": "10240", "util [%]": "65",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "silent"),
    [
        (" N/A   47C    P0    11W /  N/A | Not Supported        |      0%      Default ", {"memory used [MiB]"}),
        ("ERR!  ERR! ERR!    ERR! / ERR! |  23025MiB / 24576MiB |    ERR!      Default ", {"power [W]", "util [%]"}),
        (" 38%   50C    P2   N/A  /   75W |   9184MiB / 10240MiB |     N/A   E. Process ", {"power [W]", "util [%]"}),
    ],
)
def test_what_a_gpu_does_not_say_is_unknown(tmp_path, usage, silent):
    (row,) = read(written(tmp_path, screen(usage)))
    known = {"power [W]", "util [%]", "memory used [MiB]", "power limit [W]"} & row.keys()
    assert not known & silent
    assert known


@pytest.mark.parametrize("name", ["NVIDIA GeForce ...", "Tesla V100-SXM2...", "ERR!"])
def test_a_name_that_is_cut_is_not_a_model(tmp_path, name):
    (row,) = read(written(tmp_path, screen(name=name)))
    assert "model" not in row


@pytest.mark.parametrize("above", ["", "  ", "> ", "node1: ", "[rank0]: "])
def test_a_screen_that_is_pasted_elsewhere(tmp_path, above):
    text = "".join(f"{above}{line}\n" for line in ("Tue Mar  3 10:00:00 UTC 2026", *screen().splitlines()))
    (row,) = read(written(tmp_path, text))
    assert (row["time"], row["util [%]"]) == ("2026-03-03 10:00:00", "65")


def test_blanks_that_were_folded(tmp_path):
    (row,) = read(written(tmp_path, re.sub(" +", " ", screen())))
    assert (row["gpu"], row["power [W]"], row["util [%]"]) == ("0", "139", "65")


def test_a_date_further_above_is_not_the_time(tmp_path):
    (row,) = read(written(tmp_path, "Tue Mar  3 10:00:00 2026\nthe job starts\n" + screen()))
    assert "time" not in row


def test_a_screen_far_down_a_log(tmp_path):
    file = written(tmp_path, "step 1 loss 0.5\n" * 5000 + "Tue Mar  3 10:00:00 2026\n" + screen())
    found = recognize(file)
    assert (found.key, found.seen.fit) == ("nvidia_smi_screen", Fit.LIKELY)
    assert read(file)[0]["time"] == "2026-03-03 10:00:00"


@pytest.mark.parametrize("text", ["x", "\n", " ", "=", "|", "| ", "| 0 ", "| 0 A B ", "GPU ", "1", "+-", "1,2,3\n"])
def test_other_text_is_looked_at_in_no_time(tmp_path, text):
    file = written(tmp_path, text * (PAGE_BYTES // len(text)))
    start = time.perf_counter()
    head = head_of(file)
    for key in ("nvidia_smi_screen", "nvidia_smi_q"):
        assert FORMATS.get(key).score(head).fit is Fit.NO
    assert time.perf_counter() - start < 5  # a pattern that starts over at each letter takes minutes


def test_screens_without_a_date_are_one_reading_unless_the_interval_is_given(tmp_path):
    text = re.sub(r"(?m)^Tue .*\n", "", LOOP.read_text())
    taken = gpuledger.open(tmp_path / "means").ingest(written(tmp_path, text))
    assert taken.rows_added == 2
    assert "--every LENGTH" in [one.option for one in taken.stated]
    lake = gpuledger.open(tmp_path / "lake")
    assert lake.ingest(tmp_path / "node1.txt", at="2026-03-03", every="5s").rows_added == 8


def test_a_screen_without_a_date_among_others_is_rejected(tmp_path):
    first, second, *rest = re.split(r"(?m)^(?=Tue )", LOOP.read_text())[1:]
    file = written(tmp_path, "".join([first, second.split("\n", 1)[1], *rest]))
    taken = gpuledger.open(tmp_path / "lake").ingest(file)
    assert (taken.rows_added, taken.rows_rejected) == (6, 2)


@pytest.mark.parametrize("stamps", [["10:00:00"] * 4, ["10:00:00", "10:00:00", "10:00:01", "10:00:01"]])
def test_screens_of_one_second_may_be_of_several_hosts(tmp_path, stamps):
    text = "".join(f"Tue Mar  3 {stamp} 2026\n{screen()}" for stamp in stamps)
    with pytest.raises(FileFault, match="of several hosts") as caught:
        open_source(written(tmp_path, text))
    assert "--host NAME" in caught.value.hint
    rounds = "".join(text.replace("10:00", f"1{hour}:00") for hour in range(3))
    with pytest.raises(FileFault, match="of several hosts"):
        open_source(written(tmp_path, rounds))


def test_a_loop_faster_than_a_second(tmp_path):
    usages = [USAGE.replace("65%", f"{n:2}%") for n in range(20)]
    text = "".join(f"Tue Mar  3 10:00:{n // 2:02} 2026\n{screen(usage)}" for n, usage in enumerate(usages))
    assert gpuledger.open(tmp_path / "lake").ingest(written(tmp_path, text)).rows_added == 20


def test_a_gpu_in_two_places_is_two_gpus(tmp_path):
    text = f"Tue Mar  3 10:00:00 2026\n{screen()}Tue Mar  3 10:00:05 2026\n{screen(bus='00000000:02:00.0')}"
    with pytest.raises(FileFault, match=r"GPU 0 is at 00000000:01:00\.0 and at 00000000:02:00\.0"):
        open_source(written(tmp_path, text))
    nodes = "".join(f"node{n}: {line}\n" for n in (1, 2) for line in screen().splitlines())
    with pytest.raises(FileFault, match=r"node1 .* node2"):
        open_source(written(tmp_path, nodes))


def test_a_gpu_that_did_not_answer_is_named(tmp_path):
    lost = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
    opened = open_source(written(tmp_path, lost + "Tue Mar  3 10:00:00 2026\n" + screen()))
    assert opened.notes == ["GPU1 did not answer nvidia-smi and is not counted"]


def test_a_line_that_is_cut_is_no_reading(tmp_path):
    cut = screen().splitlines()
    file = written(tmp_path, "\n".join([*screen().splitlines(), *cut[:-2], "| 38%   50C    P2"]))
    assert len(read(file)) == 1
    assert rejected(file) == 1


def test_a_screen_without_a_gpu_says_what_to_record(tmp_path):
    with pytest.raises(FileFault, match="without a GPU") as caught:
        open_source(written(tmp_path, screen().split("|   0")[0]))
    assert "nvidia-smi --query-gpu=" in caught.value.hint


def test_slices_are_counted_once_and_named(tmp_path):
    more = MIG.read_text().replace("10:00:00", "10:00:10")
    file = written(tmp_path, MIG.read_text() + more)
    (note,) = open_source(file).notes
    assert "in 4 slices (GPU instances 1, 5, 13, 14)" in note
    assert [row.get("util [%]") for row in read(file)] == [None, "0"] * 2


def test_the_enforced_limit_counts_and_the_default_is_kept():
    first, second = read(REPORT)
    assert (first["power limit [W]"], first["default limit [W]"]) == ("250.00", "300.00")
    assert (first["uuid"][-2:], second["uuid"][-2:]) == ("01", "02")
    assert (second["memory used [MiB]"], second["sm clock [MHz]"], second["temperature [C]"]) == ("8011", "1530", "52")


def test_readings_of_slices_memory_and_module_are_not_the_boards():
    (row,) = read(SLICES)
    assert (row["memory used [MiB]"], row["memory total [MiB]"]) == ("10244", "143771")
    assert (row["power [W]"], row["power limit [W]"], row["default limit [W]"]) == ("230.28", "600.00", "700.00")
    assert "util [%]" not in row


@pytest.mark.parametrize("indent", ["", "    ", "\t"])
def test_a_report_that_is_indented(tmp_path, indent):
    file = written(tmp_path, "".join(f"{indent}{line}\n" for line in REPORT.read_text().splitlines()))
    assert read(file) == read(REPORT)


def test_a_report_that_starts_within(tmp_path):
    file = written(
        tmp_path, REPORT.read_text().split("    Product Name")[1] + REPORT.read_text().split("GPU 0000", 1)[1]
    )
    assert recognize(file).key == "nvidia_smi_q"
    assert [
        row["uuid"][-2:] for row in read(written(tmp_path, "GPU 0000" + REPORT.read_text().split("GPU 0000", 1)[1]))
    ] == ["01", "02"]


def test_a_gpu_without_a_uuid_is_known_by_its_place(tmp_path):
    text = re.sub(r"GPU-[0-9a-f-]{36}", "GPU-00000000-0000-0000-0000-000000000000", REPORT.read_text())  # as masked
    taken = gpuledger.open(tmp_path / "lake")
    taken.ingest(written(tmp_path, text))
    assert sorted(taken.samples().df()["gpu_uuid"]) == ["node1:00000000:15:00.0", "node1:00000000:16:00.0"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ((CORPUS / "nvidia_smi_q_no_gpu.txt").read_text(), "with 0 attached GPUs"),
        (REPORT.read_text().split("    Clocks Throttle")[0], "without a reading"),
    ],
)
def test_a_report_without_readings_is_refused(tmp_path, capsys, text, problem):
    assert run(["analyze", str(written(tmp_path, text))]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert problem in shown
    assert "next: record samples: nvidia-smi --query-gpu=" in shown


@pytest.mark.parametrize("file", [LOOP, MIG, REPORT, SLICES], ids=lambda file: file.stem)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_a_file_that_is_cut_anywhere_gives_what_it_says_or_a_fault(tmp_path, file, data):
    text = file.read_text()
    start = data.draw(st.integers(0, len(text) - 1))
    cut = written(tmp_path, text[start : data.draw(st.integers(start + 1, len(text)))], "cut.txt")
    if not recognize(cut).key.startswith("nvidia_smi"):
        return
    known = [set(row.items()) for row in read(file)]
    try:
        rows = read(cut)
    except FileFault as fault:
        rows, hint = [], fault.hint
    else:
        hint = "none is needed"
    said = [{(name, cell) for name, cell in row.items() if name != "time"} for row in rows]
    assert hint
    assert all(any(one <= row for row in known) for one in said)
