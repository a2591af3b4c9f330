"""What was a GPU doing in one sample?

Judgment needs the state of each sample: a mean over an hour cannot be taken apart again. States are decided by sample
when lines are posted; time, activity and energy are then summed by state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec
import numpy as np

from gpuledger.catalog.thresholds import Idle
from gpuledger.physics.issue import slim_kinds
from gpuledger.physics.row_facts import RowFacts, state_rules
from gpuledger.units import PPM

TENSOR_KINDS = ("hmma", "imma", "dfma")
VECTOR = ("fp32", "fp16", "fp64")
POWER_CAP_BITS, THERMAL_BITS = 0x4 | 0x80, 0x20 | 0x40  # clock event reasons as NVML numbers them


class State(IntEnum):
    """The state of a device in one sample. `*_UNSEEN`: not all compute pipes are recorded, so more work may hide."""

    IDLE = 0  # no work for 30 s and longer
    WAIT = 1  # no work, between two pieces of work less than 30 s apart
    LIGHT = 2  # works; neither the pipes nor the memory are used much
    MATRIX = 3  # the tensor pipe does most
    VECTOR = 4  # the vector pipes do most
    MEMORY = 5  # the memory interface does most
    CAPPED = 6  # at a power limit set below the board's own
    PLAIN = 7  # works; no pipe is recorded
    UNSTATED = 8  # neither activity nor utilization is known
    LIGHT_UNSEEN = 9
    MATRIX_UNSEEN = 10
    VECTOR_UNSEEN = 11
    MEMORY_UNSEEN = 12
    MATRIX_THIN = 13  # as MATRIX, few warps and vector work next to products, as in decoding
    MEMORY_THIN = 14
    MATRIX_ALONE = 15  # as MATRIX, few warps and products alone
    MEMORY_ALONE = 16

    @property
    def label(self) -> str:
        """As lines write it."""
        return self.name.lower().replace("_", "-")


LABELS = tuple(s.label for s in State)
UNSEEN = State.LIGHT_UNSEEN - State.LIGHT
RESTING = (State.IDLE, State.WAIT, State.UNSTATED)
BY_MEMORY = (State.MEMORY, State.MEMORY_UNSEEN, State.MEMORY_THIN, State.MEMORY_ALONE)
BY_PIPES = tuple(s for s in State if s.label.split("-")[0] in ("light", "matrix", "vector"))
NOT_ALL_SEEN = tuple(s for s in State if s.label.endswith("-unseen"))
_SEEN = tuple(range(State.LIGHT, State.MEMORY + 1))
_SLIM = ((State.MATRIX_THIN, State.MATRIX_ALONE), (State.MEMORY_THIN, State.MEMORY_ALONE))
# How memory stands in a sample without work.
FREE, HELD, NO_MEMORY = 0, 1, 2


class Judged(msgspec.Struct, frozen=True):
    """State by row, how memory stands, and the busy share of each row's time (NaN where it is not known).

    `low`: rows that are idle by utilization alone, though it is not next to nothing: the bill calls them idle, but they
    are not part of a stretch without work. None where there are none.
    """

    state: np.ndarray
    memory: np.ndarray
    busy: np.ndarray | None
    by_engine: np.ndarray | None
    low: np.ndarray | None = None


Readings = Mapping[str, np.ndarray]


def credible(readings: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The readings without those that cannot be: power, limit or clock of 0, a limit far exceeded, no memory at all.

    The second die of an AMD board reports 0 W: the first one reports the power of both.
    """
    out = dict(readings)

    def blank(name: str, wrong: np.ndarray) -> None:
        if wrong.any():
            out[name] = np.where(wrong, np.nan, readings[name]).astype(readings[name].dtype)

    limit, power, clock = (readings.get(n) for n in ("power_limit_w", "power_w", "sm_clock_mhz"))
    if limit is not None:
        wrong = limit <= 0
        if power is not None:
            wrong |= power > state_rules().capped.exceeded_ratio * limit
        blank("power_limit_w", wrong)
    if clock is not None:
        blank("sm_clock_mhz", clock <= 0)
    if power is not None:
        blank("power_w", power <= 0)
    used, free = readings.get("fb_used_bytes"), readings.get("fb_free_bytes")
    if used is not None and free is not None:
        nothing = (used == 0) & (free == 0)
        blank("fb_used_bytes", nothing)
        blank("fb_free_bytes", nothing)
    return out


def judge(readings: Readings, facts: RowFacts, idle: Idle, n: int) -> Judged:
    """The state of each row by itself; which of the still ones are waits is decided by their neighbors."""
    activity = _either(readings.get("engine_ratio"), readings.get("sm_ratio"))
    util = readings.get("gpu_util_ratio")
    busy, video = _either(activity, util), _video(readings)
    if busy is None and video is None:
        return Judged(np.full(n, State.UNSTATED, np.int8), np.zeros(n, np.int8), None, None)
    if busy is None:
        busy = np.full(n, np.nan)
    low = None
    if activity is None:
        still = (busy < idle.util_below_ratio) & ~_draws_power(readings, facts, n)
        low = still & (busy >= idle.activity_below_ratio)
    else:
        still = activity < idle.activity_below_ratio
        if util is not None and (blank := np.isnan(activity)).any():
            by_util = blank & (util < idle.util_below_ratio) & ~_draws_power(readings, facts, n)
            low = by_util & (util >= idle.activity_below_ratio)
            still |= by_util
    still &= ~_copies(readings, n)
    state = _working(readings, facts, n)
    if video is not None:
        still &= ~(video > 0)
        # Who codes video uses no pipe: what it does is not recorded as one.
        state[(video > 0) & np.isin(state, _SEEN)] += UNSEEN
        busy = np.fmax(busy, np.where(video > 0, video, np.nan))
    state[still] = State.IDLE
    state[np.isnan(busy)] = State.UNSTATED
    if low is not None and not low.any():
        low = None
    return Judged(state, memory_of(readings, still, idle), busy, activity, low)


def _draws_power(readings: Readings, facts: RowFacts, n: int) -> np.ndarray:
    """Rows with more power than an idle board draws: utilization alone may look away while work comes in bursts."""
    power = readings.get("power_w")
    if power is None:
        return np.zeros(n, dtype=bool)
    limit = readings.get("power_limit_w")
    most = facts.board_w if limit is None else np.where(np.isnan(limit), facts.board_w, limit)
    share = state_rules().bursts.power_above_idle_from_ratio
    return np.asarray(power >= facts.idle_w + share * (most - facts.idle_w))  # NaN, unknown, is not above


def _copies(readings: Readings, n: int) -> np.ndarray:
    """Rows with much PCIe traffic: the copy engines work without a kernel, and input on its way is not idleness."""
    traffic = [readings[c] for c in ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s") if c in readings]
    if not traffic:
        return np.zeros(n, dtype=bool)
    both = _or_zero(traffic[0])
    for more in traffic[1:]:
        both = both + _or_zero(more)
    return np.asarray(both >= state_rules().copies.pcie_from_bytes_per_s)


def _video(readings: Readings) -> np.ndarray | None:
    """The utilization of encoder or decoder, the higher one, where one of them works, else 0; None where none does."""
    least, most = state_rules().video.util_from_ratio, None
    for name in ("enc_util_ratio", "dec_util_ratio"):
        values = readings.get(name)
        if values is not None and (at_work := values >= least).any():
            own = np.where(at_work, values, 0.0)
            most = own if most is None else np.maximum(most, own)
    return most


def _or_zero(values: np.ndarray) -> np.ndarray:
    """Values, 0 where they are not known."""
    blank = np.isnan(values)
    return np.where(blank, values.dtype.type(0), values) if blank.any() else values


def _either(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """The first where it is known, else the second."""
    if first is None or second is None:
        return second if first is None else first
    blank = np.isnan(first)
    return np.where(blank, second, first) if blank.any() else first


def memory_of(readings: Readings, still: np.ndarray, idle: Idle) -> np.ndarray:
    """Whether memory is held, free or not recorded, in the rows without work."""
    out = np.zeros(len(still), np.int8)
    where = np.flatnonzero(still)
    used = readings.get("fb_used_bytes")
    if not len(where):
        return out
    if used is None:
        out[where] = NO_MEMORY
        return out
    free, used = readings.get("fb_free_bytes"), used[where]
    card = np.nan_to_num(used + free[where]) if free is not None else np.zeros(len(where))
    limit = np.maximum(idle.held_above_bytes, idle.held_above_card_ratio * card)
    out[where] = np.where(np.isnan(used), NO_MEMORY, np.where(used > limit, HELD, FREE))
    return out


def _working(readings: Readings, facts: RowFacts, n: int) -> np.ndarray:
    """The state of each row as if it worked."""
    known = {p: readings[f"{p}_ratio"] for p in ("tensor", *TENSOR_KINDS, *VECTOR) if f"{p}_ratio" in readings}
    state = np.full(n, State.PLAIN, np.int8)
    if known:
        matrix, vector = _shares(known, readings, facts)
        _by_share(state, matrix, vector, readings, facts)
    capped = _capped(readings, facts)
    if capped is not None:
        state[capped] = State.CAPPED
    return state


def clock_mhz(readings: Readings, facts: RowFacts) -> np.ndarray:
    """The SM clock; the rated one where none is recorded."""
    clock = readings.get("sm_clock_mhz")
    if clock is None:
        return np.asarray(facts.rated_mhz, dtype=np.float64)
    blank = np.isnan(clock)
    return np.where(blank, facts.rated_mhz, clock) if blank.any() else clock


def _shares(
    known: Mapping[str, np.ndarray], readings: Readings, facts: RowFacts
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Share of the peak by tensor and by vector work; NaN where the pipe or its worth is not known, None: nowhere."""
    mhz = clock_mhz(readings, facts)

    def share(pipe: str) -> np.ndarray | None:
        worth = facts.per_activity(pipe) if pipe in known else None
        return None if worth is None else known[pipe] * mhz * worth

    def together(main: str, others: tuple[str, ...]) -> np.ndarray | None:
        """Known where the main pipe is; the others add what they are known to do."""
        found = share(main)
        for more in map(share, others):
            if found is not None and more is not None:
                found = found + _or_zero(more)
        return found

    kinds, whole = together("hmma", ("imma", "dfma")), share("tensor")
    if kinds is not None and whole is not None:
        # One kind that is not recorded may be the one that works: the pipe as a whole shows it.
        apart = np.isnan(whole)
        if all(p in known for p in TENSOR_KINDS):
            apart = apart | ~np.isnan(known["imma"] + known["dfma"])
        kinds = np.where(apart, kinds, np.nan)
    return _either(kinds, whole), together("fp32", ("fp16", "fp64"))


def _by_share(
    state: np.ndarray, matrix: np.ndarray | None, vector: np.ndarray | None, readings: Readings, facts: RowFacts
) -> None:
    """The larger of compute and memory decides; little of either is light."""
    nowhere = np.ones(len(state), dtype=bool)
    no_matrix = nowhere if matrix is None else np.isnan(matrix)
    no_vector = nowhere if vector is None else np.isnan(vector)
    some = ~(no_matrix & no_vector)
    if not some.any():
        return
    dram = readings.get("dram_ratio")
    tensor, lanes = (np.zeros(len(state)) if v is None else _or_zero(v) for v in (matrix, vector))
    if vector is None:  # as most exporters leave it
        compute, found = tensor, np.full(len(state), State.MATRIX, np.int8)
    else:
        compute = tensor + lanes
        found = np.where(tensor >= lanes, np.int8(State.MATRIX), np.int8(State.VECTOR))
    top = compute
    if dram is not None:
        memory = _or_zero(dram)
        found[memory > compute] = State.MEMORY
        top = np.maximum(compute, memory)
    found[top < state_rules().light.share_below_ratio] = State.LIGHT
    _mark_hidden(found, no_matrix, no_vector, readings, facts)
    if some.all():
        state[:] = found
    else:
        state[some] = found[some]


def _mark_hidden(
    found: np.ndarray, no_matrix: np.ndarray, no_vector: np.ndarray, readings: Readings, facts: RowFacts
) -> None:
    """Mark what products on few warps are, and samples in which more work may hide."""
    hidden = no_matrix | no_vector
    if hidden.any() and (ruled_out := _vector_ruled_out(readings, facts)) is not None:
        hidden &= no_matrix | ~ruled_out
    if (rule := facts.thin()) and (kinds := slim_kinds(readings, rule)) is not None:
        for kind, matrix, memory in zip(kinds, *_SLIM, strict=True):
            seen = kind & ~hidden
            found[seen & (found == State.MATRIX)] = matrix
            found[seen & (found == State.MEMORY)] = memory
    found += hidden.view(np.int8) * np.int8(UNSEEN)


def _vector_ruled_out(readings: Readings, facts: RowFacts) -> np.ndarray | None:
    """Where the power leaves no room for vector work; None where that is unknown for every row."""
    power, tensor, dram = (readings.get(n) for n in ("power_w", "tensor_ratio", "dram_ratio"))
    if power is None or tensor is None or dram is None or not (budget := facts.budget()):
        return None
    left = power - budget["idle_w"] - budget["tensor_w"] * tensor - budget["dram_w"] * dram
    return np.asarray(left < budget["vector_from_w"])  # NaN, not known, is not below


def _capped(readings: Readings, facts: RowFacts) -> np.ndarray | None:
    """Rows at a power limit that was set below the board's own; None where no limit is recorded."""
    limit, power = readings.get("power_limit_w"), readings.get("power_w")
    if limit is None or power is None:
        return None
    rule, bits = state_rules().capped, readings.get("throttle_bits")
    low = limit < rule.limit_below_board_ratio * facts.board_w  # an unknown board power is not above anything
    capped = low & (power >= rule.power_from_limit_ratio * limit)
    if bits is not None:
        said = ~np.isnan(bits)
        capped &= ~said | ((np.where(said, bits, 0).astype(np.int64) & POWER_CAP_BITS) != 0)
    return np.asarray(capped & ~np.isnan(limit))


def ppm(values: np.ndarray) -> np.ndarray:
    """Shares as whole parts per million."""
    out = np.multiply(values, PPM, dtype=np.float64)
    return np.rint(out, out=out)
