"""Which versions does an advisory affect, and does pip-audit get the answer?"""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path
from threading import Thread

import httpx
import pytest

SCRIPT = Path(__file__).parents[2] / "requirements" / "advisories.py"


@pytest.fixture(scope="module")
def script():
    found = importlib.util.spec_from_file_location("advisories", SCRIPT)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def advisory(name: str, *events: dict[str, str], versions: tuple[str, ...] = ()) -> dict[str, object]:
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    part = {"package": {"name": name, "ecosystem": "PyPI"}, "ranges": ranges, "versions": list(versions)}
    return {"id": f"PYSEC-{name}", "modified": "2026-01-02T00:00:00Z", "affected": [part]}


@pytest.mark.parametrize(
    ("events", "hit", "spared"),
    [
        (({"introduced": "0"}, {"fixed": "2.10"}), ("0.1", "2.9", "2.10rc1"), ("2.10", "3.0")),
        (({"introduced": "1.2"}, {"last_affected": "1.4"}), ("1.2", "1.4"), ("1.1", "1.4.1")),
        (({"introduced": "3"}, {"fixed": "3.5"}, {"introduced": "0"}, {"fixed": "1"}), ("0.9", "3.4"), ("1", "3.5")),
        (({"introduced": "0"}, {"fixed": "not a version"}), ("0.1", "99"), ()),
    ],
)
def test_a_version_is_affected_from_its_introduction_to_its_fix(script, events, hit, spared):
    known = {"some-name": [advisory("Some_Name", *events)]}
    assert all(script.about(known, "some-name", version) for version in hit)
    assert not any(script.about(known, "some-name", version) for version in spared)


def test_versions_named_one_by_one_and_other_ecosystems(script):
    other = advisory("left-pad", {"introduced": "0"})
    other["affected"][0]["package"]["ecosystem"] = "npm"
    known = {"left-pad": [advisory("left-pad", versions=("1.0.0",)), other]}
    assert [a["id"] for a in script.about(known, "left-pad", "1.0.0")] == ["PYSEC-left-pad"]
    assert script.about(known, "left-pad", "1.0.1") == []


def test_a_folder_and_a_zip_file_answer_alike_over_http(script, tmp_path):
    text = json.dumps(advisory("Jinja2", {"introduced": "0"}, {"fixed": "2.11.3"}))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.json").write_text(text, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.json", text)
    loaded = [script.load(tmp_path / name) for name in ("folder", "all.zip")]
    assert loaded[0] == loaded[1]
    server = script._Server(("127.0.0.1", 0), script._Answers)
    server.advisories = loaded[0]
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1/query"
        asked = [{"package": {"name": "jinja2", "ecosystem": "PyPI"}, "version": v} for v in ("2.11.2", "2.11.3")]
        hit, spared = (httpx.post(url, json=one, trust_env=False).json() for one in asked)
    finally:
        server.shutdown()
        server.server_close()
    assert [v["affected"][0]["package"]["name"] for v in hit["vulns"]] == ["jinja2"]
    assert spared == {}


def test_a_folder_without_advisories_is_refused(script, tmp_path):
    with pytest.raises(SystemExit, match="no advisory"):
        script.load(tmp_path)
