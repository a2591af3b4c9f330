"""Does every refusal of a server end in clear words and a next step, and does what passes by itself pass unseen?"""

import pytest

from gpuledger.errors import GpuledgerError, LakeError, MissingExtra
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.stores import clients
from gpuledger.lake.stores.address import Address
from s3_lakes import assert_whole, work, write


def test_a_server_that_goes_away_midway_leaves_the_lake_as_it_was(s3, place, tmp_path, impatient):
    first, second = write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet", offset=100)
    work({"lake": place, "files": [first]})
    for path in ("samples/", "manifest.json"):
        s3.fault(path=path, method="PUT", drop="before")
        with pytest.raises(LakeError) as error:
            import_files(Lake(place), [second])
        assert "the server does not answer" in error.value.message
        assert "run the same command again" in error.value.hint
        s3.fault()
        assert assert_whole(Lake(place)) == 120
    work({"lake": place, "files": [second]})
    assert assert_whole(Lake(place)) == 240


@pytest.mark.parametrize("fault", [{"drop": "before"}, {"drop": "after"}, {"status": 503}])
@pytest.mark.parametrize("path", ["manifest.json", "samples/", "lock.json"])
def test_what_passes_by_itself_is_not_noticed(s3, place, tmp_path, fault, path):
    """A dropped connection, an answer that is lost after the server did the work, a busy server."""
    work({"lake": place, "files": [write(tmp_path / "a.parquet")]})
    s3.fault(path=path, method="PUT", first=1, times=2, **fault)
    work({"lake": place, "files": [write(tmp_path / "b.parquet", offset=100)]})
    assert assert_whole(Lake(place)) == 240
    assert s3.state()["count"]


S3_ERROR = "<Error><Code>{}</Code><Message>no</Message></Error>"


@pytest.mark.parametrize(
    ("fault", "words", "hint"),
    [
        (
            {"status": 403, "body": S3_ERROR.format("InvalidAccessKeyId")},
            "permission denied (InvalidAccessKeyId)",
            "AWS_",
        ),
        ({"status": 301, "body": S3_ERROR.format("PermanentRedirect")}, "another region", "AWS_REGION"),
        ({"status": 403, "body": S3_ERROR.format("RequestTimeTooSkewed")}, "clock", "timedatectl"),
        ({"status": 501, "body": S3_ERROR.format("NotImplemented")}, "conditional writes", "--lake DIR"),
        ({"status": 500}, "does not answer (HTTP 500)", "AWS_ENDPOINT_URL"),
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
        import_files(Lake("s3://nowhere/lake"), [write(tmp_path / "a.parquet")])
    assert "aws s3 mb s3://nowhere" in error.value.hint


def test_a_lake_that_is_not_there_names_its_address(place):
    with pytest.raises(LakeError) as error:
        Lake(place).require()
    assert error.value.message == f"{place}: no lake was found here"
    assert f"--lake {place}" in error.value.hint


@pytest.fixture
def without_keys(s3, monkeypatch, tmp_path):
    """No keys, and a machine without a metadata service."""
    from gpuledger.lake.stores import bucket

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(clients, "_METADATA", ("127.0.0.1", 1))
    bucket._opened.cache_clear()
    yield tmp_path
    bucket._opened.cache_clear()


def test_without_credentials(without_keys, place):
    with pytest.raises(LakeError, match="no credentials were found") as error:
        Lake(place).exists()
    assert "AWS_PROFILE" in error.value.hint


def test_the_keys_of_a_profile_are_used(without_keys, place, monkeypatch):
    folder = without_keys / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text("[team]\naws_access_key_id = a\naws_secret_access_key = b\n")
    (folder / "config").write_text("[profile team]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_PROFILE", "team")
    assert not Lake(place).exists()
    assert clients._s3_identity(Address("s3", "b")) == {
        "access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("config", "words"), [("", "that profile does not exist"), ("sso_session = x", "has no keys of its own")]
)
def test_a_profile_that_does_not_help(without_keys, place, monkeypatch, config, words):
    folder = without_keys / ".aws"
    folder.mkdir()
    (folder / "config").write_text(f"[profile team]\n{config}\n")
    monkeypatch.setenv("AWS_PROFILE", "team")
    with pytest.raises(GpuledgerError, match=words):
        Lake(place).exists()


def test_without_the_library(s3, place, monkeypatch):
    import sys

    from gpuledger.lake.stores import bucket

    bucket._opened.cache_clear()
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    with pytest.raises(MissingExtra) as error:
        Lake(place).exists()
    assert error.value.hint == 'pip install "gpuledger[stores]"'
