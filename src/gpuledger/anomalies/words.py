"""How is a finding said, and what should be done about it?"""

from __future__ import annotations

from gpuledger.anomalies.statement import Evidence, Finding, Kind
from gpuledger.units import Unknown

WHAT: dict[Kind, str] = {
    "heat": "held down by heat",
    "power limit": "held down by a power limit",
    "clock": "runs at a low clock",
    "memory": "slow memory",
    "slow": "slow at the same work",
    "starved": "does less than its peers",
    "idle": "idle while its peers work",
    "driver errors": "driver errors (XID)",
    "PCIe": "PCIe errors",
    "memory rows": "memory rows fail",
}
NEXT: dict[Kind, str] = {
    "heat": "Check fans, air flow and heat sink of the host; compare with its neighbors: nvidia-smi -q -d TEMPERATURE.",
    "power limit": "Look for a lowered limit and raise it: nvidia-smi -q -d POWER; nvidia-smi -pl WATTS.",
    "clock": "Look for locked clocks or a power brake: nvidia-smi -q -d CLOCK,PERFORMANCE; reset with nvidia-smi -rgc.",
    "memory": "Check memory clock and ECC: nvidia-smi -q -d CLOCK,ECC,ROW_REMAPPER; run dcgmi diag -r 3 on the host.",
    "slow": "Drain the host and run dcgmi diag -r 3; check PCIe width and who else uses the host's CPUs and network.",
    "starved": "Its utilization fell too: see whether it waits for input or gets fewer requests than its peers.",
    "idle": "See whether its process hangs or waits for the others; restart that rank or replica.",
    "driver errors": "Look the codes up in dmesg (NVRM: Xid); drain the host and reset the GPU if they come again.",
    "PCIe": "Check link width and speed (nvidia-smi -q -d PCIE); reseat the board or the riser.",
    "memory rows": "Check nvidia-smi -q -d ROW_REMAPPER; reset the GPU, and replace it if a remapping failed.",
}
NEXT_AMD: dict[Kind, str] = {
    "heat": "Check fans, air flow and heat sink of the host: amd-smi metric -t.",
    "power limit": "Look for a lowered power cap and raise it: amd-smi static -l; amd-smi set -o WATTS.",
    "clock": "Look for a forced performance level: amd-smi metric -c -l; reset it with amd-smi reset -c.",
    "memory": "Check memory clock and ECC: amd-smi metric -c -e; run the ROCm validation suite on the host.",
    "slow": "Drain the host and run the ROCm validation suite; check who else uses the host's CPUs and network.",
    "PCIe": "Check link width and speed (amd-smi metric -P); reseat the board.",
    "driver errors": "Look the errors up in dmesg (amdgpu); drain the host and reset the GPU if they come again.",
    "memory rows": "Check amd-smi bad-pages; replace the GPU if pages keep failing.",
}


def next_step(found: Finding) -> str:
    """What to do first."""
    amd = (found.gpu_model or "").upper().startswith(("AMD", "MI"))
    return NEXT_AMD.get(found.kind, NEXT[found.kind]) if amd else NEXT[found.kind]


def reading_words(one: Evidence) -> str:
    """One reading: what it is, what it should be, and by how much it changed."""
    if isinstance(one.now, Unknown) or isinstance(one.expected, Unknown):
        return f"{one.title}: {change_words(one)}"
    if one.shape == "count":
        return f"{one.title}: {one.now:,.0f}, where {one.expected:,.1f} would be usual"
    with_what = "before" if one.basis == "own past" else "peers"
    return f"{one.title}: {_value(one.now, one)}, {with_what} {_value(one.expected, one)} ({change_words(one)})"


def change_words(one: Evidence) -> str:
    """By how much, with its range."""
    low, high = sorted((one.change_low, one.change_high))
    unit = f" {one.change_unit}"
    return f"{one.change:+.1f}{unit}, range {low:+.1f} to {high:+.1f}"


def _value(value: float, one: Evidence) -> str:
    places = 0 if abs(value) >= 100 else 1
    return f"{value:,.{places}f} {one.unit}"
