"""Does the score of injected faults run, and does a large fault count as found?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCORE = Path(__file__).parents[2] / "benchmarks" / "anomalies" / "score.py"


def test_one_world_and_a_clean_one():
    asked = ["--worlds", "1", "--clean", "1", "--days", "4", "--first-seed", "1", "--json"]
    done = subprocess.run([sys.executable, str(SCORE), *asked], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["cases"] == 4
    assert found["recall"] >= 0.5
    assert found["clean_wrong_gpus"] == 0
    assert sum(row["cases"] for row in found["by_fault"]) == 4
