"""Does an audit stand while others post, on a folder it may only read, and where files of the ledger are missing?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fleets import (
    CLOCK,
    DAY,
    ENGINE,
    H100,
    MEMORY,
    MINUTE,
    POWER,
    TENSOR,
    UTIL,
    analyze,
    audit,
    lake_of,
    samples,
    write,
)  # fmt: skip

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cli.app import run
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.tidying import Ages, tidy_lake
from gpuledger.units import MS_PER_DAY

BAD_INPUT = 2
WORK = {UTIL: 90, POWER: 600, ENGINE: 0.9, TENSOR: 0.5, CLOCK: 1700, MEMORY: 9000, "namespace": "a"}
AUDITS = 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of two GPUs, posted."""
    rows = [r for gpu in ("GPU-a", "GPU-b") for r in samples(range(0, 3 * 1440, 10), gpu, H100, **WORK)]
    return lake_of(tmp_path_factory.mktemp("made"), rows).root


@pytest.fixture
def lake(tmp_path: Path, made: Path) -> Lake:
    """A copy of it, to change and to break."""
    return Lake(shutil.copytree(made, tmp_path / "lake"))


POSTS_ON = """
    import sys
    from pathlib import Path
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.lake.importing import import_files
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.engine import post_lake

    folder, lake, posted = Path(sys.argv[1]), Lake(sys.argv[2]), 0
    for part in sorted(folder.glob("more-*.csv")):
        if (folder / "stop").exists():
            break
        import_files(lake, [part])
        post_lake(lake, load_thresholds())
        posted += 1
        (folder / "posted.new").write_text(str(posted))
        (folder / "posted.new").replace(folder / "posted")
"""


@pytest.mark.scale
def test_an_audit_while_another_process_posts(tmp_path: Path, lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    for i in range(400):  # a late sample in each day, part by part: every posting replaces every day's files
        late = [m for day in range(3) for m in (day * 1440 + 1 + i % 9 + i // 9 * 10,)]
        write(tmp_path / f"more-{i:03d}.csv", samples(late, "GPU-a", H100, **WORK))
    script = textwrap.dedent(POSTS_ON)
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(lake.root)]) as other:
        started = tmp_path / "posted"
        for _ in range(600):
            if started.exists() or other.poll() is not None:
                break
            time.sleep(0.05)
        codes, paid, before = [], set(), started.read_text()
        for _ in range(AUDITS):
            codes.append(run(["audit", "--lake", str(lake.root), "--price", "1", "--json"]))
            paid.add(json.loads(capfd.readouterr().out)["paid_usd"] if codes[-1] == 0 else None)
        running, after = other.poll() is None, started.read_text()
        (tmp_path / "stop").touch()
    assert codes == [0] * AUDITS
    assert running, "the other process ended before the audits did, so nothing was tried"
    assert int(after) > int(before)
    # Late samples lie within the three days: what is paid does not change.
    assert len(paid) == 1


def test_a_reader_sees_the_books_as_they_were_when_it_opened_them(tmp_path: Path, lake: Lake) -> None:
    def observed(books: Books) -> int:
        return sum(int(rows["observed_ms"].sum()) for _, rows in books.blocks((), ("observed_ms",)))

    reader, before = Books(lake, Scope()), observed(Books(lake, Scope()))
    import_files(lake, [write(tmp_path / "more.csv", samples(range(0, 4320, 10), "GPU-c", H100, **WORK))])
    post_lake(lake, load_thresholds())
    assert observed(reader) == before
    assert observed(Books(lake, Scope())) > before


def told(capfd: pytest.CaptureFixture[str], lake: Lake, command: str) -> tuple[int, str]:
    """The exit code, and all that was said."""
    capfd.readouterr()
    code = run([command, "--lake", str(lake.root), *(["--price", "1"] if command == "audit" else [])])
    return code, " ".join(" ".join(capfd.readouterr()).split())


@pytest.mark.parametrize(("command", "table"), [("audit", "days"), ("analyze", "days"), ("analyze", "gpu-hours")])
def test_a_missing_file_of_the_ledger_is_named_with_the_next_step(
    lake: Lake, capfd: pytest.CaptureFixture[str], command: str, table: str
) -> None:
    for file in lake.ledger_dir.glob(f"*/*.{table}.parquet"):
        file.unlink()
    code, said = told(capfd, lake, command)
    assert code == BAD_INPUT
    assert "ledger" in said
    assert "delete the ledger folder: it is made again" in said


def drop_samples(lake: Lake) -> None:
    """Fold all days and let the samples of the first go."""
    now = DAY + 4 * MS_PER_DAY
    done = tidy_lake(lake, load_thresholds(), Ages(now, MS_PER_DAY, 2 * MS_PER_DAY + MINUTE))
    assert done.drop.days


def _no_days(lake: Lake) -> None:
    for file in lake.ledger_dir.glob("*/*.parquet"):
        file.unlink()


def _broken(lake: Lake) -> None:
    (lake.ledger_dir / "manifest.json").write_text("{")


def _lost(lake: Lake) -> None:
    (lake.ledger_dir / "manifest.json").unlink()


@pytest.mark.parametrize("command", ["audit", "analyze"])
@pytest.mark.parametrize("harm", [_no_days, _broken, _lost])
def test_nobody_is_told_to_delete_the_only_copy(
    lake: Lake, capfd: pytest.CaptureFixture[str], command: str, harm: object
) -> None:
    drop_samples(lake)
    harm(lake)  # type: ignore[operator]
    code, said = told(capfd, lake, command)
    assert code == BAD_INPUT
    assert "delete the ledger" not in said
    assert "restore the ledger folder from a backup" in said


def test_a_ledger_that_can_be_made_again_is(lake: Lake) -> None:
    before = audit(lake)
    _lost(lake)
    post_lake(lake, load_thresholds())
    assert audit(lake) == before


def _seen(root: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder with its size and when it was changed."""
    found = {str(p.relative_to(root)): p.stat() for p in (root, *root.rglob("*"))}
    return {name: (s.st_size, s.st_mtime_ns) for name, s in found.items()}


def test_a_posted_lake_is_read_without_writing(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    (lake.root / "lock").unlink()
    modes = {p: p.stat().st_mode for p in (lake.root, *lake.root.rglob("*"))}
    before = _seen(lake.root)
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        codes = [told(capfd, lake, command)[0] for command in ("audit", "analyze")]
        after = _seen(lake.root)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert codes == [0, 0]
    assert after == before


def test_posting_again_waits_for_nobody_where_nothing_is_stale(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_self: Lake) -> None:
        raise AssertionError("took the lock")

    monkeypatch.setattr(Lake, "locked", refused)
    done = post_lake(lake, load_thresholds())
    assert (done.days_clean, done.days_posted) == (3, [])


def test_what_is_posted_is_what_is_read(lake: Lake, tmp_path: Path) -> None:
    """A late part makes its day stale, and the day before it."""
    days = len(Ledger(lake).manifest().days)
    more = write(tmp_path / "more.csv", samples([1441], "GPU-c", H100, **WORK))
    import_files(lake, [more])
    assert analyze(lake)["gpus"] == 2
    done = post_lake(lake, load_thresholds())
    assert done.days_posted == ["2026-03-02", "2026-03-03"]
    assert (done.days_clean, analyze(lake)["gpus"]) == (days - 2, 3)
