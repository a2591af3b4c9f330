"""How do I put agents on my hosts?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError

_NEXT = {
    "kubernetes": "kubectl apply -f {0}/agent.yaml -f {0}/tidy.yaml",
    "sidecar": "put your image and command into {0}/sidecar.yaml, then: kubectl apply -f {0}/sidecar.yaml",
    "slurm": "copy {0} to every node; set Prolog, Epilog and PrologFlags=Alloc in slurm.conf; enable the unit",
    "systemd": "cp {0}/* /etc/systemd/system/ && systemctl enable --now gpuledger-agent",
    "image": "docker build -t {1} -f {0}/Containerfile {0}",
}


@click.command("deploy")
@click.argument("kind", type=click.Choice(sorted(_NEXT)))
@click.option(
    "--lake", required=True, metavar="ADDRESS", help="Lake to ship to: /PATH on every host, or s3://BUCKET/LAKE."
)
@click.option("--out", type=PATH, help="Folder for the files; without it they are printed.")
@click.option("--image", metavar="NAME", help="Container image.  [default: gpuledger:VERSION]")
@click.option("--namespace", default="gpuledger", show_default=True, help="Kubernetes namespace.")
@click.option("--cluster", default="default", show_default=True, metavar="NAME", help="Cluster label of the samples.")
@click.option(
    "--device", type=click.Choice(["nvml", "amd"]), default="nvml", show_default=True, help="Telemetry source."
)
@click.option("--spool-max", default="2GiB", show_default=True, metavar="SIZE", help="Disk the agent may use per host.")
@click.option("--every", default="10m", show_default=True, metavar="LENGTH",
              help="Time between shipments; one lake takes about 600 hosts at 10m, 60 at 60s.")  # fmt: skip
@click.option("--hz", type=float, default=1.0, show_default=True, help="Readings per second.")
@click.option("--program", metavar="PATH", help="Where gpuledger is on the hosts.  [default: where it is here]")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@screen_options
def command(screen: Screen, kind: str, out: Path | None, force: bool, **given: Any) -> None:
    """Write files that run agents on Kubernetes, Slurm or systemd.

    They fit the installed version and have the address of the lake filled in. Read them before you apply them.
    """
    from gpuledger.agent.deploying import Place, contents_of, write_files
    from gpuledger.devices.sampler import check_rates
    from gpuledger.times import length_ms

    check_rates(given["hz"], 1.0)
    if not 1000 <= length_ms(given["every"], bare="s") <= 3_600_000:
        raise InputError(f"cannot ship every {given['every']}", hint="give 1s to 1h; 10m is usual")
    place = Place(**{name: value for name, value in given.items() if value is not None})
    if out is None:
        made = contents_of(kind, place)
        screen.answer({"kind": kind, "files": made})
        for name, text in made.items():
            screen.say(*([f"==> {name} <=="] if len(made) > 1 else []), *text.rstrip("\n").split("\n"))
        return
    written = write_files(kind, place, out, replace=force)
    screen.answer({"kind": kind, "written": [str(f) for f in written]})
    screen.say(*(f"wrote {file}" for file in written), f"next: {_NEXT[kind].format(out, place.image)}")
