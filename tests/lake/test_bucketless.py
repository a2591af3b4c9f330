"""Is an address without a bucket refused wherever a lake can be named, and no folder made of it?"""

from __future__ import annotations

from pathlib import Path

import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import InputError
from gpuledger.lake.stores.path import place_of

SAMPLES = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"
COMMANDS = {
    "agent": ["agent", "--once"],
    "import": ["import", str(SAMPLES)],
    "audit": ["audit"],
    "deploy": ["deploy", "systemd"],
}


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_bucket_variable_that_is_not_set_is_an_error(command, scheme, tmp_path, monkeypatch, capsys):
    """`--lake s3://$BUCKET` with BUCKET unset."""
    monkeypatch.chdir(tmp_path)
    assert run([*COMMANDS[command], "--lake", f"{scheme}://"]) == 2
    said = capsys.readouterr().err
    assert f"{scheme}://: it does not name a bucket" in said
    assert "variable" in said
    assert not (tmp_path / f"{scheme}:").exists()


@pytest.mark.parametrize("lost", ["s3:", "s3:/", "GS:", "hdfs:"])
def test_what_a_path_has_left_of_such_an_address_is_refused(lost):
    """A path turns `s3://` into `s3:`."""
    with pytest.raises(InputError, match="//"):
        place_of(Path(lost))
    with pytest.raises(InputError):
        gpuledger.open(Path(lost))
