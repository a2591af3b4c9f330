"""What does the log of a training run say: at which rate, over sequences of how many tokens?"""

from __future__ import annotations

from gpuledger.catalog.models import Model, TransformerShape
from gpuledger.errors import InputError
from gpuledger.training.flops import unit_of

MOST = 10**12  # tokens per second, tokens per sequence, GPUs: more than anybody has


def rate_for(model: Model, tokens_per_s: float | None, images_per_s: float | None) -> float:
    """The rate in what the model reads; an error where the log counts something else."""
    unit = unit_of(model.shape)
    rate, other = (tokens_per_s, images_per_s) if unit == "token" else (images_per_s, tokens_per_s)
    option = f"--{unit}s-per-s"
    if other is not None:
        raise InputError(f"{model.name} reads {unit}s", hint=f"give {option} instead")
    if rate is None:
        raise InputError(f"{option} is missing", hint=f"give how many {unit}s a second all GPUs together train on")
    if not 0 < rate <= MOST:
        hint = f"give a rate above 0 and up to {MOST:.0e}, all GPUs together, such as {option} 60000"
        raise InputError(f"{option} is {rate:g}", hint=hint)
    return rate


def count_for(count: int) -> int:
    """How many GPUs share the work."""
    if not 1 <= count <= MOST:
        raise InputError(f"--count is {_short(count)}", hint="give how many GPUs share the work, at least 1")
    return count


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**30 else "a number of more than 30 digits"


def sequence_for(model: Model, sequence: int | None, usual: int) -> tuple[int | None, list[str]]:
    """Tokens of a sequence, and what was assumed or is odd about them, in words."""
    if not isinstance(model.shape, TransformerShape):
        if sequence is not None:
            raise InputError(f"{model.name} reads images and has no sequence", hint="leave --sequence out")
        return None, []
    longest = model.shape.max_context
    if sequence is None:
        return min(usual, longest), [f"sequences of {min(usual, longest):,} tokens, as none was given (--sequence)"]
    if not 1 <= sequence <= MOST:
        raise InputError(f"--sequence is {_short(sequence)}", hint="give how many tokens a sequence has, such as 4096")
    odd = f"{model.name} is published for at most {longest:,} tokens, the sequences have {sequence:,}"
    return sequence, [odd] if sequence > longest else []
