"""Do alerts arrive exactly once while the watcher and the receiver are killed at random?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "alerts_exactly_once.py"


def test_nothing_is_lost_and_nothing_is_doubled():
    args = [sys.executable, SCRIPT, "--events", "300", "--seed", "3", "--limit-s", "240", "--json"]
    ended = subprocess.run(
        [*map(str, args), "--kill-s", "0.02", "0.8", "--kills", "12"], capture_output=True, text=True, check=False
    )
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert ended.returncode == 0, found
    wrong = {name: n for name, n in found.items() if name.endswith(("lost", "doubled", "unexpected", "twice"))}
    assert set(wrong.values()) == {0}, found
    assert (found["events"], found["requests"] >= 300) == (300, True)
    killed = sum(found.get(name, 0) for name in ("watcher killed", "receiver killed", "receiver died"))
    assert killed > 0, "nothing was killed: the test shows nothing"
