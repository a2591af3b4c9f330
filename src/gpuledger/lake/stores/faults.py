"""What does an object store's refusal mean, and what should the user do next?"""

from __future__ import annotations

import re
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
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}
_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
_NO_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "MissingAccountName", "Account must be specified",
                   "MissingToken", "Missing credentials", "169.254.170.2")  # fmt: skip
_AGAIN = "run the same command again; what was committed is kept"


class NoSuchBucket(LakeError):
    """The bucket of an address is not there."""


def fault(error: Exception, address: Address, doing: str) -> LakeError:
    """An error of the object store in our words."""
    text, name = str(error), type(error).__name__
    status = next((int(s) for s in _STATUS.findall(text)), 0)
    code = next((a or b for a, b in _CODE.findall(text)), "")
    where = f"{address.scheme}://{address.bucket}"
    if code in _NO_BUCKET or "specified bucket does not exist" in text:
        hint = f"check the name, or create it: {_MAKE[address.scheme].format(address.bucket)}"
        return NoSuchBucket(f"{where}: there is no such bucket", hint=hint)
    if any(mark in text for mark in _NO_CREDENTIALS):
        return no_credentials(address)
    if code in _REGION or status == 301 or "redirect without LOCATION" in text:
        hint = f"set AWS_REGION to the region of the bucket: aws s3api get-bucket-location --bucket {address.bucket}"
        return LakeError(f"{where}: the bucket is in another region than the one in use", hint=hint)
    if code == "RequestTimeTooSkewed":
        return LakeError(f"{where}: the server refuses this machine's clock", hint="set the clock: timedatectl")
    if status in (401, 403) or name in ("PermissionDeniedError", "UnauthenticatedError"):
        why = f" ({code})" if code else ""
        hint = f"check that the credentials may read, write, list and delete there; to change them, {_KEYS[address.scheme]}"
        return LakeError(f"{address}: cannot {doing}: permission denied{why}", hint=hint)
    if status == 501 or name in ("NotSupportedError", "NotImplementedError"):
        return not_conditional(address)
    if "BadScheme" in text or "scheme is not allowed" in text:
        hint = "use https, or set AWS_ALLOW_HTTP=true if the network between is yours"
        return LakeError(f"{where}: the endpoint is plain http", hint=hint)
    if status >= 500 or "error sending request" in text or "timed out" in text or "timeout" in text.lower():
        said = f" (HTTP {status})" if status else ""
        variable = _ENDPOINT[address.scheme]
        hint = f"check the network and {variable}, then {_AGAIN}"
        return LakeError(f"{where}: the server does not answer{said}: cannot {doing}", hint=hint)
    line = text.splitlines()[0] if text else name
    return LakeError(f"{address}: cannot {doing}: {line[:300]}", hint=f"see the message of the server above, then {_AGAIN}")


def no_credentials(address: Address) -> LakeError:
    """The error where nothing says who asks."""
    where = f"{address.scheme}://{address.bucket}"
    return LakeError(f"{where}: no credentials were found", hint=_KEYS[address.scheme])


def not_conditional(address: Address) -> LakeError:
    """The error where a server would let two writers overwrite each other."""
    hint = (
        "use a server with conditional writes (If-Match, If-None-Match), such as S3, Google Cloud Storage, Azure or a"
        " recent MinIO; or keep the lake in a folder: --lake DIR"
    )
    words = f"{address}: the server ignores conditional writes, so two writers could overwrite each other"
    return LakeError(f"{words}: nothing was written", hint=hint)


def gone(place: Path) -> LakeError:
    """The error for a file that a manifest names and the bucket lacks."""
    hint = "run it again if the lake was just tidied; else restore the object from a backup or an older version of it"
    return LakeError(f"{place}: the lake names this file, but it is not in the bucket", hint=hint)
