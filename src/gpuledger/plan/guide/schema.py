"""What may the three configuration files of the migration planner hold, and the file of its own judgments?"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Annotated, Literal, get_args

import msgspec

from gpuledger.catalog.files import Fact, data_dir, load_toml
from gpuledger.catalog.models import Component, Model, TransformerShape
from gpuledger.catalog.models.params import total_params

PriceScope = Literal["gpu", "instance"]
FiguresFrom = Literal["catalog", "configuration"]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Price = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Hours = Annotated[float, msgspec.Meta(gt=0, le=744)]

# GPU counts above this are not a single job of this planner; a typing error is far more likely.
MOST_GPUS = 4096


class WorkloadType(Enum):
    """What the GPUs are for."""

    TRAINING = "training"
    FINE_TUNING = "fine_tuning"
    INFERENCE = "inference"


class ModelSize(Enum):
    """The four sizes of the reference configuration; a configuration may add others by name."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    MASSIVE = "massive"


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figure to use instead of the one in the field of that name, and why."""

    value: float
    why: str


class Instance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of instance. Prices are of one GPU or of the whole instance, by `price_scope`."""

    name: str
    family: str
    gpu_type: str
    vcpus: Count
    gpu_memory_gb: Positive
    gpus_per_instance: Count
    compute_tflops: Positive
    interconnect_type: str
    interconnect_bandwidth_gbps: Positive
    on_demand_cost_per_hour: Price
    spot_cost_per_hour: Price | None = None
    memory_bandwidth_factor: Positive
    interconnect_multiplier: Positive
    description: str = ""
    price_scope: PriceScope | None = None
    catalog_gpu: str | None = None
    memory_bandwidth_gb_per_s: Positive | None = None
    market_instances: tuple[str, ...] = ()
    corrections: dict[str, Correction] = {}
    figures_from: FiguresFrom | None = None

    @property
    def gpus(self) -> int:
        """GPUs in one instance, corrected where the file has a correction."""
        found = self.corrections.get("gpus_per_instance")
        return int(found.value) if found else self.gpus_per_instance


class SizeClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A size of model: parameters in 10^9, and the rule of thumb for its memory."""

    name: str
    parameter_count_billion: Positive
    memory_overhead_multiplier: Annotated[float, msgspec.Meta(ge=1)]
    description: str = ""
    typical_use_cases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class PrecisionKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number format of the weights."""

    bytes_per_parameter: Positive
    description: str = ""


class WorkloadKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Preferences and rule of thumb of training, fine-tuning or inference."""

    preferred_families: tuple[str, ...]
    memory_overhead_multiplier: Annotated[float, msgspec.Meta(ge=1)]
    use_case: str


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much each of the three scores counts."""

    cost: Share
    performance: Share
    reliability: Share


class Priority(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the reader cares about most."""

    name: str
    weights: Weights


class UseCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the workload runs: which priority that implies, and whether it tolerates interruption."""

    priority: str
    spot_suitable: bool
    stands_for: str = ""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What runs now."""

    current_instance: str
    current_gpu_count: Annotated[int, msgspec.Meta(ge=1, le=MOST_GPUS)]
    workload_type: str
    model_size: str
    monthly_hours: Hours = 720
    use_spot: bool = False
    precision: str = "fp16"
    keep_gpu_count: bool = False


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario with a name, what is expected of it, and its tags."""

    name: str
    scenario: Scenario
    description: str = ""
    expected_outcome: str = ""
    tags: tuple[str, ...] = ()
    use_case: str | None = None


class SetPurpose(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a set of workloads is for."""

    purpose: str
    use_case: str = ""


Measure = Literal["dollars", "throughput", "headroom", "interconnect", "availability", "risk", "effort"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


class Scores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each of the three scores is a mean of."""

    cost: dict[Measure, Share]
    performance: dict[Measure, Share]
    reliability: dict[Measure, Share]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the planner draws its lines."""

    headroom_full_ratio: Share
    headroom_thin_ratio: Share
    worth_saving_pct: float
    worth_speed_ratio: float
    counts_times: Count
    most_gpus: Count
    large_from_params: float
    serving_batch: Count
    serving_context: Count
    assumed_busy_ratio: Share
    enough_speed_ratio: float
    enough_h: Positive
    same_score: Share
    slow_network_gbps: Positive
    network_ratio: Share
    runners_up: Count
    zones_wide: Count


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reason a move may go wrong, in points, or one part of the work of it, in hours."""

    amount: int | float
    words: str


class Judgment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All the parts of a risk or an effort, and what their sum means."""

    most: int | float
    low_up_to: float
    medium_up_to: float
    parts: dict[str, Part]


class PatternKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A common migration pattern, and what is claimed for it."""

    words: str
    claim: str


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: Literal[1]
    as_of: str
    scores: Scores
    limits: Limits
    risks: Judgment
    efforts: Judgment
    guidelines: dict[str, str]
    patterns: dict[str, PatternKind]
    generations: dict[str, tuple[str, ...]]


@cache
def migrate_facts() -> Facts:
    """The shipped judgments."""
    return load_toml(data_dir("gpuledger.plan", "data", "migrate.toml"), Facts)


# A model known by its number of parameters only keeps the proportion of width and depth of Llama 2 70B; its gated MLP
# takes the parameters that are left, so that their sum is exact. Caches and activations follow from this shape.
HEAD_DIM, KV_HEADS, VOCAB, CONTEXT = 128, 8, 32_000, 32_768
WIDTH_PER_LAYER = 8192 / 80
# A multiple of this keeps heads and MLP divisible among up to eight GPUs.
WIDTH_STEP, MLP_STEP = 1024, 256
DENSE_WORDS = (
    "only the number of parameters is given, so the model is taken to be dense, in the proportions of Llama 2 70B, "
    "with 8 key-value heads and a vocabulary of 32,000"
)


@cache
def dense_model(name: str, params: int) -> Model:
    """A dense model of exactly this number of parameters."""
    width = (params * WIDTH_PER_LAYER / 12) ** (1 / 3)
    hidden = max(WIDTH_STEP, round(width / WIDTH_STEP) * WIDTH_STEP)
    layers = max(1, round((params - 2 * VOCAB * hidden) / (12 * hidden * hidden)))
    shape = TransformerShape(
        layers=layers, hidden=hidden, heads=hidden // HEAD_DIM, kv_heads=KV_HEADS, head_dim=HEAD_DIM,
        mlp_hidden=MLP_STEP, mlp_gated=True, vocab=VOCAB, tied_embeddings=False, max_context=CONTEXT,
    )  # fmt: skip
    more = max(0, (params - total_params(shape)) // (3 * hidden * layers) // MLP_STEP) * MLP_STEP
    shape = msgspec.structs.replace(shape, mlp_hidden=MLP_STEP + more)
    rest, source = params - total_params(shape), "derived from the number of parameters"
    fact = Fact(max(rest, 0), source, "2026-11", note="what whole widths leave over")
    extra = (Component(name="rest", role="rest", params=fact),) if rest > 0 else ()
    return Model(name=name, shape=shape, extra=extra, source=source, as_of="2026-11")
