"""What do a million tokens cost, in dollars and in joules?"""

from __future__ import annotations

from decimal import Decimal

from gpuledger.bench.records import Run
from gpuledger.cost.pricing import PriceChoice, price_for
from gpuledger.scaling.figures import Cost, Figure, Telemetry, Tokens
from gpuledger.units import Unknown

MILLION = 1_000_000


def cost_of(run: Run, wall_s: Figure, tokens: Tokens, telemetry: Telemetry, choice: PriceChoice) -> Cost:
    """Every GPU of the run is paid for from its start to its end, busy or not."""
    made = tokens.output_tokens
    energy = _metered_j(run) if isinstance(telemetry.energy_j, Unknown) else telemetry.energy_j
    if isinstance(energy, Unknown):
        energy = telemetry.energy_j
    joules: Figure = made if isinstance(made, Unknown) else energy
    if not isinstance(made, Unknown) and not isinstance(energy, Unknown):
        joules = energy / made * MILLION if made else Unknown("no token came out")
    paid = _paid(run, wall_s, choice)
    if isinstance(paid, Unknown):
        return Cost(paid, str(paid), paid, paid, paid, paid, joules)
    each, words, usd, low, high = paid
    if isinstance(made, Unknown) or not made:
        why = made if isinstance(made, Unknown) else Unknown("no token came out")
        return Cost(each, words, usd, why, why, why, joules)
    a, b, c = (v / made * MILLION for v in (usd, low, high))
    return Cost(each, words, usd, a, b, c, joules)


def _metered_j(run: Run) -> Figure:
    """What the driver counted around each request, where a local model read its counter."""
    spent = [r.more.get("energy_j") for r in run.measured if r.ok]
    known = [float(e) for e in spent if isinstance(e, int | float) and not isinstance(e, bool)]
    return sum(known) if spent and len(known) == len(spent) else Unknown("not every answer says its energy")


def _paid(run: Run, wall_s: Figure, choice: PriceChoice) -> tuple[Decimal, str, Decimal, Decimal, Decimal] | Unknown:
    """The dear middle GPU price, its words, and the dollars of the run with their range."""
    if isinstance(wall_s, Unknown):
        return wall_s
    hours = Decimal(repr(wall_s)) / 3600
    usd = low = high = Decimal(0)
    gpus, words = 0, []
    for name in run.names:
        node = run.nodes.get(name)
        if node is None or isinstance(node.gpus, Unknown):
            return Unknown(f"node {name} does not say how many GPUs it has")
        model = None if isinstance(node.gpu, Unknown) else node.gpu
        price = price_for(model, choice)
        if isinstance(price, Unknown):
            return price
        usd += node.gpus * price.usd_per_h * hours
        low += node.gpus * price.low_usd * hours
        high += node.gpus * price.high_usd * hours
        gpus += node.gpus
        words.append(price.words)
    if not gpus:
        return Unknown("the run has no GPU")
    return usd / gpus / hours, "; ".join(dict.fromkeys(words)), usd, low, high
