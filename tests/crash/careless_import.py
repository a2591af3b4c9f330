"""An import that replaces its manifest in place, as careless programs do. The harness has to find it out."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuledger.cli import main
from gpuledger.lake.stores import folder


def in_place(target: Path, content: bytes) -> None:
    """Write half of a file, then the rest."""
    with target.open("wb", buffering=0) as file:
        file.write(content[: len(content) // 2])
        file.write(content[len(content) // 2 :])


folder.write_atomically = in_place
sys.exit(main())
