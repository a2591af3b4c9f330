"""Source: `*.watts` files, one line `2026-01-20T00:00:00Z GPU-1 412` per reading."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from gpuledger.telemetry.mapping import Mapping, TimeRule, ValueRule
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened

COLUMNS = ["time", "gpu", "watts"]
MAPPING = Mapping(
    name="watts",
    title="watts log",
    detect=("watts",),
    required=("time", "gpu"),
    time=TimeRule(sources=("time",)),
    labels={"gpu_uuid": ("gpu",)},
    values=(ValueRule(column="power_w", sources=("watts",)),),
)


class WattsLog:
    """Lines of time, GPU and watts, with blanks between them."""

    def fits(self, head: Head) -> Fit:
        """By its suffix."""
        return Fit.SURE if head.path.suffix == ".watts" else Fit.NO

    def open(self, path: Path) -> Opened:
        """The whole file is one batch; a line without three words is reported by its number."""
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        wrong = [(at, "not three words") for at, line in enumerate(lines, 1) if len(line) != len(COLUMNS)]
        good = [line for line in lines if len(line) == len(COLUMNS)]

        def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:  # noqa: ARG001
            arrays = {name: pa.array([line[place] for line in good]) for place, name in enumerate(COLUMNS)}
            yield pa.record_batch({name: arrays[name] for name in columns})

        return Opened(COLUMNS, batches, len(good), wrong, text=True, mapping=MAPPING)


SOURCES.register("watts_log")(WattsLog())
