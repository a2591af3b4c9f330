"""What does an object store's refusal mean, and what should the user do next?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import LakeError
from gpuledger.lake.stores.address import Address

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>|\"(?:reason|code)\": *\"(\w+)\"")
_KEYS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with keys in ~/.aws/credentials",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to a key file, or run gcloud auth application-default login",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_TOKEN)",
}
_ENDPOINT = {"s3": "AWS_ENDPOINT_URL", "gs": "GOOGLE_BASE_URL", "az": "AZURE_STORAGE_ENDPOINT"}
_MAKE = {
    "s3": "aws s3 mb s3://{0}",
    "gs": "gcloud storage buckets create gs://{0}",
    "az": "az storage container create --name {0}",
}
_AGAIN = "run the same command again; what was committed is kept"


class NoSuchBucket(LakeError):
    """The bucket of an address does not exist."""


@dataclass(frozen=True)
class Refusal:
    """What the client reports: its words and kind of error, and the server's status and code where it answered."""

    address: Address
    doing: str
    text: str
    kind: str

    @property
    def status(self) -> int:
        """The HTTP status; 0 where no answer came."""
        return next((int(s) for s in _STATUS.findall(self.text)), 0)

    @property
    def code(self) -> str:
        """The server's own name of the error."""
        return next((a or b for a, b in _CODE.findall(self.text)), "")

    @property
    def where(self) -> str:
        """The bucket."""
        return f"{self.address.scheme}://{self.address.bucket}"

    def has(self, *words: str) -> bool:
        """Whether its text has any of these."""
        return any(word in self.text for word in words)


def fault(error: Exception, address: Address, doing: str) -> LakeError:
    """An error of the object store in our words."""
    found = Refusal(address, doing, str(error), type(error).__name__)
    return next(make(found) for applies, make in _RULES if applies(found))


def _no_bucket(found: Refusal) -> LakeError:
    bucket, scheme = found.address.bucket, found.address.scheme
    hint = f"check the name, or create it: {_MAKE[scheme].format(bucket)}"
    return NoSuchBucket(f"{found.where}: the bucket does not exist", hint=hint)


def _other_region(found: Refusal) -> LakeError:
    ask = f"aws s3api get-bucket-location --bucket {found.address.bucket}"
    words = f"{found.where}: the bucket is in another region than the one in use"
    return LakeError(words, hint=f"set AWS_REGION to the region of the bucket: {ask}")


def _clock(found: Refusal) -> LakeError:
    return LakeError(f"{found.where}: the server refuses this machine's clock", hint="set the clock: timedatectl")


def _not_allowed(found: Refusal) -> LakeError:
    why = f" ({found.code})" if found.code else ""
    may = "check that the credentials may read, write, list and delete there"
    words = f"{found.address}: cannot {found.doing}: permission denied{why}"
    return LakeError(words, hint=f"{may}; to change them, {_KEYS[found.address.scheme]}")


def _plain_http(found: Refusal) -> LakeError:
    hint = "use https, or set AWS_ALLOW_HTTP=true if the network between is yours"
    return LakeError(f"{found.where}: the endpoint is plain http", hint=hint)


def _silent(found: Refusal) -> LakeError:
    status = f" (HTTP {found.status})" if found.status else ""
    words = f"{found.where}: the server does not answer{status}: cannot {found.doing}"
    return LakeError(words, hint=f"check the network and {_ENDPOINT[found.address.scheme]}, then {_AGAIN}")


def _other(found: Refusal) -> LakeError:
    line = found.text.splitlines()[0] if found.text else found.kind
    words = f"{found.address}: cannot {found.doing}: {line[:300]}"
    return LakeError(words, hint=f"see the message of the server above, then {_AGAIN}")


def no_credentials(address: Address) -> LakeError:
    """The error where nothing says who asks."""
    where = f"{address.scheme}://{address.bucket}"
    return LakeError(f"{where}: no credentials were found", hint=_KEYS[address.scheme])


def not_conditional(address: Address) -> LakeError:
    """The error where a server would let two writers overwrite each other."""
    hint = (
        "use a server with conditional writes (If-Match, If-None-Match), such as those of AWS, Google, Azure, or a"
        " recent MinIO; or keep the lake in a folder: --lake DIR"
    )
    words = f"{address}: the server ignores conditional writes, so two writers could overwrite each other"
    return LakeError(f"{words}: nothing was written", hint=hint)


def gone(place: Path) -> LakeError:
    """The error for a file that a manifest names and the bucket lacks."""
    hint = "run it again if the lake was just tidied; else restore the object from a backup or an older version of it"
    return LakeError(f"{place}: the lake names this file, but it is not in the bucket", hint=hint)


_METADATA = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
_NAMELESS = ("MissingAccountName", "Account must be specified", "MissingToken", "Missing credentials")
_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
_REFUSED = {"PermissionDeniedError", "UnauthenticatedError"}
_UNSUPPORTED = {"NotSupportedError", "NotImplementedError"}
_AWAY = ("error sending request", "timed out", "timeout", "Timeout", "connection closed")
# The first that applies; the last always does.
_RULES: tuple[tuple[Callable[[Refusal], bool], Callable[[Refusal], LakeError]], ...] = (
    (lambda r: r.code in {"NoSuchBucket", "ContainerNotFound"} or r.has("bucket does not exist"), _no_bucket),
    (lambda r: r.has(*_METADATA, *_NAMELESS), lambda r: no_credentials(r.address)),
    (lambda r: r.code in _REGION or r.status == 301 or r.has("redirect without LOCATION"), _other_region),
    (lambda r: r.code == "RequestTimeTooSkewed", _clock),
    (lambda r: r.status in (401, 403) or r.kind in _REFUSED, _not_allowed),
    (lambda r: r.status == 501 or r.kind in _UNSUPPORTED, lambda r: not_conditional(r.address)),
    (lambda r: r.has("BadScheme", "scheme is not allowed"), _plain_http),
    (lambda r: r.status >= 500 or r.status == 429 or r.has(*_AWAY), _silent),
    (lambda _r: True, _other),
)
