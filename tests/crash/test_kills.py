"""Is nothing lost, doubled or half-done when commands are killed? A few kills of each; make test-crash has many."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from crash.drill import Drill
from crash.faults import CHANGES, LAKE, READ_ONLY, Call, kill_at
from crash.operations import Operation, gpuledger, import_more, must, operations
from crash.processes import KILLED, Commands
from crash.rounds import Tally, failures, kills, open_drill
from crash.together import all_at_once

KILLS = int(os.environ.get("GPULEDGER_CRASH_KILLS", "2"))
FAILURES = int(os.environ.get("GPULEDGER_CRASH_FAILURES", "2"))

QUICK = ("import, more", "post", "record, command", "tidy, drop")


@pytest.mark.parametrize("name", QUICK)
def test_a_kill_or_a_failing_disk_loses_nothing_and_running_it_again_finishes(
    exact_commands: Commands, files: Path, tmp_path: Path, name: str
) -> None:
    chance, tally = random.Random(name), Tally(name)
    drill = open_drill(exact_commands, operations()[name], tmp_path / "rounds", files)
    for kind, go in (*kills(drill, KILLS, chance, exact=True), *failures(drill, FAILURES, chance)):
        tally.add(kind, go())
    assert tally.faults == []
    assert tally.kills > 0


def test_importers_compaction_and_readers_at_once(real_commands: Commands, files: Path, tmp_path: Path) -> None:
    verdict = all_at_once(real_commands, tmp_path / "together", files, random.Random(4), kill_share=0.15)
    assert verdict.good, verdict


def test_readers_work_on_a_lake_that_may_only_be_read(exact_commands: Commands, files: Path, tmp_path: Path) -> None:
    must(exact_commands, tmp_path, "import", files / "fleet", "-q")
    must(exact_commands, tmp_path, "analyze", "-q")
    for command in ("analyze", "audit"):
        wanted = exact_commands.run(gpuledger(command, "--json"), tmp_path)
        got = exact_commands.run(gpuledger(command, "--json"), tmp_path, READ_ONLY)
        assert (got.code, got.stdout) == (0, wanted.stdout), got
    refused = exact_commands.run(gpuledger("import", files / "more", "-q"), tmp_path, READ_ONLY)
    assert refused.code == 2
    assert "read-only" in refused.stderr.lower()


def test_a_kill_while_clearing_up_after_a_kill(exact_commands: Commands, files: Path, tmp_path: Path) -> None:
    """The second attempt of a first import is killed at each call of its own clearing."""
    drill = Drill(exact_commands, operations()["import, first"], tmp_path / "rounds", files)
    last = kill_at(drill.calls(Call.RENAME), Call.RENAME)
    for at in range(1, 5):
        verdict = drill.killed_at(last, kill_at(at, Call.REMOVE))
        assert verdict.good, verdict
        assert verdict.kills == 2


def test_the_harness_finds_a_manifest_that_is_replaced_in_place(
    exact_commands: Commands, files: Path, tmp_path: Path
) -> None:
    def argv(data: Path) -> list[str]:
        script = Path(__file__).with_name("careless_import.py")
        return ["python", str(script), "import", str(data / "more"), "--lake", LAKE, "-q"]

    careless = Operation("careless import", argv, import_more.prepare)
    drill = Drill(exact_commands, careless, tmp_path / "rounds", files)
    replacing = range(max(1, drill.calls(CHANGES) - 16), drill.calls(CHANGES))
    assert any(drill.killed_at(kill_at(call)).inconsistent for call in replacing)


def test_a_kill_hits_the_call_it_is_meant_for(exact_commands: Commands, files: Path, tmp_path: Path) -> None:
    argv = operations()["import, first"].argv(files)
    for fresh in (False, True):
        place = tmp_path / str(fresh)
        place.mkdir()
        done = exact_commands.run(argv, place, kill_at(2, Call.RENAME), fresh=fresh)
        assert done.code == KILLED
        assert done.happened is not None
        assert done.happened.hit.startswith("rename to crash-lake/samples/")
