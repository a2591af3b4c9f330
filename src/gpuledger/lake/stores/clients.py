"""With which endpoint and credentials is a bucket opened?

The variables are those of the clouds' own tools: AWS_*, GOOGLE_*, AZURE_*. Keys of an AWS profile are read from its
file.
"""

from __future__ import annotations

import configparser
import ipaddress
import os
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuledger.errors import InputError, LakeError, MissingExtra
from gpuledger.lake.stores.address import Address
from gpuledger.lake.stores.faults import fault, no_credentials

WAIT_VARIABLE = "GPULEDGER_STORE_WAIT"
_WAIT_S = 60.0
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
# Where one of these is set, the client finds credentials by itself.
_GIVEN = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SKIP_SIGNATURE")  # fmt: skip
_METADATA = ("169.254.169.254", 80)


def wait_s() -> float:
    """How long a server that does not answer is asked again."""
    given = os.environ.get(WAIT_VARIABLE, "")
    try:
        found = float(given) if given else _WAIT_S
    except ValueError:
        found = 0.0
    if not 0 < found < 86400:
        raise InputError(
            f"{WAIT_VARIABLE}={given!r} is not a number of seconds", hint=f"for example {WAIT_VARIABLE}=60"
        )
    return found


def endpoint_of(scheme: str) -> str:
    """The endpoint in force; empty for the cloud's own."""
    return next((os.environ[name] for name in _ENDPOINTS[scheme] if os.environ.get(name)), "")


def open_client(address: Address) -> Any:
    """The client of a bucket; nothing is asked of the server yet."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError as error:
        raise MissingExtra("a lake on an object store", "stores") from error
    endpoint, wait = endpoint_of(address.scheme), timedelta(seconds=wait_s())
    options: Any = {"timeout": "30s", "connect_timeout": "5s"}
    if _is_loopback(endpoint):
        options["allow_http"] = True
    backoff = {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=5), "base": 2}
    how: Any = {
        "client_options": options,
        "retry_config": {"max_retries": 1000, "backoff": backoff, "retry_timeout": wait},
    }
    try:
        if address.scheme == "s3":
            given: Any = _s3_identity(address) | ({"endpoint": endpoint} if endpoint else {})
            return S3Store(address.bucket, **given, **how)
        if address.scheme == "gs":
            return GCSStore(address.bucket, **how)
        return AzureStore(address.bucket, **how)
    except BaseError as error:
        raise fault(error, address, "open it") from error


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _s3_identity(address: Address) -> dict[str, str]:
    """Keys and region that the environment does not give: those of the profile."""
    found = _profile()
    region = {} if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") else {"region": "region"}
    wanted = dict(region)
    if not any(os.environ.get(name) for name in _GIVEN):
        keys = {"access_key_id": "aws_access_key_id", "secret_access_key": "aws_secret_access_key",
                "token": "aws_session_token"}  # fmt: skip
        if "aws_access_key_id" in found:
            wanted |= keys
        elif found and {"sso_session", "sso_start_url", "role_arn", "credential_process"} & set(found):
            raise LakeError(
                f"{address}: the AWS profile {_profile_name()!r} has no keys of its own",
                hint=f'eval "$(aws configure export-credentials --profile {_profile_name()} --format env)"',
            )
        elif not _on_a_cloud_machine():
            raise no_credentials(address)
    return {ours: found[theirs] for ours, theirs in wanted.items() if found.get(theirs)}


def _profile_name() -> str:
    return os.environ.get("AWS_PROFILE") or "default"


def _profile() -> dict[str, str]:
    """What the files of the AWS tools say of the profile in force."""
    name, home = _profile_name(), Path.home() / ".aws"
    files = {
        os.environ.get("AWS_CONFIG_FILE") or home / "config": "default" if name == "default" else f"profile {name}",
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials": name,
    }
    found: dict[str, str] = {}
    for file, section in files.items():
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            raise InputError(f"{file}: cannot be read: {error}", hint="correct it: aws configure") from error
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if not found and os.environ.get("AWS_PROFILE"):
        raise InputError(f"AWS_PROFILE={name!r}: that profile does not exist", hint="aws configure list-profiles")
    return found


def _on_a_cloud_machine() -> bool:
    """Whether a metadata service answers, which then gives the credentials of the machine."""
    try:
        with socket.create_connection(_METADATA, timeout=1.0):
            return True
    except OSError:
        return False
