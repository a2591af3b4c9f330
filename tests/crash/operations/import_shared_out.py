"""An import shared out over processes: a kill ends all of them at once."""

from __future__ import annotations

from pathlib import Path

from crash.faults import LAKE
from crash.operations import Operation, import_more

SCRIPT = Path(__file__).parents[1] / "import_shared_out.py"


def argv(data: Path) -> list[str]:
    return ["python", str(SCRIPT), LAKE, str(data / "more")]


operation = Operation("import, shared out", argv, import_more.prepare, costly=True)
