"""Which region of which cloud is a device in?

The region comes from the label of the samples, else from the inventory, else as given. Region names are not unique
across clouds: the cloud comes from the name itself ("aws:us-east-1"), else as given, else from the instance type that
the inventory names, else from the only cloud that has such a region. What stays open is unknown, with the reason.
"""

from __future__ import annotations

from functools import cache

from gpuledger.catalog.files import fold
from gpuledger.catalog.prices import find_offers
from gpuledger.catalog.regions import Place, find_place, get_place, places
from gpuledger.cost.inventory import Inventory, Paid
from gpuledger.cost.pieces import Device
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown

NO_REGION = Unknown("neither the samples nor the inventory name a region; give the place of the GPUs")


class Whereabouts:
    """Where devices are. `cloud`: whose regions the labels name. `at`: where devices without a region are."""

    def __init__(self, stock: Inventory | None = None, cloud: str = "", at: str = "") -> None:
        self._rows = stock.by_device if stock else {}
        self._cloud = _known_cloud(cloud) if cloud else ""
        self._at = get_place(at) if at else None
        self._found: dict[tuple[str, str], Place | Unknown] = {}

    def of(self, device: Device) -> Place | Unknown:
        """The place of a device."""
        row = self._row(device)
        region = device.region or (row.region if row else "")
        if not region:
            return self._at or NO_REGION
        key = (region, row.instance if row else "")
        if key not in self._found:
            self._found[key] = self._named(*key)
        return self._found[key]

    def _row(self, device: Device) -> Paid | None:
        """The inventory row of a device that names the most."""
        rows = [*self._rows.get(device.name, ()), *self._rows.get(device.gpu_uuid, ())]
        return max(rows, key=lambda r: (bool(r.region), bool(r.instance)), default=None)

    def _named(self, region: str, instance: str) -> Place | Unknown:
        cloud, colon, name = region.partition(":")
        if colon:
            return find_place(cloud, name)
        if self._cloud:
            return find_place(self._cloud, region)
        sold_by = clouds_of(instance) if instance else frozenset[str]()
        there = [p for p in places().values() if fold(p.region) == fold(region)]
        of_instance = [p for p in there if fold(p.cloud) in sold_by]
        if len(of_instance or there) == 1:
            return (of_instance or there)[0]
        if not there:
            return Unknown(f"no source names the place of region {region!r}")
        clouds = ", ".join(p.cloud for p in there)
        return Unknown(f"{region} is a region of several clouds ({clouds}); give the cloud")


@cache
def clouds_of(instance: str) -> frozenset[str]:
    """The clouds that sell an instance type, folded."""
    try:
        return frozenset(fold(o.cloud) for o in find_offers(instance=instance))
    except InputError:
        return frozenset()


def _known_cloud(name: str) -> str:
    clouds = {p.cloud for p in places().values()}
    found = next((c for c in clouds if fold(c) == fold(name)), None)
    if found is None:
        raise UnknownName("cloud", name, clouds)
    return found
