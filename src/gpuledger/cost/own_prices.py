"""Where do the user's own rates rest, and how are they read, replaced and dropped?

LAKE/prices/yours.json holds one set of rates; a new file replaces all of it, whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpuledger.catalog.prices.offers import Offer
from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.layout import Lake, write_atomically

FILE_VERSION = 1
FOLDER, NAME = "prices", "yours.json"


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    version: int = FILE_VERSION
    taken_from: str = ""
    rates: tuple[Rate, ...] = ()


def own_file(lake: Lake | str | Path) -> Path:
    """Where the rates of a lake rest."""
    return (lake if isinstance(lake, Lake) else Lake(lake)).root / FOLDER / NAME


def load_rates(lake: Lake | str | Path) -> tuple[Rate, ...]:
    """The stored rates; none where none were ever given."""
    file = own_file(lake)
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=_Stored)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise map_os_error(error, file, "read your rates") from error
    except msgspec.DecodeError as error:
        hint = "give them again: gpuledger prices update FILE, or drop them with --remove"
        raise LakeError(f"{file}: not a file of rates: {error}", hint=hint) from error
    if stored.version > FILE_VERSION:
        raise LakeError(f"{file}: written by a newer gpuledger", hint="upgrade gpuledger")
    return stored.rates


def load_own(lake: Lake | str | Path) -> tuple[Offer, ...]:
    """The stored rates as offers, as statements and planners take them."""
    return tuple(rate.offer for rate in load_rates(lake))


def store_rates(lake: Lake | str | Path, rates: Sequence[Rate], taken_from: str) -> Path:
    """Replace the stored rates."""
    file = own_file(lake)
    content = msgspec.json.encode(_Stored(taken_from=taken_from, rates=tuple(rates)))
    try:
        write_atomically(file, msgspec.json.format(content, indent=1) + b"\n")
    except OSError as error:
        raise map_os_error(error, file, "store your rates") from error
    return file


def drop_rates(lake: Lake | str | Path) -> bool:
    """Remove the stored rates; False where there were none."""
    file = own_file(lake)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise map_os_error(error, file, "remove your rates") from error
    return True
