"""Bills and node lists of some machines, written as the clouds and clusters write them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.units import MS_PER_DAY, utc

Row = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """A host as a cluster names it, and as its cloud does."""

    host: str
    instance_id: str
    instance: str
    region: str
    usd_per_h: Decimal
    gpus: int = 1
    gpu_product: str = "NVIDIA-H100-80GB-HBM3"
    ip: str = "10.0.1.2"


def days(start_ms: int, count: int) -> list[tuple[int, int]]:
    """Whole days from an instant."""
    return [(start_ms + i * MS_PER_DAY, start_ms + (i + 1) * MS_PER_DAY) for i in range(count)]


def iso(at_ms: int) -> str:
    return f"{utc(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def cost(machine: Machine, period: tuple[int, int]) -> Decimal:
    return machine.usd_per_h * (period[1] - period[0]) / 3_600_000


def as_csv(path: Path, rows: Sequence[Row]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, names, restval="")
        out.writeheader()
        out.writerows(rows)
    return path


def as_parquet(path: Path, rows: Sequence[Row]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    pq.write_table(pa.Table.from_pylist([{n: row.get(n) for n in names} for row in rows]), path)
    return path


def aws_rows(machines: Sequence[Machine], periods: Sequence[tuple[int, int]]) -> list[Row]:
    """The legacy report: usage of instances, and rows that are not the price of one."""
    rows: list[Row] = []
    for machine in machines:
        for period in periods:
            shared = {
                "identity/LineItemId": f"{machine.instance_id}{period[0]}",
                "lineItem/UsageAccountId": "123456789012",
                "lineItem/UsageStartDate": iso(period[0]),
                "lineItem/UsageEndDate": iso(period[1]),
                "lineItem/CurrencyCode": "USD",
                "lineItem/ResourceId": machine.instance_id,
                "product/region": machine.region,
            }
            rows.append(shared | {
                "lineItem/LineItemType": "Usage", "lineItem/ProductCode": "AmazonEC2",
                "lineItem/UsageType": f"BoxUsage:{machine.instance}", "lineItem/Operation": "RunInstances",
                "lineItem/UsageAmount": str((period[1] - period[0]) / 3_600_000),
                "lineItem/UnblendedCost": str(cost(machine, period)), "product/instanceType": machine.instance,
            })  # fmt: skip
            rows.append(shared | {
                "lineItem/LineItemType": "Usage", "lineItem/ProductCode": "AmazonEC2",
                "lineItem/UsageType": "DataTransfer-Out-Bytes", "lineItem/Operation": "RunInstances",
                "lineItem/UsageAmount": "12.5", "lineItem/UnblendedCost": "1.125",
            })  # fmt: skip
    return rows


def snake_rows(rows: Sequence[Row]) -> list[Row]:
    """The same under the names of CUR 2.0."""
    from gpuledger.telemetry.formats.columns import snake

    return [{snake(name): value for name, value in row.items()} for row in rows]


def gcp_rows(machines: Sequence[Machine], periods: Sequence[tuple[int, int]]) -> list[Row]:
    """Rows of the detailed export: cores, memory and GPUs apart, with a credit."""
    rows: list[Row] = []
    parts = (("Nvidia H100 80GB GPU running in Americas", "0.70"), ("A3 Instance Core running in Americas", "0.25"),
             ("A3 Instance Ram running in Americas", "0.10"))  # fmt: skip
    for machine in machines:
        for period in periods:
            for sku, share in parts:
                amount = cost(machine, period) * Decimal(share)
                credit = float(-amount * Decimal("0.05") / Decimal("1.05"))
                rows.append({
                    "billing_account_id": "0123-4567", "service": {"description": "Compute Engine"},
                    "sku": {"id": "1-2-3", "description": sku},
                    "usage_start_time": f"{utc(period[0]):%Y-%m-%d %H:%M:%S} UTC",
                    "usage_end_time": f"{utc(period[1]):%Y-%m-%d %H:%M:%S} UTC",
                    "resource": {"name": machine.host, "global_name": f"//compute/instances/{machine.host}"},
                    "location": {"region": machine.region}, "cost": float(amount), "currency": "USD",
                    "usage": {"amount": 86400.0, "unit": "seconds"},
                    "credits": [{"name": "Negotiated", "type": "DISCOUNT", "amount": credit}],
                    "system_labels": [
                        {"key": "compute.googleapis.com/machine_spec", "value": machine.instance},
                    ],
                })  # fmt: skip
            rows.append({
                "service": {"description": "Compute Engine"}, "sku": {"description": "Storage PD Capacity"},
                "usage_start_time": f"{utc(period[0]):%Y-%m-%d %H:%M:%S} UTC", "resource": {"name": machine.host},
                "cost": 3.5, "currency": "USD",
            })  # fmt: skip
    return rows


def azure_rows(machines: Sequence[Machine], periods: Sequence[tuple[int, int]]) -> list[Row]:
    """Daily rows of an enterprise agreement."""
    return [
        {
            "Date": f"{utc(period[0]):%m/%d/%Y}", "MeterCategory": "Virtual Machines",
            "MeterSubCategory": "NDasrA100v4 Series", "MeterName": "ND96asr A100 v4", "UnitOfMeasure": "1 Hour",
            "Quantity": str((period[1] - period[0]) / 3_600_000), "BillingCurrencyCode": "USD",
            "CostInBillingCurrency": str(cost(machine, period)), "PricingModel": "OnDemand",
            "ResourceLocation": machine.region,
            "ResourceId": "/subscriptions/00-11/resourceGroups/ml/providers/Microsoft.Compute/virtualMachines/"
            + machine.host,
            "AdditionalInfo": json.dumps({"ServiceType": machine.instance, "VMName": machine.host}),
        }
        for machine in machines
        for period in periods
    ]  # fmt: skip


def focus_rows(machines: Sequence[Machine], periods: Sequence[tuple[int, int]]) -> list[Row]:
    """FOCUS 1.1 rows as AWS exports them."""
    return [
        {
            "BilledCost": str(cost(machine, period)), "EffectiveCost": str(cost(machine, period)),
            "BillingCurrency": "USD", "ChargeCategory": "Usage", "ServiceCategory": "Compute", "ServiceName": "EC2",
            "ChargePeriodStart": iso(period[0]), "ChargePeriodEnd": iso(period[1]), "PricingCategory": "Standard",
            "ConsumedQuantity": str((period[1] - period[0]) / 3_600_000), "ConsumedUnit": "Hours",
            "ResourceId": f"arn:aws:ec2:{machine.region}:1234:instance/{machine.instance_id}",
            "ResourceName": machine.host, "RegionId": machine.region, "SkuId": "SKU1",
            "SkuPriceDetails": json.dumps({"InstanceType": machine.instance}), "x_Operation": "RunInstances",
        }
        for machine in machines
        for period in periods
    ]  # fmt: skip


def allocations(machines: Sequence[Machine], periods: Sequence[tuple[int, int]], share: str = "1") -> Any:
    """What /allocation answers, one set per step; `share` of the GPU-hours is allocated."""
    steps = []
    for period in periods:
        step = {}
        for i, machine in enumerate(machines):
            hours = Decimal(machine.gpus) * (period[1] - period[0]) / 3_600_000 * Decimal(share)
            step[f"ml/train-{i}"] = {
                "name": f"ml/train-{i}",
                "properties": {"cluster": "c1", "node": machine.host, "namespace": "ml", "pod": f"train-{i}"},
                "window": {"start": iso(period[0]), "end": iso(period[1])}, "start": iso(period[0]),
                "end": iso(period[1]), "cpuCost": 1.25, "gpuHours": float(hours),
                "gpuCost": float(cost(machine, period) * Decimal(share)),
            }  # fmt: skip
            step[f"ml/web-{i}"] = {"name": f"ml/web-{i}", "properties": {"node": machine.host}, "gpuCost": 0,
                                   "window": {"start": iso(period[0]), "end": iso(period[1])}}  # fmt: skip
        steps.append(step)
    return {"code": 200, "data": steps}


def nodes(machines: Sequence[Machine]) -> Any:
    """What kubectl get nodes -o json prints."""
    cpu = {"kind": "Node", "metadata": {"name": "cpu-1", "labels": {"node.kubernetes.io/instance-type": "m5.large"}},
           "spec": {}, "status": {"capacity": {"cpu": "2"}}}  # fmt: skip
    made = [
        {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": machine.host, "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "node.kubernetes.io/instance-type": machine.instance,
                    "topology.kubernetes.io/region": machine.region, "nvidia.com/gpu.product": machine.gpu_product,
                },
            },
            "spec": {"providerID": f"aws:///{machine.region}a/{machine.instance_id}"},
            "status": {
                "capacity": {"cpu": "96", "nvidia.com/gpu": str(machine.gpus)},
                "addresses": [{"type": "InternalIP", "address": machine.ip},
                              {"type": "Hostname", "address": machine.host}],
            },
        }
        for machine in machines
    ]  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": [*made, cpu]}


def scontrol(machines: Sequence[Machine]) -> str:
    """What scontrol show node prints."""
    return (
        "\n".join(
            f"NodeName={m.host} Arch=x86_64 CoresPerSocket=48\n   CPUAlloc=8 CPUEfctv=192 CPUTot=192 CPULoad=1.02\n"
            f"   Gres=gpu:h100:{m.gpus}(S:0-1)\n   NodeAddr={m.host} NodeHostName={m.host} Version=23.11.4\n"
            f"   State=MIXED ThreadsPerCore=2 Partitions=gpu\n   InstanceId={m.instance_id} InstanceType={m.instance}\n"
            for m in machines
        )
        + "\nNodeName=login1 Arch=x86_64\n   Gres=(null)\n   NodeAddr=login1 NodeHostName=login1\n"
    )


def sinfo(machines: Sequence[Machine]) -> str:
    """What sinfo -N -o "%N %G %P" prints; a node is in two partitions."""
    lines = [f"{m.host} gpu:h100:{m.gpus} {part}" for m in machines for part in ("gpu*", "debug")]
    return "\n".join(["NODELIST GRES PARTITION", *lines, "login1 (null) debug"]) + "\n"


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document, indent=1))
    return path


def json_lines(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


Write = Callable[[Path, Sequence[Machine], Sequence[tuple[int, int]]], list[Path]]

# Every kind that holds dollars, as the files a user would give; the host's name is known through a node list if needed.
BILLS: dict[str, Write] = {
    "aws legacy csv": lambda d, m, p: [as_csv(d / "cur.csv", aws_rows(m, p)), write_json(d / "nodes.json", nodes(m))],
    "aws 2.0 parquet": lambda d, m, p: [
        as_parquet(d / "cur.parquet", snake_rows(aws_rows(m, p))), write_json(d / "nodes.json", nodes(m)),
    ],
    "aws and slurm": lambda d, m, p: [as_csv(d / "cur.csv", aws_rows(m, p)), write_text(d / "nodes.txt", scontrol(m))],
    "gcp json lines": lambda d, m, p: [json_lines(d / "gcp.json", gcp_rows(m, p))],
    "azure csv": lambda d, m, p: [as_csv(d / "azure.csv", azure_rows(m, p))],
    "focus csv": lambda d, m, p: [as_csv(d / "focus.csv", focus_rows(m, p))],
    "focus parquet": lambda d, m, p: [as_parquet(d / "focus.parquet", focus_rows(m, p))],
    "opencost json": lambda d, m, p: [write_json(d / "allocation.json", allocations(m, p))],
}  # fmt: skip
