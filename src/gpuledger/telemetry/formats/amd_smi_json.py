"""What do `amd-smi metric --json` and `amd-smi monitor --json` print?

A list of GPUs, since ROCm 7 under `gpu_data`; a watch (-w) prints one per round, with epoch seconds. Names are those of
the columns of --csv, in groups; a reading has a unit of its own, and is "N/A" where there is none. MB are MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.amd_smi import METRIC, MONITOR
from gpuledger.telemetry.formats.json_text import documents, laid_out, plain
from gpuledger.telemetry.formats.logs import Row, Wrong
from gpuledger.telemetry.mapping.rules import Mapping as Layout

_MARK = re.compile(r'"(gfx_activity|socket_power|power_usage|used_vram|gfx_clk|vram_used)"\s*:')
_INDEX = re.compile(r'"gpu"\s*:\s*\d')
_METRIC_ONLY = ("gfx_activity", "socket_power", "used_vram")
# Other names of the library that amd-smi prints from.
_ALSO = dict.fromkeys(("socket", "current_socket_power", "average_socket_power"), "socket_power")
_MIB = {"MB": "MiB", "GB": "GiB"}


def _score(head: Head) -> Seen:
    """By the index of a GPU and a reading of it, as JSON."""
    text = "\n".join(head.lines)
    found = _MARK.search(text)
    return sure(found and _INDEX.search(text) and found[0])


def _read(path: Path) -> Opened:
    return laid_out(path, "amd-smi --json", _gpus, _layout)


def _layout(gpus: Sequence[Row]) -> Layout:
    return METRIC if any(name in gpu for gpu in gpus for name in _METRIC_ONLY) else MONITOR


def _gpus(path: Path) -> Iterator[Row | Wrong]:
    """The readings of each GPU. Further partitions of a board (xcp 1 and up) have none of their own."""
    for document in documents(path):
        if isinstance(document, Wrong):
            yield document
            continue
        gpus = document.get("gpu_data") if isinstance(document, dict) else document
        for gpu in gpus if isinstance(gpus, list) else ():
            if isinstance(gpu, dict) and plain(gpu.get("gpu")) and plain(gpu.get("xcp")) in ("", "0"):
                yield dict(_leaves(gpu))


def _leaves(group: Mapping[str, Any], of: str = "") -> Iterator[tuple[str, str]]:
    """What a GPU reports by the names of --csv: a clock is called after its block, memory after its unit too."""
    for key, value in group.items():
        name = f"{of}_clk" if key == "clk" else _ALSO.get(key, key)
        if isinstance(value, Mapping) and "value" not in value:
            yield from _leaves(value, key)
        elif text := plain(value):
            yield name, text
            if isinstance(value, Mapping) and value.get("unit") in _MIB:
                yield f"{name} [{_MIB[value['unit']]}]", text


FORMATS.register("amd_smi_json")(Format("amd-smi --json", Kind.TELEMETRY, _score, _read))
