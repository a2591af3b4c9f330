"""Is an address recognized, and shown as it was given?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import InputError
from gpuledger.lake.stores.address import Address, address_in
from gpuledger.lake.stores.path import StorePath, place_of

NAMES = st.from_regex(r"[a-z0-9][a-z0-9.-]{2,20}", fullmatch=True)
FOLDERS = st.lists(st.from_regex(r"[A-Za-z0-9_=-][A-Za-z0-9 ._=-]{0,10}", fullmatch=True).filter(lambda t: t != ".."))


@given(st.sampled_from(["s3", "gs", "az"]), NAMES, FOLDERS)
def test_an_address_survives_being_a_path(scheme, bucket, folders):
    address = Address(scheme, bucket, "/".join(folders))
    assert address_in(str(address)) == address
    assert address_in(Path(str(address))) == address  # which has lost a slash
    place = place_of(f"{address}/")
    assert isinstance(place, StorePath)
    assert place.address == address
    assert str(place / "x.json") == f"{address}/x.json"
    assert place_of(place) is place


@pytest.mark.parametrize("folder", ["gpuledger-data", "/srv/lake", "./s3", "a/s3:/b", "C:/lake", "day=2026-01-20"])
def test_a_folder_stays_a_folder(folder):
    assert address_in(folder) is None
    assert type(place_of(folder)) is type(Path())


@pytest.mark.parametrize(
    "text", ["s3://", "s3:///x", "s3://b/x", "hdfs://host/x", "s3://bucket/a/../b", "s3://bu cket/x"]
)
def test_what_cannot_be_a_lake_is_refused_with_an_example(text):
    with pytest.raises(InputError) as error:
        address_in(text)
    assert "s3://BUCKET" in error.value.hint


def test_what_an_object_cannot_do_is_not_done_to_the_local_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = StorePath("s3://bucket/lake")
    place.mkdir(parents=True)
    for refused in (place.open, place.iterdir, place.rename, place.replace):
        with pytest.raises(NotImplementedError, match="s3://bucket/lake"):
            refused()
    assert not any(tmp_path.iterdir())
