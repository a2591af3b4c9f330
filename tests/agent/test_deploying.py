"""Do the files of every deployment pass the linters of their language, and do the scripts work?

Where a linter is not installed its tests are skipped, and say so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from spools import START, record, spool_at

import gpuledger
from gpuledger.agent.deploying import KINDS, Place, contents_of, write_files
from gpuledger.agent.running import LEAST_SPOOL
from gpuledger.cli.app import root, run
from gpuledger.errors import InputError, MissingExtra
from gpuledger.lake.jobs.store import read_claims
from gpuledger.lake.layout import Lake
from gpuledger.units import size_bytes

LAKES = {"folder": "/srv/gpuledger", "bucket": "s3://fleet/lake"}
PLACES = {f"{name}-{device}": Place(lake, device=device) for name, lake in LAKES.items() for device in ("nvml", "amd")}
# The newest Kubernetes, and the oldest that has what the files use.
KUBERNETES = {"kubernetes": ("1.29", "1.36"), "sidecar": ("1.34", "1.36")}


def linter(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


# What an address may have and systemd takes for its own.
PLACES["bucket-percent"] = Place("s3://fleet/a%20b")


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def place(request) -> Place:
    return request.param


def validated(document: dict, version: str) -> None:
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("kubernetes-validate is not installed")
    import kubernetes_validate

    kubernetes_validate.validate(document, version, strict=True)


def documents_of(kind: str, place: Place) -> list[dict]:
    return [d for text in contents_of(kind, place).values() for d in yaml.safe_load_all(text)]


@pytest.mark.parametrize("kind", KUBERNETES)
def test_manifests_fit_the_schemas_of_the_newest_kubernetes(kind, place):
    for document in documents_of(kind, place):
        validated(document, KUBERNETES[kind][1])


@pytest.mark.parametrize("kind", KUBERNETES)
def test_manifests_fit_the_schemas_of_the_oldest_kubernetes_they_are_for(kind):
    for document in documents_of(kind, PLACES["folder-nvml"]):
        validated(document, KUBERNETES[kind][0])


def test_a_manifest_that_does_not_fit_is_found():
    (document,) = (d for d in documents_of("kubernetes", PLACES["folder-nvml"]) if d["kind"] == "DaemonSet")
    document["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(Exception, match="hostPid"):
        validated(document, KUBERNETES["kubernetes"][1])


def pod_specs(kind: str, place: Place) -> list[dict]:
    found = []
    for document in documents_of(kind, place):
        spec = document.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found.append(spec["template"]["spec"])
    return found


@pytest.mark.parametrize("kind", KUBERNETES)
def test_every_container_of_ours_is_confined(kind, place):
    for spec in pod_specs(kind, place):
        assert spec["automountServiceAccountToken"] is False
        volumes = {v["name"] for v in spec["volumes"]}
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            if container["image"] != place.image:
                continue
            secure = container["securityContext"]
            assert secure["readOnlyRootFilesystem"]
            if place.device == "amd" and container["name"] == "agent":
                # The devices are not the container's own; Kubernetes refuses both settings where this one is on.
                assert secure["privileged"]
                assert not {"allowPrivilegeEscalation", "capabilities"} & set(secure)
            else:
                assert not secure["allowPrivilegeEscalation"]
                assert secure["capabilities"]["drop"] == ["ALL"]
            assert container["resources"]["limits"]["memory"]
            assert {m["name"] for m in container["volumeMounts"]} <= volumes
            assert ("envFrom" in container) == place.remote
            assert ("lake" in volumes) != place.remote


@pytest.mark.parametrize("kind", KUBERNETES)
def test_the_arguments_are_those_of_the_commands(kind, place, tmp_path):
    """Every container's command line is taken by click itself."""
    for spec in pod_specs(kind, place):
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            if container["image"] == place.image:
                with root.make_context("gpuledger", list(container["args"])) as context:
                    name, command, rest = root.resolve_command(context, list(container["args"]))
                    given = command.make_context(name, rest, parent=context).params
                assert str(given["lake_dir"]).replace("s3:/", "s3://").replace("///", "//") == place.lake


def test_the_grace_of_the_agent_fits_into_that_of_the_pod(place):
    (agent, _) = pod_specs("kubernetes", place)
    (sidecar,) = pod_specs("sidecar", place)
    assert agent["terminationGracePeriodSeconds"] > 25 < sidecar["terminationGracePeriodSeconds"]
    limit = next(v for v in sidecar["volumes"] if v["name"] == "spool")["emptyDir"]["sizeLimit"]
    assert size_bytes(limit) > size_bytes(place.spool_max) > LEAST_SPOOL


@pytest.mark.parametrize("kind", KUBERNETES)
def test_copies_of_a_bucket_fit_into_the_volume_they_are_on(kind):
    """A pod that outgrows an emptyDir is evicted."""
    for spec in pod_specs(kind, PLACES["bucket-nvml"]):
        (container,) = (c for c in (*spec.get("initContainers", ()), *spec["containers"]) if "envFrom" in c)
        env = {e["name"]: e.get("value", "") for e in container["env"]}
        folder = Path(env["GPULEDGER_CACHE"])
        mount = max((m for m in container["volumeMounts"] if folder.is_relative_to(m["mountPath"])),
                    key=lambda m: len(m["mountPath"]))  # fmt: skip
        volume = next(v for v in spec["volumes"] if v["name"] == mount["name"])
        if "emptyDir" in volume:
            assert size_bytes(volume["emptyDir"]["sizeLimit"]) >= 4 * size_bytes(env["GPULEDGER_CACHE_SIZE"])
        else:
            assert size_bytes(env["GPULEDGER_CACHE_SIZE"]) < 1 << 30


@pytest.mark.parametrize("kind", ["systemd", "slurm"])
def test_units_and_scripts_name_a_small_cache(kind):
    texts = contents_of(kind, PLACES["bucket-nvml"])
    for name in {"gpuledger-agent.service", "epilog.sh"} & set(texts):
        assert "/var/cache/gpuledger" in texts[name]
        assert "GPULEDGER_CACHE_SIZE" in texts[name]


def test_scripts_pass_shellcheck(place, tmp_path):
    written = [f for f in write_files("slurm", place, tmp_path) if f.suffix == ".sh"]
    assert len(written) == 2
    done = subprocess.run([linter("shellcheck"), "--enable=all", "--exclude=SC2250,SC2310,SC2312", *written],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert all(os.access(f, os.X_OK) for f in written)


def test_units_pass_systemd_analyze(place, tmp_path):
    program = shutil.which("true")
    written = write_files("systemd", Place(**{**vars(place), "program": program}), tmp_path)
    command = [linter("systemd-analyze"), "verify", *written]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    unit = tmp_path / "gpuledger-agent.service"
    unit.write_text(unit.read_text().replace("Restart=", "Restert="))
    assert "Restert" in subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_the_recipe_of_the_image_passes_hadolint_and_pins_everything(tmp_path):
    recipe, pins = write_files("image", Place("/srv/gpuledger"), tmp_path)
    done = subprocess.run([linter("hadolint"), recipe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    recipe.write_text(recipe.read_text().replace("${BASE} AS", "python AS"))
    assert subprocess.run([linter("hadolint"), recipe], capture_output=True, check=False).returncode != 0
    lines = [line for line in pins.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+", line) for line in lines)
    assert f"gpuledger=={metadata.version('gpuledger')}" in lines
    assert f"pyarrow=={metadata.version('pyarrow')}" in lines


def test_an_image_for_amd_gpus_has_their_library(tmp_path, monkeypatch):
    with pytest.raises(MissingExtra, match="amd"):
        contents_of("image", Place("/srv/gpuledger", device="amd"))
    for file, text in {
        "amdsmi/__init__.py": "",
        "amdsmi-7.0.2.dist-info/METADATA": "Name: amdsmi\nVersion: 7.0.2\n",
    }.items():
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    recipe, pins = write_files("image", Place("/srv/gpuledger", device="amd"), tmp_path / "image")
    assert "amdsmi==7.0.2" in pins.read_text().splitlines()
    assert {"libdrm2", "libdrm-amdgpu1", "ROCM_PATH=/opt/rocm"} <= set(recipe.read_text().split())
    done = subprocess.run([linter("hadolint"), recipe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("kind", KUBERNETES)
def test_pods_for_amd_gpus_see_the_library_of_the_host(kind):
    spec = pod_specs(kind, PLACES["folder-amd"])[0]
    agent = (*spec.get("initContainers", ()), *spec["containers"])[0]
    assert "/opt/rocm" in {m["mountPath"] for m in agent["volumeMounts"]}


@pytest.mark.parametrize("kind", KUBERNETES)
def test_every_claim_of_a_pod_is_in_its_files(kind):
    documents = documents_of(kind, PLACES["folder-nvml"])
    made = {d["metadata"]["name"] for d in documents if d["kind"] == "PersistentVolumeClaim"}
    for spec in pod_specs(kind, PLACES["folder-nvml"]):
        assert {
            v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v
        } <= made
        ours = (*spec.get("initContainers", ()), *spec["containers"])[0]
        user = ours["securityContext"]["runAsUser"]
        assert user == 0 or spec["securityContext"]["fsGroup"] == ours["securityContext"]["runAsGroup"]


@pytest.mark.parametrize("change", [{"namespace": "123"}, {"namespace": "1e3"}, {"image": "1.5"}, {"cluster": "no"}])
def test_names_that_look_like_numbers_stay_text(change):
    place = Place("/srv/gpuledger", **change)
    for document in documents_of("kubernetes", place):
        assert document["metadata"].get("namespace", place.namespace) == place.namespace
    for spec in pod_specs("kubernetes", place):
        assert spec["containers"][0]["image"] == place.image


def test_a_tidy_job_asked_to_keep_samples_keeps_them(tmp_path, capsys):
    """The comment in the file, followed to the letter."""
    (tidy,) = (
        s for s in pod_specs("kubernetes", Place(str(tmp_path / "lake"))) if s["containers"][0]["name"] == "tidy"
    )
    args = tidy["containers"][0]["args"]
    assert (
        "replace the last line of `args` by --keep-samples"
        in contents_of("kubernetes", PLACES["folder-nvml"])["tidy.yaml"]
    )
    spool = spool_at(tmp_path / "spool")
    record(spool, START)
    assert run(["agent", "--once", "-q", "--spool", str(spool.root), "--lake", str(tmp_path / "lake")]) == 0
    assert run([*args[:-1], "--keep-samples"]) == 0
    assert Lake(tmp_path / "lake").manifest().parts


@pytest.mark.parametrize("kind", ["systemd", "slurm"])
def test_a_unit_labels_samples_with_the_cluster(kind):
    unit = contents_of(kind, Place("/srv/gpuledger", cluster="prod"))["gpuledger-agent.service"]
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    args = line.split()[1:]
    with root.make_context("gpuledger", args) as context:
        name, command, rest = root.resolve_command(context, args)
        assert command.make_context(name, rest, parent=context).params["labels"] == ("cluster=prod",)


def test_a_unit_can_make_a_lake_that_is_not_there_yet():
    """With ProtectSystem=strict only folders that exist at the start can be made writable."""
    unit = contents_of("systemd", PLACES["folder-nvml"])["gpuledger-agent.service"]
    assert "ProtectSystem=full" in unit.splitlines()


def test_an_image_for_a_bucket_has_its_library_or_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("gpuledger.agent.deploying.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match="stores"):
        contents_of("image", Place("s3://fleet/lake"))


def test_prolog_and_epilog_bill_a_job_to_its_user(tmp_path):
    """The real scripts, as Slurm runs them; the epilog ships in the background."""
    spool, lake = spool_at(tmp_path / "spool"), tmp_path / "lake"
    program = tmp_path / "gpuledger"
    here = Path(gpuledger.__file__).parents[1]
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{here}" exec "{sys.executable}" -m gpuledger "$@"\n')
    program.chmod(0o755)
    place = Place(str(lake), spool=str(spool.root), program=str(program))
    prolog, epilog, _ = write_files("slurm", place, tmp_path / "slurm")
    env = {**os.environ, "SLURM_JOB_ID": "4711", "SLURM_JOB_USER": "ada", "SLURM_JOB_GPUS": "0,1",
           "SLURM_JOB_NAME": 'he said "go", twice'}  # fmt: skip
    assert subprocess.run([prolog], env=env, check=False).returncode == 0
    (began,) = (spool.root / "starting").iterdir()
    began.write_text("2026-01-20T00:00:00Z\n")
    record(spool, START, host=os.uname().nodename)
    assert subprocess.run([epilog], env=env, check=False).returncode == 0
    assert not began.exists()
    done = subprocess.run([program, "agent", "--once", "--json", "--spool", spool.root, "--lake", lake],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout)["waiting_rows"] == 0
    found = gpuledger.open(lake).audit(prices=2, by="user").to_dict()
    assert "ada" in str(found)
    assert 'he said "go", twice' in str(read_claims(Lake(lake)))


@pytest.mark.parametrize("missing", ["SLURM_JOB_ID", "SLURM_JOB_GPUS", "spool"])
def test_a_prolog_and_an_epilog_never_fail(tmp_path, missing):
    """A prolog or epilog that fails drains the node."""
    spool = tmp_path / "spool"
    if missing == "spool":
        spool.write_text("not a folder")
    files = write_files("slurm", Place("/nowhere/lake", spool=str(spool), program="/nowhere/gpuledger"), tmp_path / "s")
    env = {k: v for k, v in {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "0"}.items() if k != missing}
    for script in files[:2]:
        assert subprocess.run([script], env={"PATH": os.environ["PATH"], **env}, check=False).returncode == 0
    assert not list(spool.glob("jobs/*.csv")) or missing not in {"SLURM_JOB_ID", "SLURM_JOB_GPUS"}


class TestCommand:
    @pytest.mark.parametrize("kind", KINDS)
    def test_files_are_written_and_not_replaced(self, tmp_path, capsys, kind):
        out = tmp_path / "files"
        args = ["deploy", kind, "--lake", "/srv/lake", "--out", str(out)]
        assert run(args) == 0
        said = capsys.readouterr().out
        assert "next: " in said
        assert all(f"wrote {file}" in said for file in out.iterdir())
        assert run(args) == 2
        assert "--force" in capsys.readouterr().err
        assert run([*args, "--force", "--json"]) == 0
        assert set(json.loads(capsys.readouterr().out)["written"]) == {str(f) for f in out.iterdir()}

    def test_without_a_folder_they_are_printed(self, capsys):
        assert run(["deploy", "sidecar", "--lake", "s3://fleet/lake"]) == 0
        printed = capsys.readouterr().out
        assert printed == contents_of("sidecar", Place("s3://fleet/lake"))["sidecar.yaml"]

    @pytest.mark.parametrize(
        "wrong",
        [["--lake", "lake"], ["--lake", "/a b"], ["--lake", "s3://"], ["--lake", "gs:///lake"],
         ["--lake", "/a", "--spool-max", "much"],
         ["--lake", "/a", "--every", "2d"], ["--lake", "/a", "--image", "x\ny"], ["--lake", "/a", "--image", "@x"],
         ["--lake", "/a", "--namespace", "Prod"], ["--lake", "/a", "--namespace", "-x"], ["--lake", "/a", "--hz", "0"]],
    )  # fmt: skip
    def test_what_cannot_be_filled_in_is_refused(self, wrong, capsys):
        assert run(["deploy", "kubernetes", *wrong]) == 2
        assert "next:" in capsys.readouterr().err


def test_only_plain_text_is_filled_in():
    for bad in ("/lake;reboot", "/lake$(id)", "/lake\n", "/lake'", '/lake"'):
        with pytest.raises(InputError, match="characters"):
            Place(bad)
