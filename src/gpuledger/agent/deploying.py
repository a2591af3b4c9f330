"""Which files put an agent on a host or a cluster? One template per file, filled in for this version and this lake.

templates/KIND.FILE.j2 becomes DIR/FILE. `sidecar.yaml.j2` has no folder of its own: its name is its kind.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuledger import __version__
from gpuledger.catalog.files import data_dir
from gpuledger.errors import Extra, InputError, MissingExtra, UnknownName, map_os_error
from gpuledger.lake.stores.address import address_in
from gpuledger.units import size_bytes

if TYPE_CHECKING:
    from jinja2 import Environment

SPOOL = "/var/lib/gpuledger/spool"
# Where an agent keeps copies of the files it put into a bucket, and how large they may grow.
CACHE, CACHE_SIZE = "/var/lib/gpuledger/cache", "256MiB"
# One lake takes about 600 hosts at this interval (docs/agent.md).
EVERY = "10m"
_FILES = {
    "kubernetes": {"agent.yaml": "kubernetes.agent.yaml.j2", "tidy.yaml": "kubernetes.tidy.yaml.j2"},
    "sidecar": {"sidecar.yaml": "sidecar.yaml.j2"},
    "systemd": {
        name: f"systemd.{name}.j2"
        for name in ("gpuledger-agent.service", "gpuledger-tidy.service", "gpuledger-tidy.timer")
    },
    "slurm": {
        "prolog.sh": "slurm.prolog.sh.j2",
        "epilog.sh": "slurm.epilog.sh.j2",
        "gpuledger-agent.service": "systemd.gpuledger-agent.service.j2",
    },
    "image": {"Containerfile": "image.Containerfile.j2", "requirements.txt": "image.requirements.txt.j2"},
}
KINDS = tuple(sorted(_FILES))
# What goes into files of three languages must be plain in all of them.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,~-]+")
_FORMS = {
    "image": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]*(@sha256:[0-9a-f]{64})?"),
    "namespace": re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"),
}
_EXAMPLES = {
    "image": "for example registry.example.com/gpuledger:0.1.0",
    "namespace": "Kubernetes takes small letters, digits and -, at most 63 of them",
}


@dataclass(frozen=True)
class Place:
    """Where agents run and ship to."""

    lake: str
    image: str = f"gpuledger:{__version__}"
    namespace: str = "gpuledger"
    cluster: str = "default"
    device: str = "nvml"
    spool: str = SPOOL
    spool_max: str = "2GiB"
    every: str = EVERY
    hz: float = 1.0
    program: str = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, str) and value and not _PLAIN.fullmatch(value):
                hint = "use letters, digits and _ . / : @ % + = , ~ -"
                raise InputError(f"{name} {value!r} has characters that cannot be put into these files", hint=hint)
        for name, form in _FORMS.items():
            if not form.fullmatch(getattr(self, name)):
                raise InputError(f"{name} {getattr(self, name)!r} is not one", hint=_EXAMPLES[name])
        if self.device not in ("nvml", "amd"):
            raise UnknownName("device", self.device, ("nvml", "amd"))
        if not self.remote and not self.lake.startswith("/"):
            raise InputError(
                f"the lake {self.lake!r} is a relative path",
                hint="give the path it has on every host, or s3://BUCKET/LAKE",
            )

    @property
    def remote(self) -> bool:
        """Whether the lake is on an object store rather than in a folder."""
        return address_in(self.lake) is not None


def contents_of(kind: str, place: Place) -> dict[str, str]:
    """The files of a kind of deployment by name."""
    if kind not in _FILES:
        raise UnknownName("deployment", kind, _FILES)
    spool_max = size_bytes(place.spool_max)
    filled: dict[str, Any] = {
        **vars(place),
        "version": __version__,
        "remote": place.remote,
        "hz": f"{place.hz:g}",
        "program": place.program or _program(),
        # Room for the batch that is sealed before the oldest goes.
        "spool_limit": f"{spool_max * 5 // 4 // (1 << 20)}Mi",
        "cache": CACHE,
        "cache_size": CACHE_SIZE,
        "pins": _pins(place) if kind == "image" else (),
    }
    made = {}
    for name, template in _FILES[kind].items():
        text = _templates().get_template(template).render(filled)
        made[name] = text.rstrip("\n") + "\n"
    return made


def write_files(kind: str, place: Place, folder: Path, *, replace: bool = False) -> list[Path]:
    """Write the files of a deployment into a folder; scripts may be run."""
    made = contents_of(kind, place)
    there = [folder / name for name in made if (folder / name).exists()]
    if there and not replace:
        raise InputError(f"{there[0]} exists", hint="give another --out, or --force to replace it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755 if name.endswith(".sh") else 0o644)
    except OSError as error:
        raise map_os_error(error, folder, "write the files") from error
    return [folder / name for name in made]


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Not pages but YAML, shell and units: what is filled in is checked by `Place`.
    found = Environment(  # noqa: S701
        loader=FileSystemLoader(str(data_dir(__package__, "templates"))),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    found.filters["quoted"] = lambda text: shlex.quote(str(text))
    found.filters["unit"] = lambda text: str(text).replace("%", "%%")  # systemd's own mark of what it fills in
    return found


def _program() -> str:
    """The command as installed here."""
    here = Path(sys.executable).with_name("gpuledger")
    return shutil.which("gpuledger") or (str(here) if here.exists() else "/usr/local/bin/gpuledger")


def _pins(place: Place) -> list[tuple[str, str]]:
    """gpuledger and everything it needs for that lake and those GPUs, with the versions installed here."""
    pins: dict[str, str] = {}
    waiting = ["gpuledger"]
    needed: dict[str, tuple[bool, str, Extra]] = {
        "obstore": (place.remote, "an image for a lake on an object store", "stores"),
        "amdsmi": (place.device == "amd", "an image for AMD GPUs", "amd"),
    }
    for name, (is_needed, what, extra) in needed.items():
        if is_needed and find_spec(name) is None:
            raise MissingExtra(what, extra)
        waiting += [name] * is_needed
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in pins:
            continue
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another platform
            continue
        pins[name] = found.version
        needs = [need for need in found.requires or () if "extra ==" not in need]
        waiting += [match[0] for need in needs if (match := re.match(r"[A-Za-z0-9._-]+", need))]
    return sorted(pins.items())
