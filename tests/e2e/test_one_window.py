"""Do analyze and audit stand on the same samples, whatever window and owner they are asked for?"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gpuledger.cli.app import run
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.times import length_ms

GPUS, STEP_S = 8, 60
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Eight GPUs on 2026-01-20 from midnight to six, a sample a minute: the file and its lake."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(FleetSpec(gpus=GPUS, days=0.25), folder / "fleet.parquet")
    assert run(["import", str(folder / "fleet.parquet"), "--lake", str(folder / "lake")]) == 0
    return folder / "fleet.parquet", folder / "lake"


@pytest.fixture
def ask(fleet: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> Ask:
    def made(command: str, *args: str) -> dict[str, Any]:
        price = ("--price", "2") if command == "audit" else ()
        capsys.readouterr()
        asked = [command, *args[:1]] if command == "ask" else [command]
        more = args[1:] if command == "ask" else args
        assert run([*asked, "--lake", str(fleet[1]), "--json", *price, *more]) == 0
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    return made


def observed_h(audit: dict[str, Any]) -> float:
    return sum(hours for bucket, hours in audit["bucket_h"].items() if bucket != "unobserved")


WINDOWS = {
    "within hours": ("--since", "2026-01-20T00:30", "--until", "2026-01-20T01:30"),
    "between samples": ("--since", "2026-01-20T00:30:17", "--until", "2026-01-20T01:29:41"),
    "within one hour": ("--since", "2026-01-20T02:10", "--until", "2026-01-20T02:20"),
    "whole hours": ("--since", "2026-01-20T01:00", "--until", "2026-01-20T03:00"),
    "last": ("--last", "90m"),
    "everything": (),
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_both_see_the_same_hours_and_samples(ask: Ask, window: tuple[str, ...]) -> None:
    analyzed, audited = ask("analyze", *window), ask("audit", *window)
    assert analyzed["samples"] == audited["samples"] > 0
    assert analyzed["fleet"]["observed_h"] == pytest.approx(observed_h(audited))
    assert (analyzed["start_ms"], analyzed["end_ms"]) == (audited["start_ms"], audited["end_ms"])


def test_half_past_to_half_past_is_an_hour_of_each_gpu(ask: Ask) -> None:
    for said in (ask("analyze", *WINDOWS["within hours"]), ask("audit", *WINDOWS["within hours"])):
        assert said["samples"] == GPUS * 3600 // STEP_S
    assert observed_h(ask("audit", *WINDOWS["within hours"])) == pytest.approx(GPUS)


def test_adjoining_windows_add_up(ask: Ask) -> None:
    """Three parts of the hours, cut between samples: each millisecond and each sample is in one of them."""
    cuts = ("2026-01-20T00:00", "2026-01-20T00:30:17", "2026-01-20T01:29:41", "2026-01-20T03:00")
    whole = ask("audit", "--since", cuts[0], "--until", cuts[-1])
    parts = [ask("audit", "--since", a, "--until", b) for a, b in pairwise(cuts)]
    assert sum(p["samples"] for p in parts) == whole["samples"]
    assert sum(p["paid_h"] for p in parts) == pytest.approx(whole["paid_h"])
    assert sum(map(observed_h, parts)) == pytest.approx(observed_h(whole))


def test_a_namespace_is_judged_by_its_own_samples(ask: Ask, fleet: tuple[Path, Path]) -> None:
    names = pq.read_table(fleet[0], columns=["NAMESPACE"])["NAMESPACE"]
    counts = {row["values"]: row["counts"] for row in pc.value_counts(names).to_pylist()}
    assert len(counts) > 1
    for name, samples in counts.items():
        analyzed, audited = ask("analyze", "--namespace", name), ask("audit", "--namespace", name)
        assert analyzed["samples"] == audited["samples"] == samples
        assert [row["name"] for row in audited["by_namespace"]] == [row["name"] for row in analyzed["by_namespace"]]
        assert analyzed["fleet"]["observed_h"] == pytest.approx(observed_h(audited))
    part = ask("audit", "--namespace", name, *WINDOWS["within hours"])
    assert part["samples"] == ask("analyze", "--namespace", name, *WINDOWS["within hours"])["samples"] < samples


def ends(said: dict[str, Any]) -> tuple[str, str]:
    return said["start_utc"], said["end_utc"]


def test_the_last_hours_are_the_same_in_every_command(ask: Ask) -> None:
    """Counted back from where the newest sample's time ends: six o'clock, not a minute before."""
    expected = ("2026-01-20T05:00:00Z", "2026-01-20T06:00:00Z")
    assert ends(ask("audit", "--last", "1h")) == ends(ask("analyze", "--last", "1h")) == expected
    changed = ask("ask", "change", "--last", "1h", "--price", "2")
    assert ends(changed["now"]) == expected
    top = ask("top", "--last", "1h", "--price", "2")
    assert (top["start_utc"], top["at_utc"]) == expected
    watched = ask("watch", "--dry-run", "--price", "2")["window"]
    length = dt.timedelta(milliseconds=length_ms(load_alerts().window))
    assert watched["end_utc"] == expected[1]
    assert dt.datetime.fromisoformat(watched["end_utc"]) - dt.datetime.fromisoformat(watched["start_utc"]) == length


def test_the_window_is_shown(fleet: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    lake = ["--lake", str(fleet[1])]
    for command, words in (
        (["ask", "change", "--last", "1h"], "2026-01-20 05:00 to 2026-01-20 06:00 UTC"),
        (["top", "--once", "--last", "1h"], "average of 60 min to 2026-01-20 06:00 UTC"),
        (["watch", "--dry-run"], "to 2026-01-20 06:00 UTC"),
    ):
        capsys.readouterr()
        assert run([*command, *lake]) == 0
        assert words in " ".join(capsys.readouterr().out.split()), command
