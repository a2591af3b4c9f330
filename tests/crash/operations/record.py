"""A recording: small parts are added every two seconds, and 32 of them become one."""

from __future__ import annotations

from pathlib import Path

from crash.faults import LAKE
from crash.operations import Operation

TESTS = Path(__file__).parents[2]
REPLAY = f"replay:{TESTS / 'data' / 'h200_replay.csv.gz'}"


def argv(_data: Path) -> list[str]:
    return ["python", str(TESTS / "crash" / "record_live.py"), LAKE, REPLAY]


operation = Operation("record", argv, grows=True)
