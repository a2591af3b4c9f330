"""Checks against files that are not part of the project: collected only when GPULEDGER_OUTSIDE names their folder.

`make test-outside OUTSIDE=folder` runs them. Without the folder they are not collected, so nothing is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = os.environ.get("GPULEDGER_OUTSIDE", "")
collect_ignore_glob = [] if FOLDER else ["test_*.py"]


@pytest.fixture(scope="session")
def outside() -> Path:
    return Path(FOLDER).resolve()
