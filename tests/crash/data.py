"""Which telemetry do the operations work on? A few GPUs over a few days, small enough for thousands of rounds."""

from __future__ import annotations

from pathlib import Path

from crash.processes import Commands

START = "2026-01-20"
_BAD = 5


def make(commands: Commands, folder: Path) -> Path:
    """Write the files; return their folder.

    fleet: two days; more: rows of the second day again, some of them invalid, and a third day; late: other GPUs on the
    second day.
    """
    data = folder / "data"
    data.mkdir()
    synth = ["gpuledger", "synth", "--step", "600s", "--by-day", "--format", "csv", "-q", "--start"]
    for argv in (
        [*synth, START, "--gpus", "3", "--days", "3", "fleet"],
        [*synth, "2026-01-21", "--gpus", "2", "--days", "1", "--seed", "8", "late"],
    ):
        done = commands.run(argv, data)
        assert done.code == 0, str(done)
    (data / "more").mkdir()
    (data / "fleet" / "2026-01-22.csv").rename(data / "more" / "2026-01-22.csv")
    header, *rows = (data / "fleet" / "2026-01-21.csv").read_text().splitlines(keepends=True)
    bad = [row.replace("01/21/26", "01/41/26") for row in rows[:_BAD]]
    (data / "more" / "again.csv").write_text("".join([header, *bad, *rows[len(rows) // 2 :]]))
    hosts = sorted({row.split(",")[2] for row in rows})
    for name, days in (("first-jobs", (20,)), ("jobs", (20, 21))):
        table = [
            f"{name}-{i}-{d},ann,{h},2026-01-{d}T03:00Z,2026-01-{d}T09:00Z" for d in days for i, h in enumerate(hosts)
        ]
        (data / f"{name}.csv").write_text("\n".join(["job,user,host,start,end", *table]) + "\n")
    return data
