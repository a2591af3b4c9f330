"""Does every command give the same answer from a bucket as from a folder?"""

import json
from pathlib import Path

import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.lake.layout import Lake
from gpuledger.recording.runs import read_runs
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

pytestmark = pytest.mark.parametrize("s3", ["s3_process", "gcs_process"], indirect=True, ids=["s3", "gs"])
REPLAY = Path(__file__).parents[2] / "data" / "h200_replay.csv.gz"
# What differs from run to run, wherever the lake lies.
_NOW = {"now_ms", "generated_at", "as_of", "made_at", "file", "files", "rejects_file"}
SACCT = """\
JobID|JobName|User|Account|State|Start|End|NodeList|AllocTRES
101|train|ann|physics|COMPLETED|2026-01-20T00:00:00|2026-01-20T02:00:00|gpu-node-[01-02]|cpu=64,gres/gpu=4
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Three GPUs on three days, one file a day; one row cannot be used."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(FleetSpec(gpus=3, days=3, step_s=900), folder / "fleet.csv", "csv")
    (folder / "jobs.txt").write_text(SACCT)
    lines = (folder / "fleet.csv").read_text().splitlines(keepends=True)
    (folder / "first.csv").write_text("".join(lines[: len(lines) // 2]))
    (folder / "rest.csv").write_text("".join([lines[0], *lines[len(lines) // 2 :], lines[-1].replace("2026", "x026")]))
    (folder / "rates.toml").write_text("")
    return folder


STEPS = [
    ["import", "{fleet}/first.csv", "--json"],
    ["analyze", "--json"],
    ["import", "{fleet}/rest.csv", "--json"],
    ["audit", "--json"],
    ["jobs", "{fleet}/jobs.txt", "--tz", "UTC", "--json"],
    ["audit", "--by", "user", "--json"],
    ["analyze", "--last", "30h", "--json"],
    ["ask", "change", "--last", "1d", "--json"],
    ["anomalies", "--json"],
    ["export", "metrics"],
    ["plan", "migrate", "--json"],
    ["tidy", "--fold-older-than", "1d", "--keep-samples", "--json"],
    ["audit", "--json"],
    ["tidy", "--fold-older-than", "1d", "--drop-samples-older-than", "2d", "--yes", "--json"],
    ["analyze", "--json"],
    ["import", "{fleet}/first.csv", "--json"],
]


def cleaned(found):
    if isinstance(found, dict):
        return {k: cleaned(v) for k, v in found.items() if k not in _NOW}
    return [cleaned(v) for v in found] if isinstance(found, list) else found


def answers(lake, fleet, capfd):
    """What every step says of a lake: exit code and answer, the lake's place taken out."""
    for step in STEPS:
        capfd.readouterr()
        code = run([part.format(fleet=fleet) for part in step] + ["--lake", str(lake)])
        out, err = capfd.readouterr()
        out, err = (text.replace(str(lake), "LAKE") for text in (out, err))
        yield code, cleaned(json.loads(out)) if out and "--json" in step else out, err


def test_commands_answer_alike(place, fleet, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    here = list(answers(tmp_path / "lake", fleet, capfd))
    there = list(answers(place, fleet, capfd))
    for step, one, other in zip(STEPS, here, there, strict=True):
        assert one == other, step
    assert [code for code, _, _ in here] == [0] * (len(STEPS) - 1) + [2]  # at the end the days are closed
    assert not [f.name for f in tmp_path.iterdir() if f.name.endswith(":")]


def test_python_answers_alike(place, fleet, tmp_path):
    found = []
    for lake in (tmp_path / "lake", place):
        books = gpuledger.open(lake)
        books.ingest(fleet / "first.csv", fleet / "rest.csv")
        assert str(lake) in repr(books)
        found.append(
            (books.audit().to_dict(), books.analyze().to_dict(), books.samples().df().shape, books.lines().df().shape)
        )
    assert found[0] == found[1]


def test_commands_that_watch_and_record(place, tmp_path, monkeypatch, capfd):
    """A recording, the live view, alerts and stored rates: none of it touches a local folder of that name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rates.csv").write_text("gpu,usd_per_h,price_scope,as_of\nh200-sxm-141gb,1.25,gpu,2026-01-01\n")
    for step in (
        ["record", "--device", f"replay:{REPLAY}", "--duration", "1"],
        ["prices", "update", "rates.csv"],
        ["top", "--once", "--json"],
        ["watch", "--once", "--json"],
        ["watch", "--list", "--json"],
        ["prices", "update", "--remove"],
    ):
        capfd.readouterr()
        assert run([*step, "--lake", place]) == 0, step
        out, _ = capfd.readouterr()
        if step[0] == "top":
            assert place in out
    assert [p.name for p in tmp_path.iterdir()] == ["rates.csv"]
    lake = Lake(place)
    assert sum(p.rows for p in lake.manifest().parts) > 5
    assert [run.state for run in read_runs(lake)] == ["done"]
    assert (lake.store.here / "alerts" / "journal.sqlite").is_file()
