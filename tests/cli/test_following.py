"""Does `import --follow` end with Ctrl-C whatever it was doing?"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gpuledger.cli.app import run
from gpuledger.lake.importing import ImportResult


class _Interrupts:
    """Something whose clearing away is interrupted: Python drops what is raised there."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_loses_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds: list[int] = []

    def pull(*_given: object, **_named: object) -> ImportResult:
        rounds.append(len(rounds))
        assert len(rounds) < 5, "goes on"
        if len(rounds) == 2:
            _Interrupts()
        return ImportResult(files=1, rows_added=1)

    monkeypatch.setattr("gpuledger.lake.pulling.pull", pull)
    before = signal.getsignal(signal.SIGINT)
    code = run(["import", "prometheus://127.0.0.1:9", "--lake", str(tmp_path / "lake"), "--follow", "--poll", "1s"])
    assert code == 0
    assert len(rounds) == 2
    assert "stopped; the same command goes on from here" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
