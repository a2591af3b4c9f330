"""Do things register themselves, from other packages too, and does a broken plugin leave the rest alone?"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path

import pytest

from gpuledger.errors import UnknownName
from gpuledger.registry import PluginWarning, Registry, plugins_possible

ROOT = Path(__file__).parents[1]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with entry points on the path: `install("name", {group: {point: value}}, module="source")`."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(package: str, points: dict[str, dict[str, str]], **modules: str) -> None:
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in some.items()) for group, some in points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
            put_there.append(name)

    put_there: list[str] = []
    yield put
    for name in put_there:
        sys.modules.pop(name, None)


@pytest.fixture
def things(tmp_path, monkeypatch):
    """A registry of a package with two things, of which one module is called like its thing."""
    folder = tmp_path / "own" / "toolbox"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    found: Registry[object] = Registry("tool", "toolbox")
    (folder / "__init__.py").write_text("REGISTRY = None\n")
    for name, module in (("hammer", "hammer"), ("saw", "cutting")):
        (folder / f"{module}.py").write_text(f"import toolbox\ntoolbox.REGISTRY.register({name!r})({name!r})\n")
    import toolbox

    monkeypatch.setattr(toolbox, "REGISTRY", found)
    yield found
    for name in [n for n in sys.modules if n.split(".")[0] == "toolbox"]:
        del sys.modules[name]


def test_a_module_called_like_the_thing_is_imported_alone(things):
    assert things.get("hammer") == "hammer"
    assert "toolbox.cutting" not in sys.modules
    assert things.get("saw") == "saw"
    assert things.names() == ["hammer", "saw"]
    assert dict(things) == {"hammer": "hammer", "saw": "saw"}
    with pytest.raises(UnknownName, match="no tool is called 'hamer'") as caught:
        things.get("hamer")
    assert caught.value.nearest == ["hammer"]


def test_two_things_of_one_name_are_a_mistake(things):
    things.get("hammer")
    with pytest.raises(ValueError, match="hammer"):
        things.register("hammer")("another")


def test_things_of_other_packages(things, install):
    install(
        "more-tools",
        {"gpuledger.tools": {"drill": "more_tools:drill", "all": "more_tools"}},
        more_tools="import toolbox\ndrill = 'the drill'\ntoolbox.REGISTRY.register('wrench')('the wrench')\n",
    )
    assert things.group == "gpuledger.tools"
    assert things.get("hammer") == "hammer"
    assert "more_tools" not in sys.modules, "what is there already needs no plugin"
    assert things.names() == ["drill", "hammer", "saw", "wrench"]
    assert things.get("wrench") == "the wrench"


@pytest.mark.parametrize(
    ("value", "text", "words"),
    [
        ("broken_tools", "1 / 0\n", "ZeroDivisionError"),
        ("broken_tools:axe", "\n", "AttributeError"),
        ("no_such_module", "\n", "ModuleNotFoundError"),
        ("broken_tools", "raise SystemExit('bye')\n", "SystemExit: bye"),
        ("broken_tools:saw", "saw = 'another'\n", "two things of kind tool are called"),
    ],
)
def test_a_broken_plugin_warns_and_is_left_out(things, install, value, text, words):
    name = "saw" if value.endswith("saw") else "axe"
    install("broken-tools", {"gpuledger.tools": {name: value}}, broken_tools=text)
    with pytest.warns(PluginWarning, match=words) as caught:
        assert things.names() == ["hammer", "saw"]
    assert f"tool {name!r} of package broken-tools is left out" in str(caught[0].message)
    assert things.get("saw") == "saw"


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder whose packages are installed."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{folder}"}
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


LINES_SOURCE = """
    import json
    import pyarrow as pa
    from gpuledger.telemetry.mapping import Mapping, TimeRule, ValueRule
    from gpuledger.telemetry.formats import FORMATS, Fit, Opened

    MAPPING = Mapping(
        name="lines", title="JSON lines", detect=("t",), required=("time", "gpu_uuid"), time=TimeRule(("t",)),
        labels={"gpu_uuid": ("gpu",)}, values=(ValueRule("power_w", ("watts",)),),
    )

    class Lines:
        def fits(self, head):
            return Fit.SURE if head.first.startswith(b'{"t"') else Fit.NO

        def open(self, path):
            rows = [json.loads(line) for line in path.read_text().splitlines()]

            def batches(columns, labels):
                yield pa.RecordBatch.from_pylist([{c: row[c] for c in columns} for row in rows])

            return Opened(list(rows[0]), batches, len(rows), mapping=MAPPING)

    lines = Lines()
"""


def test_a_file_source_is_one_file(install, tmp_path):
    install("json-lines", {"gpuledger.sources": {"lines": "json_lines:lines"}}, json_lines=LINES_SOURCE)
    rows = [f'{{"t": {1768867200 + i}, "gpu": "GPU-a", "watts": {100 + i}}}' for i in range(5)]
    (tmp_path / "power.jsonl").write_text("\n".join(rows))
    code = (
        "from gpuledger.lake.importing import import_files; from gpuledger.lake.layout import Lake; "
        "print(import_files(Lake('lake'), ['power.jsonl']).rows_added)"
    )
    done = python(tmp_path, "-c", code)
    assert (done.stdout.strip(), done.stderr) == ("5", "")


FAKE_DEVICE = """
    from gpuledger.devices.device import DEVICES, Driver
    from gpuledger.devices.replay.doors import open_replay

    DEVICES.register("intel")(Driver(lambda rest, clock: open_replay(rest, clock), takes="FILE"))
"""


def test_a_vendor_is_one_file_and_a_broken_one_only_warns(install, tmp_path):
    install("intel-gpus", {"gpuledger.devices": {"intel": "intel_gpus"}}, intel_gpus=FAKE_DEVICE)
    install("bad-gpus", {"gpuledger.devices": {"bad": "bad_gpus"}}, bad_gpus="raise RuntimeError('no driver')\n")
    recording = ROOT / "tests" / "data" / "h200_replay.csv.gz"

    def record(device: str) -> subprocess.CompletedProcess[str]:
        return python(
            tmp_path, "-m", "gpuledger", "record", "--duration", "0.3", "--lake", "lake", "--json", "--device", device
        )

    done = record(f"intel:{recording}")
    assert done.returncode == 0
    assert '"recorded": true' in done.stdout
    assert done.stderr == "warning: device 'bad' of package bad-gpus is left out: RuntimeError: no driver\n"
    built_in = record(f"replay:{recording}")
    assert (built_in.returncode, built_in.stderr) == (0, ""), "a built-in device loads no plugin"
    unknown = record("intl:x")
    assert unknown.returncode == 2
    assert "intel" in unknown.stderr
    assert "Traceback" not in unknown.stderr


def test_help_loads_no_plugin(install, tmp_path):
    groups = ("sources", "rules", "charts", "planners", "devices")
    install("loud", {f"gpuledger.{g}": {"loud": "loud"} for g in groups}, loud="print('LOUD')\n")
    done = python(tmp_path, "-m", "gpuledger", "--help")
    assert done.returncode == 0
    assert "LOUD" not in done.stdout


def test_the_groups_of_entry_points():
    from gpuledger.advice.rule import RULES
    from gpuledger.devices.device import DEVICES
    from gpuledger.report.charts import CHARTS
    from gpuledger.telemetry.formats import FORMATS

    groups = {registry.group for registry in (FORMATS, RULES, CHARTS, DEVICES)}
    assert groups == {"gpuledger.sources", "gpuledger.rules", "gpuledger.charts", "gpuledger.devices"}


def test_threads_that_ask_at_once_all_see_every_thing(things, tmp_path):
    slow = "import time\nimport toolbox\ntime.sleep(0.2)\ntoolbox.REGISTRY.register('vise')('vise')\n"
    (tmp_path / "own" / "toolbox" / "slow.py").write_text(slow)
    with ThreadPoolExecutor(4) as threads:
        seen = list(threads.map(lambda _: things.names(), range(4)))
    assert seen == [["hammer", "saw", "vise"]] * 4


def test_some_modules_are_enough_while_there_are_no_plugins(things):
    assert things.some(("hammer",)) == [("hammer", "hammer")]
    assert "toolbox.cutting" not in sys.modules
    assert things.names() == ["hammer", "saw"]
    assert things.some(("hammer",)) == [("hammer", "hammer"), ("saw", "saw")]


def test_a_plugin_does_not_take_the_name_of_what_is_not_loaded_yet(things, install):
    install("more-tools", {"gpuledger.tools": {"saw": "more_tools:saw"}}, more_tools="saw = 'another'\n")
    with pytest.warns(PluginWarning, match="'saw' of package more-tools is left out"):
        assert things.some(("hammer",)) == [("hammer", "hammer"), ("saw", "saw")]


def test_plugins_are_looked_for_where_a_package_names_the_group(things, install):
    assert not plugins_possible("gpuledger.tools")
    install("more-tools", {"gpuledger.tools": {"drill": "more_tools:drill"}}, more_tools="drill = 'the drill'\n")
    assert plugins_possible("gpuledger.tools")
    assert not plugins_possible("gpuledger.gadgets")
    assert dict(things.some(("hammer",)))["drill"] == "the drill"


@pytest.mark.parametrize("name", ["tools.zip", "tools.egg", "tools.EGG"])
def test_plugins_may_be_in_what_is_not_a_folder(name, tmp_path, monkeypatch):
    assert not plugins_possible("gpuledger.tools")
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("tools-1.0.dist-info/entry_points.txt", "[gpuledger.tools]\ndrill = tools:drill\n")
    monkeypatch.syspath_prepend(str(tmp_path / name))
    assert plugins_possible("gpuledger.tools")


def test_plugins_may_come_from_another_finder(monkeypatch):
    class Finder:
        def find_spec(self, *_asked: object) -> None: ...

        def find_distributions(self, *_asked: object) -> list[object]:
            return []

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert plugins_possible("gpuledger.tools")


def test_no_group_of_an_installed_package_is_missed():
    groups = {point.group for package in distributions() for point in package.entry_points}
    assert groups
    assert all(plugins_possible(group) for group in groups)
