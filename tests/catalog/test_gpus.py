"""Is every name of every GPU found, nothing else, and is a broken file refused by name?"""

from __future__ import annotations

import shutil
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import find_gpu, get_gpu, load_gpus
from gpuledger.catalog.gpus.facts import Gpu
from gpuledger.catalog.gpus.names import plain
from gpuledger.errors import FactError, FileFault, UnknownName
from gpuledger.units import Unknown

SHIPPED = resources.files("gpuledger.catalog").joinpath("data", "gpus")
SPELLINGS = [(spelling, gpu.key) for gpu in load_gpus().values() for spelling in gpu.spellings()]
PLAIN = {plain(spelling) for spelling, _ in SPELLINGS}

OWN = """
key = "x1"
name = "X1"
vendor = "Own"
architecture = "Own"
form_factor = "PCIe"
aliases = ["Own X1"]
board_power_w = { value = 100, source = "own", as_of = "2026-11" }
memory_bytes = { value = 8e9, source = "own", as_of = "2026-11" }
memory_bandwidth_bytes_per_s = { value = 1e11, source = "own", as_of = "2026-11" }

[peak_tflops]
fp16 = { value = 10, source = "own", as_of = "2026-11" }

[sources]
own = "measured on my desk"
"""


def own(folder: Path, text: str = OWN, name: str = "x1.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("gpu", load_gpus().values(), ids=lambda gpu: gpu.key)
def test_shipped_file_is_whole(gpu: Gpu) -> None:
    assert gpu.vendor in {"NVIDIA", "AMD"}
    known = {field: fact.value for field, fact in gpu.facts()}
    assert 50 <= known.get("board_power_w", 50) <= 1500
    assert 4e9 <= known.get("memory_bytes", 4e9) <= 400e9
    assert 9e10 <= known.get("memory_bandwidth_bytes_per_s", 9e10) <= 1e13
    assert gpu.idle_power_w is None or gpu.idle_power_w.value < known["board_power_w"] / 2
    # What may be proposed must be weighed: by its memory, its bandwidth, its peak and its power.
    assert not gpu.proposed or {"board_power_w", "memory_bytes", "memory_bandwidth_bytes_per_s"} <= set(known)
    assert not gpu.proposed or not isinstance(gpu.peak(gpu.reference_precision()), Unknown)
    for field, fact in gpu.facts():
        assert fact.value > 0, field
        assert fact.as_of in {"2026-01", "2026-11"}, field
        # A short word here would be an entry of [sources] that is missing.
        assert " " in fact.source or "/" in fact.source, (field, fact.source)
    for figure in gpu.achievable:
        peak = gpu.peak(figure.precision or gpu.reference_precision())
        assert not isinstance(peak, Unknown)
        assert figure.tflops < peak
    per_clock = [gpu.fp32_flop_per_clk_sm, gpu.tensor_rated_mhz, gpu.fp32_rated_mhz]
    assert (all(per_clock) and gpu.sm_count) or not any(per_clock)


def test_all_gpus_are_there_and_second_hand_figures_are_marked() -> None:
    listed: set[str] = set()
    for file in (f for f in SHIPPED.iterdir() if f.name.endswith(".toml")):
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
        assert "gpus" in raw or file.name == f"{raw['key']}.toml"
        listed |= {own.get("key", name.casefold()) for name, own in raw.get("gpus", {raw.get("key"): raw}).items()}
    assert set(load_gpus()) == listed
    counted = {key for key, gpu in load_gpus().items() if gpu.sm_count is not None}
    assert {"a10g", "a100-sxm4-40gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm"} <= counted
    doubtful = {f"{g.key}.{field}" for g in load_gpus().values() for field, fact in g.facts() if not fact.verified}
    assert {"a10g.peak_tflops.tf32", "mi325x.board_power_w", "rtx-4090.peak_tflops.bf16"} <= doubtful
    assert not {"h100-sxm5-80gb.peak_tflops.bf16", "rtx-6000-ada.peak_tflops.bf16", "rtx-4090.board_power_w"} & doubtful


@pytest.mark.parametrize(("spelling", "key"), SPELLINGS)
def test_every_spelling_finds_its_own_gpu(spelling: str, key: str) -> None:
    for written in (spelling, spelling.upper(), f"  {spelling.lower()}\n"):
        found = find_gpu(written)
        assert isinstance(found, Gpu)
        assert found.key == key


@given(st.sampled_from(SPELLINGS), st.text(alphabet="aX7 -", max_size=3), st.text(alphabet="aX7 -", max_size=3))
def test_a_name_that_merely_contains_another_is_not_that_gpu(pair: tuple[str, str], before: str, after: str) -> None:
    written = before + pair[0] + after
    if plain(written) not in PLAIN:
        assert isinstance(find_gpu(written), Unknown)


def test_h100_alone_is_three_gpus_so_it_is_none() -> None:
    found = find_gpu("NVIDIA H100")
    assert isinstance(found, Unknown)
    assert found.why.startswith("'NVIDIA H100' is not in the catalog; nearest: ")
    assert {"H100-NVL-94GB", "H100-PCIe-80GB", "H100-SXM5-80GB"} <= set(found.why.split(": ")[1].split(", "))


def test_nothing_like_it() -> None:
    assert find_gpu("") == Unknown("'' is not in the catalog; nearest: none")
    assert find_gpu("zzzzzz") == Unknown("'zzzzzz' is not in the catalog; nearest: none")


def test_a_typed_name_gets_suggestions() -> None:
    with pytest.raises(UnknownName, match="did you mean L40 or L40S") as caught:
        get_gpu("nvidia l40z")
    assert caught.value.nearest[:2] == ["L40", "L40S"]
    with pytest.raises(UnknownName, match=r"known: a10, .*, and \d+ more"):
        get_gpu("zzzzzz")


def test_own_file_adds_a_gpu(tmp_path: Path) -> None:
    folder = own(tmp_path)
    gpu = get_gpu("own x1", folder)
    assert gpu.board_power_w.source == "measured on my desk"
    assert gpu.peak("fp16") == 10
    assert len(load_gpus(folder)) == len(load_gpus()) + 1
    assert isinstance(find_gpu("own x1"), Unknown)


def test_own_file_replaces_the_shipped_gpu_of_its_key(tmp_path: Path) -> None:
    with resources.as_file(SHIPPED.joinpath("a10g.toml")) as shipped:
        shutil.copy(shipped, tmp_path)
    text = (tmp_path / "a10g.toml").read_text(encoding="utf-8")
    own(tmp_path, text.replace("board_power_w = { value = 300", "board_power_w = { value = 150"), "a10g.toml")
    assert get_gpu("NVIDIA A10G", tmp_path).board_power_w.value == 150
    assert get_gpu("NVIDIA A10G").board_power_w.value == 300


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(FileFault, match="nowhere: cannot read GPU files"):
        load_gpus(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("old", "new", "field", "said"),
    [
        ("value = 100", 'value = "lots"', "board_power_w.value", "'lots'"),
        ("value = 100", "value = 0", "board_power_w", "0.0 is not above zero"),
        ("value = 100", "value = nan", "board_power_w", "nan is not above zero"),
        ("value = 10,", "value = inf,", "peak_tflops.fp16", "inf"),
        ('as_of = "2026-11" }\nmemory_bytes', 'as_of = "now" }\nmemory_bytes', "board_power_w", "'now'"),
        ('own = "measured on my desk"', 'own = " "', "board_power_w", "source is ' '"),
        ("[sources]", "[source]", "$", "unknown field `source`"),
        ("board_power_w", "board_power", "$", "board_power"),
        ('key = "x1"', 'key = "X 1"', "key", "'X 1' is not kebab-case"),
        ('["Own X1"]', '["NVIDIA h200"]', "aliases", "'NVIDIA h200' already means h200-sxm-141gb"),
        ('["Own X1"]', '["Own X1", "own x1 "]', "aliases", "'own x1' is empty or given twice"),
        ('["Own X1"]', '[""]', "aliases", "'' is empty or given twice"),
        ("fp16 =", "fp17 =", "peak_tflops", "'fp17' is not a precision we know"),
        ("key =", "key :", "syntax", "line 2"),
    ],
)
def test_broken_file_is_refused_by_file_field_and_value(
    tmp_path: Path, old: str, new: str, field: str, said: str
) -> None:
    assert old in OWN
    folder = own(tmp_path, OWN.replace(old, new, 1))
    with pytest.raises(FactError) as caught:
        load_gpus(folder)
    assert caught.value.path == str(tmp_path / "x1.toml")
    assert caught.value.field.removeprefix("$.") == field
    assert said in caught.value.message
    assert caught.value.hint


def test_a_sparse_peak_is_refused(tmp_path: Path) -> None:
    text = SHIPPED.joinpath("h100-sxm5-80gb.toml").read_text(encoding="utf-8")
    own(tmp_path, text.replace("bf16 = { value = 989.5", "bf16 = { value = 1979"))
    with pytest.raises(FactError, match=r"peak_tflops\.bf16: 1979\.0 TFLOPS, but .* makes 989\.4"):
        load_gpus(tmp_path)


def test_two_own_files_with_one_key(tmp_path: Path) -> None:
    own(own(tmp_path), name="x2.toml")
    with pytest.raises(FactError, match=r"x2\.toml: key: 'x1' is the key of two files"):
        load_gpus(tmp_path)
