"""Does `gpuledger record` say what it did, as words and as JSON?"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from gpuledger.lake.layout import Lake

DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"
REPLAY = f"replay:{DATA}"


def test_alone_for_a_while(cli) -> None:
    begun = time.monotonic()
    ended = cli(
        "record", "--lake", "lake", "--duration", "0.5", "--device", REPLAY, "--label", "cluster=ares", "--json"
    )
    assert ended.code == 0
    found = ended.json()
    assert found["recorded"] is True
    assert found["rows"] == sum(p.rows for p in Lake("lake").manifest().parts)
    assert time.monotonic() - begun >= 0.5
    assert found["seconds"] <= time.monotonic() - begun
    # One reading at once and then ten a second; those that the machine was too slow for are counted.
    assert 1 <= found["rows"] <= found["ticks"]
    assert found["ticks"] + found["skipped_ticks"] <= 10 * found["seconds"] + 2
    assert found["labels"]["cluster"] == "ares"
    assert found["devices"][0]["gpu_model"] == "NVIDIA H200"
    assert found["devices"][0]["missing"]["xid"]
    assert ended.err == ""


def test_alone_in_words(cli) -> None:
    ended = cli("record", "--lake", "lake", "--duration", "0.3", "--device", REPLAY)
    assert ended.code == 0
    assert re.search(r"recorded (1 sample|\d+ samples) of 1 device in", ended.out)
    assert "% of a core" in ended.out
    assert "unknown here" in ended.out
    assert "recording 1 device at 10 Hz for 0.3 s" in ended.err


def test_around_a_command_stdout_is_the_commands(cli) -> None:
    code = "import time; print('mine'); time.sleep(0.3); raise SystemExit(4)"
    ended = cli("record", "--lake", "lake", "--device", REPLAY, "--", sys.executable, "-c", code)
    assert ended.code == 4
    assert ended.out == "mine\n"
    assert "gpuledger: recorded" in ended.err
    quiet = cli("record", "-q", "--lake", "lake", "--device", REPLAY, "--", sys.executable, "-c", "print('mine')")
    assert (quiet.code, quiet.out, quiet.err) == (0, "mine\n", "")


def test_around_a_command_json_has_its_code(cli) -> None:
    ended = cli(
        "record", "--json", "--lake", "lake", "--device", REPLAY, "--", sys.executable, "-c", "raise SystemExit(6)"
    )
    assert ended.code == 6
    assert ended.json()["exit_code"] == 6


def test_options_of_the_command_are_the_commands(cli) -> None:
    ended = cli(
        "record",
        "--lake",
        "lake",
        "--device",
        REPLAY,
        sys.executable,
        "-c",
        "import sys; print(sys.argv[1:])",
        "--hz",
        "x",
    )
    assert ended.out == "['--hz', 'x']\n"


@pytest.mark.parametrize("wrong", ["nan", "inf", "0", "-1"])
def test_a_duration_that_is_no_length_of_time_is_refused(cli, wrong: str) -> None:
    ended = cli("record", "--lake", "lake", "--duration", wrong, "--device", REPLAY)
    assert ended.code == 2
    assert f"cannot record for {wrong} s" in ended.err
    assert "seconds above 0" in ended.err
    assert not Path("lake").exists()


def test_bad_input(cli) -> None:
    assert cli("record", "--duration", "-1", "--device", REPLAY).code == 2
    assert cli("record", "--label", "oops", "--duration", "1", "--device", REPLAY).code == 2
    broken = cli("record", "--label", "namespace=\udce9", "--duration", "1", "--device", REPLAY)
    assert broken.code == 2
    assert "is not UTF-8 text" in broken.err
    assert cli("record", "--device", "nvlm", "--duration", "1").code == 2
    assert "did you mean" in cli("record", "--device", "nvlm", "--duration", "1").err
    around = cli("record", "--label", "oops", "--device", REPLAY, "--", "true")
    assert around.code == 125
    assert "not started" in around.err
    assert cli("record", "--duration", "1", "--device", REPLAY, "--", "true").code == 125
    gone = cli("record", "--json", "--device", REPLAY, "--", "no-such-command-here")
    assert gone.code == 127
    said = gone.json()
    assert said.pop("problem").startswith("no command is called 'no-such-command-here'\n  next: check its spelling")
    assert said == {"exit_code": 127, "run_id": None, "recorded": False}
