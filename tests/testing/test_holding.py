"""Do real processes hold a fake GPU for as long as they run?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from gpuledger.testing.holding import Holding, hold


def test_a_process_holds_until_it_lets_go(tmp_path: Path) -> None:
    file = hold(tmp_path, 1 << 30)
    assert Holding(tmp_path)() == {os.getpid(): 1 << 30}
    file.unlink()
    assert Holding(tmp_path)() == {}


def test_a_process_that_has_ended_holds_nothing_before_its_code_is_collected(tmp_path: Path) -> None:
    code = f"from gpuledger.testing.holding import hold; import sys; hold({str(tmp_path)!r}); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
    assert Holding(tmp_path)() == {process.pid: None}
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Holding(tmp_path)() == {}
    process.communicate()
