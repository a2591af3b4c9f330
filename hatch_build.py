"""Compile the functions of `gpuledger.native` when the package is built or installed from source.

Where no C compiler is found the package is built without them and runs in numpy, with the same digits.
GPULEDGER_NATIVE=off builds without them on purpose (a wheel for any machine), =on fails where they cannot be built.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM = Path("src/gpuledger/native")
SOURCES = tuple(ROOM / name for name in ("kernels.c", "packs.c", "csv_block.c"))
LIBRARY = ROOM / "_kernels.so"
# No fused multiply-add and no fast math: the digits are those of numpy. Neither paths nor a build id: the same bytes.
FLAGS = (
    "-O3", "-std=gnu11", "-fPIC", "-shared", "-s", "-ffile-prefix-map=.=",
    "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
LINUX = ("-fopenmp-simd", "-Wl,--build-id=none")


class Native(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the library and puts it into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel or an editable install is made."""
        wish = os.environ.get("GPULEDGER_NATIVE", "")
        target = Path(self.root) / LIBRARY
        if wish == "off" or not _compiled(Path(self.root), must=wish == "on"):
            return
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform(target)}"
            build_data["force_include"][str(target)] = "gpuledger/native/_kernels.so"


def _compiled(root: Path, *, must: bool) -> bool:
    compiler = shlex.split(os.environ.get("CC", "")) or [c for c in ("cc", "gcc", "clang") if shutil.which(c)][:1]
    if not compiler:
        if must:
            raise SystemExit("no C compiler: install gcc or clang, or set GPULEDGER_NATIVE=off")
        return False
    more = LINUX if sys.platform.startswith("linux") else ()
    aside = LIBRARY.with_suffix(f".{os.getpid()}")
    command = [*compiler, *FLAGS, *more, "-o", str(aside), *map(str, SOURCES), "-lm"]
    try:
        done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)  # noqa: S603
        failed = done.stderr if done.returncode or not (root / aside).is_file() else None
    except OSError as error:
        failed = str(error)
    if failed is not None:
        if must:
            raise SystemExit(f"{' '.join(command)} failed:\n{failed}")
        return False
    (root / aside).replace(root / LIBRARY)
    return True


def _platform(library: Path) -> str:
    """The machines it runs on; on Linux those whose C library is as new as the newest function it asks for."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    asked = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())]
    oldest = f"manylinux_2_{max([17, *asked])}"  # 17: what every installer of wheels knows
    return platform.replace("linux", oldest, 1) if platform.startswith("linux") else platform
