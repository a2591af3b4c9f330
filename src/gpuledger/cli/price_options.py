"""Which prices do the options of a command line give or ask for?"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.options import PATH, Command, lake_option
from gpuledger.errors import InputError
from gpuledger.numerals import number_given

if TYPE_CHECKING:
    from gpuledger.catalog.prices.rows import Wanted

Price = Decimal | Mapping[str, Decimal] | None

INVENTORY_HELP = (
    "What you pay for: your own table, an AWS, Azure or Google Cloud bill, FOCUS, OpenCost allocations, Kubernetes or "
    "Slurm nodes; repeatable, files are joined."
)
inventory_option = click.option("--inventory", type=PATH, multiple=True, metavar="FILE", help=INVENTORY_HELP)


def paid_options(command: Command) -> Command:
    """The lake and what is paid; the latter is given to the command as `paid`."""

    @lake_option
    @inventory_option
    @click.option(
        "--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; repeat for each GPU."
    )
    @click.option("--instance", metavar="NAME", help="Price the GPUs as in this instance type, such as p5.48xlarge.")
    @click.option("--region", metavar="NAME", help="Region of --instance, such as us-east-1.")
    @click.option("--teams", type=PATH, help="TOML file that assigns namespaces to teams.")
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        names = ("inventory", "prices", "instance", "region", "teams")
        return command(paid={name: given.pop(name) for name in names}, **given)

    return inner


def price_filters(command: Command) -> Command:
    """The filters all price commands share, given to the command as `filters` for `wanted_of`."""

    @click.option("--gpu", metavar="NAME", help="Only this GPU, by its catalog name or a cloud's name for it.")
    @click.option("--count", "gpus", type=int, metavar="N", help="Only instances with this many GPUs.")
    @click.option("--cloud", metavar="NAME", help="Only this cloud.")
    @click.option("--region", metavar="NAME", help="Only this region.")
    @click.option("--zone", metavar="NAME", help="Only this zone.")
    @click.option("--instance", metavar="NAME", help="Only this instance type, such as p5.48xlarge.")
    @click.option("--purchase", type=click.Choice(["on-demand", "spot"]), help="Only on-demand or only spot prices.")
    @click.option("--max-price", metavar="USD", help="Highest price, in dollars per GPU-hour.")
    @click.option("--min-memory", type=float, metavar="GB", help="Least memory per GPU.")
    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        names = ("gpu", "gpus", "cloud", "region", "zone", "instance", "purchase", "max_price", "min_memory")
        return command(filters={name: given.pop(name) for name in names}, **given)

    return inner


def wanted_of(*, purchase: str | None, max_price: str | None, min_memory: float | None, **named: Any) -> Wanted:
    """The filters, checked."""
    from gpuledger.catalog.prices.rows import Wanted

    text, least = max_price, min_memory
    hint = "give dollars as a plain number, for example 2.50"
    most = None if text is None else number_given(text, "--max-price", "price", hint)
    if least is not None and not 0 < least < math.inf:
        raise InputError(f"--min-memory {least:g} is not an amount of memory", hint="give GB above 0, for example 80")
    kind: Any = purchase and purchase.replace("-", "_")
    return Wanted(purchase=kind, usd_per_gpu_h_max=most, memory_gb_min=least, **named)


def price_of(given: Sequence[str]) -> Price:
    """--price 2.50, or --price GPU=2.50 for each GPU."""
    plain = [text for text in given if "=" not in text]
    if plain and len(given) > 1:
        raise InputError(
            f"--price {plain[0]} is for every GPU, so no other can be given", hint="name the GPU of each: H100=2.50"
        )
    if plain:
        return usd_of(plain[0], "--price")
    named = [text.rpartition("=") for text in given]
    names = [name.strip() for name, _, _ in named]
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise InputError(f"--price gives two prices for {twice}", hint="give one")
    return {name: usd_of(value, f"--price {name}") for name, (_, _, value) in zip(names, named, strict=True)} or None


def usd_of(text: str, option: str) -> Decimal:
    """Dollars of an option, checked."""
    from gpuledger.catalog.prices.offers import PRICE_RANGE, plausible_usd_per_h

    hint = f"give dollars {PRICE_RANGE.removesuffix(' per hour')} as a plain number, for example 2.50"
    value = number_given(text, option, "price", hint)
    if value != 0 and not plausible_usd_per_h(value):
        raise InputError(f"{option} {text!r} is not a price", hint=hint)
    return value
