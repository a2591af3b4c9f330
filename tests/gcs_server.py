"""A server that speaks the part of Google Cloud Storage's XML protocol that lakes use, as a process of its own.

    python tests/gcs_server.py PORT

No emulator that can be installed takes conditional writes in this protocol, so this one keeps its objects in moto's S3
server, whose XML is the same, and adds what differs as Google documents it: every object has a generation that each
write changes; a write with `x-goog-if-generation-match` happens only at that generation (0: only if there is no
object); requests need a bearer token. The fault `per_object_s` refuses writes to one object that come sooner than that
after the last one, as Google does from about one per second on.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import s3_server

ERROR = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{}</Code><Message>{}</Message></Error>"

# What moto takes for a request of the owner.
SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


class App(s3_server.App):
    """The server as a WSGI application."""

    def __init__(self):
        super().__init__()
        self.generations, self.newest, self.written_s = {}, 1_700_000_000_000_000, {}

    def _answered(self, environ, start, fault):
        if fault.get("status") or fault.get("drop") == "before":
            return super()._answered(environ, start, fault)
        refused = self._refusal(environ, fault)
        answer = self._refused(start, *refused) if refused else self._carried_out(environ, start)
        return self._dropped(environ, None) if fault.get("drop") == "after" else answer

    def _refusal(self, environ, fault):
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        wanted = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None)
        if not environ.pop("HTTP_AUTHORIZATION", "").startswith("Bearer ") and path.count("/") > 1:
            return "401 Unauthorized", "AuthenticationRequired", "Authentication required."
        if fault.get("no_conditions") or method != "PUT":
            return None
        if wanted is not None and int(wanted) != self.generations.get(path, 0):
            return "412 Precondition Failed", "PreconditionFailed", "A precondition you specified did not hold."
        if time.monotonic() - self.written_s.get(path, -1e9) < fault.get("per_object_s", 0):
            return "429 Too Many Requests", "SlowDown", "The object exceeded the rate limit for object mutations."
        return None

    def _refused(self, start, status, code, words):
        start(status, [("Content-Type", "application/xml")])
        return [ERROR.format(code, words).encode()]

    def _carried_out(self, environ, start):
        path, method, heads = environ["PATH_INFO"], environ["REQUEST_METHOD"], []

        def begun(status, headers, *_more):
            heads.append((status, headers))

        body = b"".join(self.moto(environ | {"HTTP_AUTHORIZATION": SIGNED}, begun))
        status, headers = heads[-1]
        query = environ.get("QUERY_STRING", "")
        if status.startswith("2") and ((method == "PUT" and not query) or (method == "POST" and "uploadId" in query)):
            self.newest += 1
            self.generations[path], self.written_s[path] = self.newest, time.monotonic()
        if status.startswith("2") and method == "DELETE":
            existed = self.generations.pop(path, None)
            if existed is None and path.count("/") > 1:  # unlike S3
                return self._refused(start, "404 Not Found", "NoSuchKey", "The specified key does not exist.")
        if path in self.generations:
            headers = [*headers, ("x-goog-generation", str(self.generations[path]))]
        start(status, headers)
        return [body]


class Server(s3_server.Server):
    """The process, from a test's side."""

    scheme, script = "gs", Path(__file__)

    def env_of(self, folder):
        """What leads a client here."""
        own = {"GOOGLE_BASE_URL": self.url, "GOOGLE_BEARER_TOKEN": "token"}
        return own | {"GPULEDGER_CACHE": str(folder / "cache"), "GPULEDGER_STORE_WAIT": "20"}


if __name__ == "__main__":
    s3_server.serve(App(), int(sys.argv[1]))
