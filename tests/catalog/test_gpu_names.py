"""Does a GPU answer to what tools call it, is a part of a board never a board, and is another model never meant?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import find_gpu, get_gpu, load_gpus
from gpuledger.catalog.gpus.facts import Gpu
from gpuledger.catalog.gpus.names import not_one_board
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown


@pytest.mark.parametrize(
    ("tool", "written", "key"),
    [
        ("nvidia-smi", "NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("older nvidia-smi", "GeForce GTX 1060 6GB", "gtx-1060-6gb"),
        ("nvidia-smi", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation"),
        ("nvidia-smi", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"),
        ("nvidia-smi", "Tesla V100S-PCIE-32GB", "v100s-pcie-32gb"),
        ("nvidia-smi", "NVIDIA GH200 480GB", "gh200-480gb"),
        ("nvidia-smi", "NVIDIA TITAN X (Pascal)", "titan-x-pascal"),
        ("tegrastats", "Orin (nvgpu)", "orin"),
        ("CodeCarbon", "4 x NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("CodeCarbon", "1 x NVIDIA GeForce RTX 4070", "rtx-4070"),
        ("Slurm", "nvidia_rtx_pro_6000_blackwell_server_edition", "rtx-pro-6000-server"),
        ("Slurm", "nvidia_a100-sxm4-80gb", "a100-sxm4-80gb"),
        ("Kubernetes", "NVIDIA-GeForce-RTX-3090", "rtx-3090"),
        ("LSF", "TeslaT4", "t4"),
        ("LSF", "TeslaV100_SXM2_32GB", "v100-sxm2-32gb"),
        ("rocm-smi", "Arcturus GL-XL [Instinct MI100]", "mi100"),
        ("amd-smi", "AMD Radeon RX 7900 XTX", "rx-7900-xtx"),
        ("amd-smi", "AMD Radeon RX 6700 XT", "rx-6700-xt"),
        ("amd-smi", "AMD Instinct MI308X OAM", "mi308x"),
        ("amd-smi, short", "MI308X", "mi308x"),
        ("amd-smi", "AMD Instinct MI300A", "mi300a"),
        ("amd-smi", "AMD Instinct MI50 32GB", "mi50-32gb"),
        ("rocm-smi", "Aqua Vanjaram [Instinct MI300X]", "mi300x"),
        ("nvidia-smi", "NVIDIA GB10", "gb10"),
        ("people", "NVIDIA DGX Spark", "gb10"),
        ("nvidia-smi", "NVIDIA Thor", "thor"),
        ("nvidia-smi", "NVIDIA GH200 120GB", "gh200-120gb"),
    ],
)
def test_what_tools_call_it(tool: str, written: str, key: str) -> None:
    found = find_gpu(written)
    assert isinstance(found, Gpu), (tool, found)
    assert found.key == key


@pytest.mark.parametrize(
    ("series", "prefix", "models"),
    [
        ("GeForce", "NVIDIA GeForce ", "RTX 5090|RTX 5060 Ti|RTX 4090|RTX 4080 SUPER|RTX 4080|RTX 4070|RTX 3090"),
        ("GeForce", "NVIDIA GeForce ", "RTX 3080|RTX 3060 Ti|RTX 3060|RTX 2080 SUPER|RTX 2080|RTX 2070 SUPER"),
        ("GeForce", "GeForce ", "RTX 2070|GTX 1660 Ti|GTX 1070 Ti|GTX 1060 6GB|GT 1030|GTX TITAN X"),
        ("TITAN", "NVIDIA ", "TITAN RTX|TITAN V|TITAN X (Pascal)"),
        ("workstation", "NVIDIA ", "RTX A400|RTX A5000|RTX A6000|RTX 4000 SFF Ada Generation"),
        ("workstation", "", "Quadro P400|Quadro P2000"),
        ("Tesla", "Tesla ", "P4|P40|P100-PCIE-16GB|V100S-PCIE-32GB|K80|M60"),
        ("data center", "NVIDIA ", "A2|A16|GH200 480GB|GB10|Thor"),
        ("Instinct", "AMD Instinct ", "MI100|MI300A|MI308X|MI50 32GB"),
    ],
)
def test_every_name_met_in_files_is_known(series: str, prefix: str, models: str) -> None:
    unknown = [m for m in models.split("|") if isinstance(find_gpu(prefix + m), Unknown)]
    assert unknown == [], series


@pytest.mark.parametrize(
    "written",
    [
        "H100", "A100", "NVIDIA RTX PRO 6000 Blackwell", "MI50", "P100", "TITAN X",
        "Navi 22 [Radeon RX 6700/6700 XT / 6800M]", "A10-0", "RTX 40 90", "2 x NVIDIA A100, 1 x Tesla T4",
    ],
)  # fmt: skip
def test_a_name_that_may_be_several_or_none_is_none(written: str) -> None:
    assert isinstance(find_gpu(written), Unknown)


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ("GRID A100D-20C", "a virtual GPU (vGPU)"),
        ("NVIDIA A40-48Q", "a virtual GPU (vGPU)"),
        ("GRID T4-2Q", "a virtual GPU (vGPU)"),
        ("GRID P40-2B4", "a virtual GPU (vGPU)"),
        ("GRID A100-1-5CME", "a virtual GPU (vGPU)"),
        ("NVIDIA RTX Pro 6000 Blackwell DC-1-24Q", "a virtual GPU (vGPU)"),
        ("DC-1-24CGFX", "a virtual GPU (vGPU)"),
        ("nvidia_h100-1-10c", "a virtual GPU (vGPU)"),
        ("H100 80GB HBM3 MIG 3g.40gb", "a slice (MIG)"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "a slice (MIG)"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a slice (MIG)"),
        ("nvidia_a100_1g.5gb", "a slice (MIG)"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", "a slice (MIG)"),
        ("mig-1g.5gb.me", "a slice (MIG)"),
    ],
)
def test_a_part_of_a_board_is_known_as_one(written: str, part: str) -> None:
    why = f"{written!r} is {part} of a board: a part of it, so a board's price and power are not its own"
    assert find_gpu(written) == Unknown(why)
    with pytest.raises(InputError, match="name the board"):
        get_gpu(written)


@pytest.mark.parametrize(
    "written",
    [
        "Navi 22 [Radeon RX 6700/6700 XT / 6800M]",
        "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]",
        "Aldebaran/MI200 [Instinct MI250X/MI250]",
    ],
)
def test_a_die_that_several_cards_have_is_none_of_them(written: str) -> None:
    assert find_gpu(written) == Unknown(f"{written!r} is the name of a die: it may be any of the cards in the brackets")
    with pytest.raises(InputError, match="may be any of the cards"):
        get_gpu(written)


@pytest.mark.parametrize("spelling", [s for gpu in load_gpus().values() for s in gpu.spellings()])
def test_no_name_of_a_board_looks_like_that_of_a_part(spelling: str) -> None:
    assert not_one_board(spelling) == ""


@pytest.mark.parametrize(
    "written",
    ["RTX 4090 SUPER", "RTX 4070 Ti 2", "RTX 9090", "h1000", "NVIDIA RTX A1000", "GeForce RTX 3070 XT"],
)
def test_another_model_is_never_suggested(written: str) -> None:
    with pytest.raises(UnknownName) as caught:
        get_gpu(written)
    assert caught.value.nearest == []
    assert caught.value.hint.startswith("known: ")


@pytest.mark.parametrize(
    ("written", "near"),
    [("NVIDIA TITAN X", "GTX-TITAN-X"), ("AMD Instinct MI50", "MI50-16GB"), ("Tesla P100", "P100-SXM2-16GB"),
     ("rtx 4090x", "RTX-4090"), ("h100z", "H100-SXM5-80GB"), ("mi300", "MI300X"), ("h100-smx5", "H100-SXM5-80GB")],
)  # fmt: skip
def test_a_misspelling_is_suggested(written: str, near: str) -> None:
    with pytest.raises(UnknownName, match="did you mean") as caught:
        get_gpu(written)
    assert near in caught.value.nearest


def test_a_figure_without_a_source_is_unknown() -> None:
    thor = get_gpu("NVIDIA Thor")
    assert thor.figure("memory_bytes") == Unknown("the catalog has no memory for Thor")
    assert thor.peak(thor.reference_precision()) == Unknown("the catalog has no fp16 peak for Thor")
    with pytest.raises(InputError, match="unknown: the catalog has no board power for Thor"):
        _ = thor.power_w


def test_gpus_without_16_bit_units_compute_in_fp32() -> None:
    assert [get_gpu(name).reference_precision() for name in ("p40", "gtx-1080-ti", "p100-pcie-16gb", "rtx-4070")] == [
        "fp32", "fp32", "fp16", "fp16"
    ]  # fmt: skip


def test_a_familys_figures_carry_their_own_source() -> None:
    """What the family states holds for each GPU, what a GPU states for itself, what a figure states for it alone."""
    card, sibling = get_gpu("rtx-4090"), get_gpu("rtx-4060")
    assert card.board_power_w is not None
    assert sibling.board_power_w is not None
    assert (card.board_power_w.verified, sibling.board_power_w.verified) == (True, False)
    assert card.peak_tflops["bf16"].source.startswith("NVIDIA Ada GPU Architecture whitepaper")
    assert "product pages of the RTX 40 series" in sibling.board_power_w.source
    assert {g.vendor for g in load_gpus().values() if g.key.startswith("rtx-40")} == {"NVIDIA"}
