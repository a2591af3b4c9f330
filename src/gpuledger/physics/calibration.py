"""What has been measured on these very GPUs?"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class MeasuredGpu(msgspec.Struct, frozen=True):
    """What a calibration found on one board; None where it did not measure."""

    gpu_uuid: str
    as_of: str
    achievable_tflops: float | None = None
    precision: str | None = None
    bandwidth_bytes_per_s: float | None = None
    idle_power_w: float | None = None


class Calibration(msgspec.Struct, frozen=True):
    """Measured boards by gpu_uuid."""

    gpus: Mapping[str, MeasuredGpu] = msgspec.field(default_factory=dict)

    def of(self, gpu_uuid: str) -> MeasuredGpu | None:
        """What was measured on one board."""
        return self.gpus.get(gpu_uuid)
