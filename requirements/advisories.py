"""Which locked packages have a known vulnerability, where no advisory service can be reached?

    python requirements/advisories.py ADVISORIES LOCK...

ADVISORIES is a folder or a zip file of advisories in OSV format as JSON, such as PyPI's at
https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip. They are served on this machine to pip-audit, which
asks for each package of a lock file. Exits with pip-audit's code: 0 where it finds none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

Advisory = dict[str, Any]
Advisories = dict[str, list[Advisory]]


def load(place: Path) -> Advisories:
    """All advisories by the package they are about."""
    found: Advisories = {}
    for text in _texts(place):
        advisory = json.loads(text)
        for name in {canonicalize_name(part["package"]["name"]) for part in _parts(advisory)}:
            found.setdefault(name, []).append(advisory)
    if not found:
        raise SystemExit(f"{place}: no advisory about a Python package; give a folder or zip file of OSV's JSON files")
    return found


def _texts(place: Path) -> Iterator[bytes]:
    if place.is_dir():
        yield from (file.read_bytes() for file in sorted(place.rglob("*.json")))
        return
    with zipfile.ZipFile(place) as archive:
        yield from (archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".json"))


def _parts(advisory: Advisory) -> list[dict[str, Any]]:
    return [part for part in advisory.get("affected", []) if part.get("package", {}).get("ecosystem") == "PyPI"]


def about(advisories: Advisories, name: str, version: str) -> list[Advisory]:
    """The advisories that affect one version of a package; the package is written as pip-audit asks for it."""
    wanted, out = canonicalize_name(name), []
    for advisory in advisories.get(wanted, []):
        parts = [part for part in _parts(advisory) if canonicalize_name(part["package"]["name"]) == wanted]
        if any(_affects(part, version) for part in parts):
            named = [{**part, "package": {**part["package"], "name": wanted}} for part in parts]
            out.append({**advisory, "affected": named})
    return out


def _affects(part: Mapping[str, Any], version: str) -> bool:
    if version in part.get("versions", []):
        return True
    spans = [span["events"] for span in part.get("ranges", []) if span.get("type") == "ECOSYSTEM"]
    return any(_within(events, Version(version)) for events in spans)


def _within(events: Sequence[Mapping[str, str]], version: Version) -> bool:
    """Whether a version lies in a range: the last event at or before it says so."""
    inside = False
    for at, kind in sorted(_dated(events), key=lambda pair: pair[0]):
        if at < version or (at == version and kind != "last_affected"):
            inside = kind == "introduced"
    return inside


def _dated(events: Sequence[Mapping[str, str]]) -> Iterator[tuple[Version, str]]:
    """The events with their versions. An end that cannot be read ends nothing; a beginning counts from the start."""
    for event in events:
        for kind, text in event.items():
            try:
                yield Version(text), kind
            except InvalidVersion:
                if kind == "introduced":
                    yield Version("0"), kind


class _Server(ThreadingHTTPServer):
    advisories: Advisories


class _Answers(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = about(self.server.advisories, asked["package"]["name"], asked["version"])
        body = json.dumps({"vulns": found} if found else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_what: object) -> None:
        """Quiet."""


def main(place: str, *locks: str) -> int:
    """Audit lock files; the worst of pip-audit's exit codes."""
    server = _Server(("127.0.0.1", 0), _Answers)
    server.advisories = load(Path(place))
    newest = max(a.get("modified", "") for some in server.advisories.values() for a in some)
    print(f"{sum(map(len, server.advisories.values())):,} advisories, the newest of {newest[:10]}", flush=True)
    Thread(target=server.serve_forever, daemon=True).start()
    url, worst = f"http://127.0.0.1:{server.server_port}/v1/query", 0
    auditor = [str(Path(sys.executable).with_name("pip-audit")), "--vulnerability-service", "osv", "--osv-url", url]
    for lock in locks:
        done = subprocess.run([*auditor, "--requirement", lock, "--disable-pip", "--strict"], check=False)
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
