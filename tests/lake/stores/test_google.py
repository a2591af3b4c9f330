"""Do lakes at gs:// keep to what Google's server asks of its clients, and are its refusals explained?"""

import time

import pytest

from gpuledger.errors import LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.stores import bucket
from gpuledger.lake.stores.address import Address
from gpuledger.lake.stores.bucket import Mark, bucket_of
from gpuledger.lake.stores.path import StorePath
from s3_lakes import assert_whole, lines_samples, work, write

pytestmark = pytest.mark.parametrize("s3", ["gcs_process"], indirect=True, ids=["gs"])
ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>no</Message></Error>"


def test_a_write_happens_at_its_generation_only(place):
    address = StorePath(place).address
    held, key = bucket_of(address), f"{address.key}/x.json"
    assert held.create(key, b"1")
    assert not held.create(key, b"2")
    first, _ = held.read_now(key)
    assert first.version.isdigit()
    second = held.swap(key, b"2", first)
    assert int(second.version) > int(first.version)
    assert held.swap(key, b"3", first) is None
    assert held.read_now(key) == (second, b"2")
    held.delete([key])
    assert held.swap(key, b"3", second) is None
    assert held.read_now(key) == (None, None)
    assert held.swap(key, b"3", Mark(second.e_tag, "1")) is None


def test_an_object_has_one_time_however_it_is_found(place):
    file = StorePath(place) / "counted" / "a.json"
    file.write_bytes(b"{}")
    (listed,) = file.parent.glob("*.json")
    assert listed.stat().st_mtime_ns == file.stat().st_mtime_ns


def test_one_write_per_second_and_object_is_enough(s3, place, tmp_path):
    """Google refuses more; the manifests and the lease are written more often than that."""
    s3.fault(per_object_s=1.0)
    began = time.monotonic()
    work({"lake": place, "files": [write(tmp_path / "a.parquet")]})
    assert time.monotonic() - began > 1, "nothing was refused"
    assert assert_whole(Lake(place)) == lines_samples(Lake(place)) == 120


@pytest.mark.parametrize(
    ("fault", "words", "hint"),
    [
        ({"status": 403, "body": ERROR.format("AccessDenied")}, "permission denied (AccessDenied)", "GOOGLE_"),
        ({"status": 401, "body": ERROR.format("AuthenticationRequired")}, "permission denied", "gcloud auth"),
        ({"status": 503}, "does not answer (HTTP 503)", "GOOGLE_BASE_URL"),
        ({"no_conditions": True}, "ignores conditional writes", "--lake DIR"),
    ],
)
def test_a_refusal_says_what_to_do(s3, place, tmp_path, impatient, fault, words, hint):
    s3.fault(path="test-", **fault)
    with pytest.raises(LakeError) as error:
        import_files(Lake(place), [write(tmp_path / "a.parquet")])
    assert words in error.value.message
    assert hint in error.value.hint
    s3.fault()
    assert not Lake(place).exists()


def test_a_bucket_that_is_not_there(s3, tmp_path):
    with pytest.raises(LakeError, match="the bucket does not exist") as error:
        import_files(Lake("gs://nowhere/lake"), [write(tmp_path / "a.parquet")])
    assert "gcloud storage buckets create gs://nowhere" in error.value.hint


def test_without_credentials(s3, place, monkeypatch, tmp_path, impatient):
    """No key, no login, and no metadata service of a cloud machine."""
    monkeypatch.delenv("GOOGLE_BEARER_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LakeError, match="no credentials were found") as error:
        bucket.Bucket(Address("gs", "lakes")).read("x")
    assert "GOOGLE_APPLICATION_CREDENTIALS" in error.value.hint
