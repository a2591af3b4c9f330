"""How do the commands stand up to a long run of kills? make test-crash KILLS=1000"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from crash import data
from crash.faults import NO_COMPILER
from crash.operations import operations
from crash.processes import Commands, commands
from crash.rounds import Round, Tally, failures, kills, open_drill, table
from crash.together import all_at_once

FIGURES = ("<!-- figures -->", "<!-- end of figures -->")
AT_ONCE = "all at once"
MOST_SHOWN = 3
# Operations that start many processes have this many times fewer rounds.
COSTLY = 5


def main() -> int:
    """Run rounds, show progress, print the table; 1 if anything was found."""
    asked = _asked()
    chosen = [o for o in operations().values() if _wanted(o.name, asked)]
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-crash-rounds-"))
    tallies: list[Tally] = []
    try:
        with commands() as made:
            if made.library is None:
                sys.stderr.write(f"{NO_COMPILER}\n")
                return 2
            files, shares = data.make(made, folder), sum(1 / (COSTLY if o.costly else 1) for o in chosen)
            for number, operation in enumerate(chosen):
                chance = random.Random(f"{asked.seed} {operation.name}")
                drill = open_drill(made, operation, folder / str(number), files)
                each = 1 / (COSTLY if operation.costly else 1)
                share, few = math.ceil(asked.kills * each / shares), math.ceil(asked.failures * each)
                killed, failed = Tally(operation.name), Tally(f"{operation.name}: failing calls")
                tallies += [killed, failed]
                rounds = kills(drill, share, chance, exact=True, so_far=lambda tally=killed: tally.kills)
                _run(killed, rounds, share)
                _run(failed, failures(drill, few, chance), few)
                shutil.rmtree(folder / str(number))
            if _wanted(AT_ONCE, asked):
                at_once = Tally(AT_ONCE)
                tallies.append(at_once)
                _run(at_once, _together(made, folder, files, asked), asked.together)
            cpu_s = made.cpu_s()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures = f"{table(tallies)}\n\nSeed {asked.seed}; {cpu_s:.0f} s of CPU."
    _say(f"\n{figures}")
    if asked.update:
        _update(asked.update, figures)
    faults = [fault for tally in tallies for fault in tally.faults]
    return int(bool(faults))


def _wanted(name: str, asked: argparse.Namespace) -> bool:
    return not asked.only or any(part in name for part in asked.only)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many kills, over all operations")
    parser.add_argument("--failures", type=int, default=10, help="rounds with failing calls, for each operation")
    parser.add_argument("--seed", type=int, default=1, help="another seed kills at other moments")
    parser.add_argument("--together", type=int, default=1, help="rounds of importers, compaction and readers at once")
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="operations with this in their name; repeatable"
    )
    parser.add_argument("--update", type=Path, metavar="FILE", help="put the table between the marks of this file")
    return parser.parse_args()


def _update(file: Path, figures: str) -> None:
    before, _, rest = file.read_text(encoding="utf-8").partition(FIGURES[0])
    _, _, after = rest.partition(FIGURES[1])
    file.write_text(f"{before}{FIGURES[0]}\n{figures}\n{FIGURES[1]}{after}", encoding="utf-8")


def _together(made: Commands, folder: Path, files: Path, asked: argparse.Namespace) -> Iterator[tuple[str, Round]]:
    for number in range(asked.together):
        chance, place = random.Random(f"{asked.seed} together {number}"), folder / f"together-{number}"
        yield "at once", lambda chance=chance, place=place: all_at_once(made, place, files, chance, kill_share=0.3)


def _run(tally: Tally, rounds: Iterator[tuple[str, Round]], expected: int) -> None:
    begun = shown = time.monotonic()
    for kind, go in rounds:
        known = len(tally.faults)
        tally.add(kind, go())
        for fault in tally.faults[known:][:MOST_SHOWN]:
            _say(f"  {fault}")
        if time.monotonic() - shown > 10 or tally.rounds == 1 or tally.rounds == expected:
            shown = time.monotonic()
            wrong = f", {len(tally.faults)} with faults" if tally.faults else ""
            took = f"{shown - begun:.0f} s"
            _say(f"{tally.name}: {tally.rounds} of {expected} rounds, {tally.kills} kills{wrong}, {took}")


if __name__ == "__main__":
    sys.exit(main())
