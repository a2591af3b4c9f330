"""Do importers, a compaction and readers get along at one lake while some of them are killed?

Every importer starts again until its file is in. Readers must never see a row twice or half a state: at any moment a
statement counts as many samples as whole files were imported. At the end the figures equal those of one import after
the other.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from crash import truth
from crash.drill import Verdict, add_up
from crash.faults import LAKE
from crash.operations import gpuledger, must
from crash.processes import KILLED, Commands, Job

IMPORTERS = 3
FILES = 6
FOLD = ("tidy", "--fold-older-than", "1d", "--keep-samples", "-q")
READERS = (
    ("analyze", "--json"),
    ("audit", "--json"),
    ("analyze", "--since", "2026-01-20T05:30Z", "--until", "2026-01-21T17:45Z", "--json"),
)
SAMPLES = ["python", str(Path(__file__).with_name("read_samples.py")), LAKE]
HUNG_S = 300.0


@dataclass
class _Post:
    """One place at the lake: the commands it runs one after the other, and the one that runs now."""

    name: str
    left: list[list[str]]
    job: Job | None = None
    now: list[str] = field(default_factory=list)
    dies_at: float = float("inf")


def split(data: Path, folder: Path) -> list[Path]:
    """The rows of the fleet in files that each have some of every day; neighbors share rows."""
    found: dict[str, list[str]] = {}
    for file in sorted([*(data / "fleet").glob("*.csv"), *(data / "late").glob("*.csv")]):
        header, *rows = file.read_text().splitlines(keepends=True)
        found.setdefault(header, []).extend(rows)
    folder.mkdir()
    out = []
    ((header, rows),) = found.items()
    for number in range(FILES):
        some = [row for i, row in enumerate(rows) if i % FILES == number or (i % FILES == number + 1 and i % 4 == 0)]
        out.append(folder / f"{number}.csv")
        out[-1].write_text("".join([header, *some]))
    return out


def whole_states(files: list[Path]) -> set[int]:
    """How many rows a lake can hold that has the first file, and each of the others whole or not at all."""
    rows = [set(f.read_text().splitlines()[1:]) for f in files]
    some = [itertools.combinations(rows[1:], n) for n in range(len(files))]
    return {len(rows[0].union(*chosen)) for chosen in itertools.chain.from_iterable(some)}


def one_after_the_other(commands: Commands, folder: Path, files: list[Path]) -> tuple[truth.Held, str]:
    """What all files make when they are imported one by one."""
    folder.mkdir()
    for file in files:
        must(commands, folder, "import", file, "-q")
    must(commands, folder, *FOLD)
    done = commands.run(gpuledger("analyze", "--json"), folder)
    return truth.held(folder / LAKE), done.stdout


def all_at_once(commands: Commands, folder: Path, data: Path, chance: random.Random, kill_share: float) -> Verdict:
    """One round: all files imported by several importers, with compaction and readers all the while."""
    folder.mkdir()
    files = split(data, folder / "files")
    wanted, figures = one_after_the_other(commands, folder / "serial", files)
    place = folder / "place"
    place.mkdir()
    must(commands, place, "import", files[0], "-q")
    queues = [[gpuledger("import", f, "-q") for f in files[1:][n::IMPORTERS]] for n in range(IMPORTERS)]
    importers = [_Post(f"importer {n}", queue) for n, queue in enumerate(queues)]
    others = [_Post("compaction", [gpuledger(*FOLD)]), *(_Post(" ".join(r), [gpuledger(*r)]) for r in READERS)]
    others += [_Post("samples", [SAMPLES])]
    verdict, counts = Verdict(), whole_states(files)
    _work(commands, place, importers, others, verdict, chance, kill_share, counts)
    must(commands, place, *FOLD)
    found = truth.held(place / LAKE)
    verdict.lost += found.lost(wanted)
    verdict.doubled += truth.doubled_rows(found)
    done = commands.run(gpuledger("analyze", "--json"), place)
    if done.stdout != figures:
        verdict.inconsistent.append("the figures differ from those of one import after the other")
    add_up(verdict, place / LAKE)
    verdict.left_behind = truth.left_behind(place / LAKE)
    shutil.rmtree(folder)
    return verdict


def _work(
    commands: Commands, place: Path, importers: list[_Post], others: list[_Post], verdict: Verdict,
    chance: random.Random, kill_share: float, counts: set[int],
) -> None:  # fmt: skip
    """Keep all places busy until the importers are done."""
    over = time.monotonic() + HUNG_S
    while any(post.left or post.job for post in importers):
        assert time.monotonic() < over, "the importers hang"
        for post in (*importers, *others):
            if post.job is None and post.left:
                post.now = post.left.pop(0)
                post.job = commands.start(post.now, place)
                dies = chance.random() < kill_share
                post.dies_at = time.monotonic() + chance.uniform(0.0, 0.5) if dies else float("inf")
            elif post.job is not None and post.job.alive() and time.monotonic() > post.dies_at:
                post.job.kill()
            elif post.job is not None and not post.job.alive():
                _ended(post, verdict, counts, again=post in others)
        time.sleep(0.005)
    for post in others:
        if post.job is not None:
            _ended(post, verdict, counts, again=False)


def _ended(post: _Post, verdict: Verdict, counts: set[int], *, again: bool) -> None:
    assert post.job is not None
    done = post.job.wait()
    if done.code == KILLED:
        verdict.kills += 1
        post.left.insert(0, post.now)
    elif verdict.heard(post.name, done, 0):
        if "--json" in post.now and not json.loads(done.stdout):
            verdict.inconsistent.append(f"{post.name}: an empty answer")
        if post.now == SAMPLES and int(done.stdout) not in counts:
            verdict.inconsistent.append(f"{post.name}: {int(done.stdout)} rows are not those of whole files")
        if again:
            post.left.append(post.now)
    post.job = None
