"""Is a log that names no GPU, or only an index, read as one GPU only where it is one?"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault

A100, L4 = "NVIDIA A100-SXM4-80GB", "NVIDIA L4"
HEADER = "timestamp, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"
WITH_INDEX = HEADER.replace("timestamp, ", "timestamp, index, ")
DAY_MS = 86_400_000


def stamp(ms: float) -> str:
    at = dt.datetime(2026, 3, 1, 10) + dt.timedelta(milliseconds=round(ms))
    return f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d}"


def line(ms: float, used: int = 60_000, *, name: str = A100, util: int | None = None, index: str = "") -> str:
    busy = 95 if used > 1_000 else 0
    return f"{stamp(ms)}, {index}{name}, {busy if util is None else util} %, {used} MiB, 100.0 W"


def rounds(
    count: int, steps_ms: Sequence[int], used: Sequence[int], *, pause_ms: int = 0, name: str = A100
) -> list[str]:
    """Lines of several GPUs one after the other; `pause_ms`: once, in the middle. The last of a round is `name`."""
    out, at = [], 0
    for number in range(count):
        for place, (step, mib) in enumerate(zip(steps_ms, used, strict=True)):
            out.append(line(at, mib, name=name if place == len(used) - 1 else A100))
            at += step
        at += pause_ms if number == count // 2 else 0
    return out


def apart(count: int, steps: object) -> list[str]:
    """Lines of one GPU, each a step in milliseconds after the one before."""
    out, at = [], 0.0
    for _ in range(count):
        out.append(line(at))
        at += steps()  # type: ignore[operator]
    return out


def seconds(first_ms: int, used: int = 60_000, name: str = A100) -> list[str]:
    """A minute of one GPU."""
    return [line(first_ms + 1_000 * n, used, name=name) for n in range(60)]


def read(tmp_path: Path, lines: Sequence[str], header: str = HEADER) -> list[str]:
    """The GPUs of the lake that the log makes."""
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "log.csv"
    file.write_text("\n".join([header, *lines, ""]))
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(file, host="n1")
    return sorted(set(lake.samples().df()["gpu_uuid"]))


SEVERAL = {
    "evenly spaced": rounds(400, (25, 25), (60_000, 3)),
    "of two models, equally busy": rounds(400, (25, 25), (60_000, 60_000), name=L4),
    "equally busy": rounds(400, (25, 35), (60_000, 60_000)),
    "each second, one fell off": [text for n, text in enumerate(rounds(60, (3, 3, 994), (9, 9, 9))) if n < 90 or n % 3],
    "four, one of them busy": rounds(100, (12, 12, 12, 14), (60_000, 3, 3, 3)),
    "a line was lost": [*rounds(60, (3, 3, 3, 991), (9, 9, 9, 9))[:100], *rounds(60, (3, 3, 3, 991), (9,) * 4)[101:]],
    "the first round was cut": rounds(60, (3, 3, 3, 991), (9, 9, 9, 9))[1:],
    "a round was cut": [*rounds(30, (3, 3, 994), (9, 9, 9))[:-1], *rounds(60, (3, 3, 994), (9, 9, 9))[90:]],
    "one GPU read in bursts": rounds(60, (130, 130, 130, 4_610), (60_000,) * 4),
    "pairs of a round of four": rounds(60, (0, 1, 0, 999), (9, 9, 9, 9))[:6],
    "pairs of one round": rounds(1, (0, 1, 0, 999), (9, 9, 9, 9)),
    "stamps without milliseconds": [text.replace(".000", "") for text in rounds(60, (0, 0, 60_000), (9, 9, 9))],
    "two programs, one file": rounds(100, (2_300, 2_700), (60_000, 3)),
    "ten lines": rounds(5, (25, 35), (60_000, 3)),
    "two logs of one day": [*(line(1_000 * n) for n in range(50)), *(line(1_000 * n + 300, 3) for n in range(50))],
}


@pytest.mark.parametrize("lines", SEVERAL.values(), ids=SEVERAL)
def test_several_gpus_are_never_one(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(FileFault) as refused:
        read(tmp_path, lines)
    assert re.search(r"GPUs.*, or (the |of )?one", refused.value.message)  # both ways to see it
    assert "query index or uuid too" in refused.value.hint
    assert not (tmp_path / "lake").exists()


TOLD_APART = {
    "uneven steps, memory back each round": (rounds(400, (25, 35), (60_000, 3)), 2),
    "uneven steps, a pause": (rounds(400, (25, 35), (60_000, 3), pause_ms=60_000), 2),
    "uneven steps, two models": (rounds(400, (25, 35), (60_000, 60_000), name=L4), 2),
    "each second, equally busy": (rounds(60, (5, 995), (60_000, 60_000)), 2),
    "eight": (rounds(50, (3, 3, 3, 3, 3, 3, 3, 979), (60_000,) * 8), 8),
    "one stamp": (rounds(50, (0, 0, 0, 1_000), (9, 9, 9, 9)), 4),
    "one stamp, once": (rounds(1, (0, 0, 0, 1_000), (9, 9, 9, 9)), 4),
    "stamps equal in pairs": (rounds(50, (0, 1, 0, 999), (9, 9, 9, 9)), 4),
    "a slow first round": ([line(40 * n) for n in range(4)] + rounds(60, (3, 3, 3, 991), (9,) * 4)[4:], 4),
    "the last round cut": (rounds(50, (3, 3, 994), (9, 9, 9))[:-2], 3),
    "a pause": (rounds(50, (3, 3, 994), (9, 9, 9), pause_ms=60_000), 3),
    "pairs twice": (rounds(2, (0, 0, 0, 999), (9, 9, 9, 9)), 4),
    "two models": (rounds(60, (4, 996), (60_000, 3), name=L4), 2),
    "a header in each round": (
        [t for at in range(40) for t in (*rounds(40, (0, 5_000), (9, 7))[2 * at :][:2], HEADER)],
        2,
    ),
    "a late line": ([line(1_000 * n + (700 if p > 1 and n == 30 else p), p) for n in range(60) for p in range(4)], 4),
}


@pytest.mark.parametrize(("lines", "count"), TOLD_APART.values(), ids=TOLD_APART)
def test_gpus_are_told_apart_by_their_order_in_each_round(tmp_path: Path, lines: list[str], count: int) -> None:
    """GPU k is line k of each round: the used memory of each is that of its lines, counted from the top."""
    assert read(tmp_path, lines) == [f"n1:gpu{k}" for k in range(count)]
    found = gpuledger.open(tmp_path / "lake").samples().df()
    used = [int(re.search(r"(\d+) MiB", text)[1]) << 20 for text in lines if text != HEADER]  # type: ignore[index]
    for k in range(count):
        mine = found[found["gpu_index"].astype(int) == k].sort_values("at_ms")["fb_used_bytes"]
        assert mine.tolist() == used[k::count]


def test_gpus_without_a_name_are_counted_in_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.csv"
    file.write_text("\n".join([HEADER, *TOLD_APART["one stamp"][0]]))
    assert run(["analyze", str(file), "--host", "n1"]) == 0
    assert "4 GPUs identified by their order in each round" in capsys.readouterr().err


def test_a_place_in_the_round_with_two_models_is_refused(tmp_path: Path) -> None:
    lines = [*rounds(50, (4, 996), (9, 9)), *rounds(100, (4, 996), (9, 9), name=L4)[100:]]
    with pytest.raises(FileFault, match="its GPU 1 has two values of 'name'"):
        read(tmp_path, lines)


CHANCE = random.Random(7)
ONE = {
    "each 10 ms": apart(500, lambda: 10),
    "each 10 ms, jitter": [line(10 * n + CHANCE.uniform(0, 6)) for n in range(500)],
    "uneven": apart(800, lambda: CHANCE.uniform(10, 40)),
    "mostly fast": apart(900, lambda: 10 + CHANCE.expovariate(1 / 15)),
    "pauses": apart(1_000, lambda: 10 + (10_000 if CHANCE.random() < 0.005 else 0)),
    "each second": apart(200, lambda: 1_000),
    "jobs come and go": [line(1_000 * n, 60_000 if n // 25 % 2 else 3) for n in range(600)],
    "short jobs": [line(1_000 * n, 60_000 if n // 5 % 2 else 3) for n in range(600)],
    "memory grows": [line(1_000 * n, min(80_000, 120 * n)) for n in range(600)],
    "memory never the same": [line(1_000 * n, CHANCE.randrange(80_000)) for n in range(600)],
    "busy every other second": [line(1_000 * n, util=95 * (n % 2)) for n in range(100)],
    "two lines": [line(0), line(1_000)],
    "two days": [*seconds(0), HEADER, *seconds(DAY_MS, used=3)],
    "started again at once": [*seconds(0), HEADER, *seconds(59_200)],
    "header each time": [text for n in range(50) for text in (line(1_000 * n), HEADER)][:-1],
    "newer driver": [*seconds(0, name=A100.split()[1]), *seconds(DAY_MS)],
}


@pytest.mark.parametrize("lines", ONE.values(), ids=ONE)
def test_one_gpu_is_read_however_it_was_logged(tmp_path: Path, lines: list[str]) -> None:
    assert read(tmp_path, lines) == ["n1:gpu0"]


def test_two_sizes_of_memory_are_two_gpus(tmp_path: Path) -> None:
    header = "timestamp, name, memory.total [MiB], utilization.gpu [%]"
    sizes = [f"{stamp(25 * n)}, {A100}, {81920 if n % 2 else 40960} MiB, 5 %" for n in range(50)]
    with pytest.raises(FileFault, match=r"two values of 'memory\.total"):
        read(tmp_path, sizes, header)
    newer = [f"{stamp(1_000 * n)}, {A100}, {81920 if n < 20 else 81559} MiB, 5 %" for n in range(50)]
    assert read(tmp_path, newer, header) == ["n1:gpu0"]


def logged(first_ms: int, name: str, used: int, index: int = 0) -> list[str]:
    return [line(first_ms + 1_000 * n, used, name=name, index=f"{index}, ") for n in range(50)]


@pytest.mark.parametrize(
    ("first_ms", "name"), [(300, L4), (300, A100), (-3_600_000, A100)], ids=["two models", "one model", "an hour back"]
)
def test_a_header_that_comes_again_after_time_went_back_begins_the_log_of_another_host(
    tmp_path: Path, first_ms: int, name: str
) -> None:
    lines = [*logged(0, A100, 60_000), WITH_INDEX, *logged(first_ms, name, 100)]
    assert read(tmp_path, lines, WITH_INDEX) == ["log log 1:gpu0", "log log 2:gpu0"]
    found = gpuledger.open(tmp_path / "lake").samples().df().groupby("gpu_uuid")["fb_used_bytes"].agg(["min", "max"])
    assert (found // 2**20).to_numpy().tolist() == [[60_000, 60_000], [100, 100]]


def test_another_model_two_days_later_is_refused(tmp_path: Path) -> None:
    lines = [*logged(0, A100, 60_000), WITH_INDEX, *logged(DAY_MS, L4, 100)]
    with pytest.raises(FileFault, match="its GPU 0 has two values of 'name'") as refused:
        read(tmp_path, lines, WITH_INDEX)
    assert "logs of two hosts" in refused.value.message
    assert "--host" in refused.value.hint
    assert not (tmp_path / "lake").exists()


BUSY, IDLE = logged(0, A100, 60_000), logged(400, A100, 100)
TAKING_TURNS = [text for pair in zip(BUSY, IDLE, strict=True) for text in pair]
ALIKE = [text for pair in zip(BUSY, logged(500, A100, 60_000), strict=True) for text in pair]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (TAKING_TURNS, "rows of index 0 may be of several hosts: memory in use jumps"),
        ([WITH_INDEX, *ALIKE], "its header comes twice before the first row"),
        ([*BUSY, *IDLE], "rows of index 0 may be of several hosts: its times go back"),
        ([*BUSY, *logged(20_300, A100, 60_000)], "rows of index 0 may be of several hosts: its times go back"),
    ],
    ids=["into one file at once", "into one file at once, equally busy", "without the second header", "equally busy"],
)
def test_two_hosts_of_one_model_in_one_file(tmp_path: Path, lines: list[str], words: str) -> None:
    with pytest.raises(FileFault, match=words) as refused:
        read(tmp_path, lines, WITH_INDEX)
    assert "--host" in refused.value.hint
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("again", [BUSY, BUSY[25:], [WITH_INDEX, *BUSY]], ids=["twice", "its end again", "two files"])
def test_rows_that_come_again_are_no_second_host(tmp_path: Path, again: list[str]) -> None:
    assert read(tmp_path, [*BUSY, *again], WITH_INDEX) == ["n1:gpu0"]
    assert len(gpuledger.open(tmp_path / "lake").samples().df()) == len(BUSY)


def test_a_log_may_be_written_newest_first(tmp_path: Path) -> None:
    assert read(tmp_path, BUSY[::-1], WITH_INDEX) == ["n1:gpu0"]


INSTANT = [line(9 * n, 7_000 * n, util=12 * n) for n in range(8)]


def test_lines_of_one_instant_are_as_many_gpus_where_their_memory_differs(tmp_path: Path) -> None:
    assert len(read(tmp_path, INSTANT)) == 8
    with pytest.raises(FileFault, match="8 lines are of one instant: as many GPUs, or one"):
        read(tmp_path / "alike", [line(9 * n, 7_000) for n in range(8)])


def test_a_header_before_each_row_hides_no_gpu(tmp_path: Path) -> None:
    rows = [text for n in range(50) for text in (line(60_000 * n), HEADER, line(60_000 * n + 40, 3), HEADER)]
    assert len(read(tmp_path, rows[:-1])) == 2


def test_the_logs_of_one_host_in_one_file(tmp_path: Path) -> None:
    """Two days, and a shell that repeats the query of two GPUs."""
    days = [*logged(0, A100, 60_000), WITH_INDEX, *logged(DAY_MS, A100, 100)]
    assert read(tmp_path, days, WITH_INDEX) == ["n1:gpu0"]
    pairs = zip(logged(0, A100, 60_000), logged(3, L4, 100, index=1), strict=True)
    again = [text for pair in pairs for text in (*pair, WITH_INDEX)][:-1]
    assert read(tmp_path, again, WITH_INDEX) == ["n1:gpu0", "n1:gpu1"]


def test_host_names_in_the_log_keep_gpus_apart(tmp_path: Path) -> None:
    header = "timestamp, hostname, name, utilization.gpu [%], memory.used [MiB]"
    rows = [
        f"{stamp(5_000 * n + 700 * h)}, h{h}, {(L4, A100)[h]}, 5 %, {60_000 * h} MiB" for n in range(60) for h in (0, 1)
    ]
    assert read(tmp_path, rows, header) == ["h0:gpu0", "h1:gpu0"]
