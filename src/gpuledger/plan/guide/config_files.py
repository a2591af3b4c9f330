"""How does a user get the three files to edit?"""

from __future__ import annotations

from pathlib import Path

from gpuledger.errors import FileFault, map_os_error
from gpuledger.plan.guide.config import SECTIONS, reference_dir

SCRIPTS = ("gpu_migration_analyzer.py", "config_viewer.py")


def init_config(folder: Path, *, scripts: bool = False, force: bool = False) -> list[Path]:
    """Write the shipped files; with `scripts` in the guide's layout, config/ and two scripts beside it.

    A file that is there already is left alone unless `force` is given.
    """
    shipped = reference_dir()
    config = folder / "config" if scripts else folder
    wanted = {config / name: shipped.joinpath(name) for name in SECTIONS}
    wanted |= {folder / name: shipped.joinpath(f"{name}.txt") for name in SCRIPTS} if scripts else {}
    there = [path for path in wanted if path.exists()]
    if there and not force:
        raise FileFault(there[0], "the file is there already", hint="name another folder, or add --force to replace it")
    try:
        config.mkdir(parents=True, exist_ok=True)
        for path, source in wanted.items():
            path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise map_os_error(error, folder, "write the configuration") from error
    return list(wanted)
