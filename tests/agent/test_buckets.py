"""Does a host that ships to a bucket fetch only what may be its own, and keep that within its bound?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from spools import MIN, START, keys, record, spool_at

from gpuledger.agent.shipping import Shipper
from gpuledger.agent.spool import Spool
from gpuledger.cli.app import run
from gpuledger.errors import InputError, LakeError
from gpuledger.lake.holding import rows_held
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import PartWriter, merge_day
from gpuledger.lake.stores import cache
from gpuledger.units import MS_PER_DAY

HOSTS = ("h1", "h2", "h3")
# Names of GPUs are random: those of one host lie among those of all others.
NAME = "GPU-{gpu}-{host}"


class Fleet:
    """Hosts that share a lake and nothing else."""

    def __init__(self, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.address, self._patch = folder, address, monkeypatch
        self.spools = {host: spool_at(folder / host) for host in HOSTS}

    def on(self, host: str) -> Spool:
        self._patch.setenv("GPULEDGER_CACHE", str(self.folder / f"cache-{host}"))
        return self.spools[host]

    def minute(self, host: str, number: int) -> None:
        record(self.on(host), START + number * MIN, host=host, name=NAME)
        self.spools[host].seal()

    def ship(self, host: str) -> int:
        return Shipper(self.on(host), Lake(self.address), self.address).ship()

    def copies(self, host: str) -> set[str]:
        return {f.name for f in (self.folder / f"cache-{host}").rglob("part-*.parquet")}


@pytest.fixture
def fleet(tmp_path, bucket_lake, monkeypatch) -> Fleet:
    return Fleet(tmp_path, bucket_lake, monkeypatch)


def test_a_host_fetches_no_samples_of_others(fleet):
    made: dict[str, set[str]] = {host: set() for host in HOSTS}
    for number in range(3):
        for host in HOSTS:
            fleet.minute(host, number)
            before = {p.file for p in Lake(fleet.address).manifest().parts}
            assert fleet.ship(host) == 120
            made[host] |= {p.file for p in Lake(fleet.address).manifest().parts} - before
    assert {host: fleet.copies(host) for host in HOSTS} == made


def test_a_file_of_the_whole_fleet_is_not_fetched_for_later_samples(fleet):
    """One file per day is made every hour; all hosts have samples that overlap it in time."""
    for host in HOSTS:
        fleet.minute(host, 0)
        fleet.ship(host)
    fleet.minute("h2", 1)
    again = fleet.spools["h2"].batches()[-1].file.read_bytes()
    fleet.ship("h2")
    fleet.on("h3")
    lake = Lake(fleet.address)
    with lake.locked():
        merged = merge_day(lake, "2026-01-20")
    fleet.minute("h1", 1)  # within the time of the merged file
    assert fleet.ship("h1") == 120
    assert merged.file not in fleet.copies("h1")
    # Killed after the lake had them: the same samples come again, and are found in the merged file.
    (fleet.spools["h2"].outbox / f"00000099-2026-01-20-120-{START + MIN}-{START + 2 * MIN}.parquet").write_bytes(again)
    assert fleet.ship("h2") == 0
    found = keys(Lake(fleet.address))
    assert len(found) == len(set(found)) == 5 * 120


def test_copies_are_counted_more_often_where_few_are_allowed(fleet, monkeypatch):
    monkeypatch.setenv("GPULEDGER_CACHE_SIZE", "20K")
    monkeypatch.setattr(cache, "_IN_USE_S", 0.0)
    spool, lake = fleet.on("h1"), Lake(fleet.address)
    ships = Shipper(spool, lake, fleet.address)
    for number in range(6):
        fleet.minute("h1", number)
        ships.ship()
    kept = [f.stat().st_size for f in (fleet.folder / "cache-h1").rglob("part-*.parquet")]
    assert sum(kept) <= 20 << 10
    assert len(lake.manifest().parts) == 6 > len(kept)


def test_of_a_large_file_only_the_row_groups_of_its_devices_are_read(fleet, s3_process):
    """Eight row groups of one device each: the rows of one are read in place, without a copy of the file."""
    lake = Lake(fleet.address)
    fleet.on("h3")
    with lake.locked(), lake.staging() as folder:
        writer = PartWriter(folder / "p.parquet", START // MS_PER_DAY)
        for gpu in range(8):
            at = pa.array(range(START, START + 60_000, 1000), pa.int64())
            names = pa.array([f"GPU-{gpu}"] * 60).dictionary_encode()
            writer.add(pa.table([names, at], names=["gpu_uuid", "at_ms"]))
        lake.commit([(writer.file, writer.close())])
    fleet.on("h1")
    here = Lake(fleet.address)
    found = rows_held(here, here.manifest().parts, ["GPU-5"], START)
    assert found.num_rows == 60
    assert set(found["gpu_uuid"].to_pylist()) == {"GPU-5"}
    assert rows_held(here, here.manifest().parts, ["GPU-5"], START + 60_000) is None
    assert fleet.copies("h1") == set()
    s3_process.fault(status=403, path="part-")
    with pytest.raises(LakeError, match="permission denied"):
        rows_held(here, here.manifest().parts, ["GPU-5"], START)


class TestOtherUsers:
    """Copies are posted and shipped as they are: no other user may have written them."""

    def test_a_folder_that_another_user_made_first_is_refused(self, fleet, monkeypatch, tmp_path, capsys):
        monkeypatch.delenv("GPULEDGER_CACHE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", "/nonexistent")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        planted = tmp_path / f"gpuledger-{os.getuid()}"
        planted.mkdir(mode=0o777)
        if os.getuid():
            pytest.skip("only root can give a folder to another user")
        os.chown(planted, 12345, 12345)
        assert run(["audit", "--lake", fleet.address, "--price", "2"]) == 2
        said = capsys.readouterr().err
        assert "belongs to another user" in said
        assert "GPULEDGER_CACHE" in said
        assert list(planted.iterdir()) == []

    @pytest.mark.parametrize("planted", ["lakes", "lakes/NAME"])
    def test_so_is_one_below_a_folder_that_was_named(self, fleet, planted):
        if os.getuid():
            pytest.skip("only root can give a folder to another user")
        fleet.on("h1")
        copies = Lake(fleet.address).store.copies
        folder = copies if planted.endswith("NAME") else copies.parent
        folder.mkdir(parents=True)
        os.chown(folder, 12345, 12345)
        fleet.minute("h1", 0)
        with pytest.raises(InputError, match="belongs to another user"):
            fleet.ship("h1")

    def test_copies_are_for_one_user(self, fleet):
        fleet.minute("h1", 0)
        copies = Lake(fleet.address).store.copies
        copies.mkdir(parents=True)
        copies.chmod(0o777)
        fleet.ship("h1")
        assert copies.stat().st_mode & 0o777 == 0o700
