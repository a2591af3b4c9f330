"""Does every field of the configuration change an answer, or is it reported as being without effect?"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gpuledger.encode import encode
from gpuledger.errors import GpuledgerError
from gpuledger.plan.guide import schema
from gpuledger.plan.guide.asking import form_of, plan_configured
from gpuledger.plan.guide.config import SECTIONS, examine, load_config
from gpuledger.plan.guide.effects import fields, unused
from gpuledger.plan.guide.sets import members, tagged, together
from gpuledger.report.documents.configuration import configuration_document
from gpuledger.report.tables import Table

FILE_OF = {section: file for file, sections in SECTIONS.items() for section in sections}
STRUCTS = {section: kind for sections in SECTIONS.values() for section, kind in sections.items()}
# The block that GPU Fleet Optimizer's guide gives for a GPU of one's own, as written there.
NEW_GPU = {
    "name": "New Instance (Custom GPU)", "family": "N", "gpu_type": "NVIDIA CustomGPU", "vcpus": 128,
    "gpu_memory_gb": 96, "gpus_per_instance": 4, "compute_tflops": 1500.0, "interconnect_type": "Custom",
    "interconnect_bandwidth_gbps": 800, "on_demand_cost_per_hour": 45.0, "spot_cost_per_hour": 15.0,
    "memory_bandwidth_factor": 0.85, "interconnect_multiplier": 0.9,
    "description": "Custom GPU instance for specific workloads",
}  # fmt: skip
P5 = ("gpu_instances", "P5")
SCENARIO = ("workloads", "inference_small_p5", "scenario")
# Every field: its entry, another value, and the workload whose plan shows it (none: what `config show` prints).
CHANGES = {
    (*P5, "name"): ("Another", None),
    (*P5, "description"): ("Another", None),
    (*P5, "vcpus"): (96, None),
    (*P5, "family"): ("G", "inference_small_p5"),
    (*P5, "gpu_type"): ("NVIDIA L40S", "inference_small_p5"),
    (*P5, "catalog_gpu"): ("h200-sxm-141gb", "inference_small_p5"),
    (*P5, "gpu_memory_gb"): (60, "inference_small_p5"),
    (*P5, "gpus_per_instance"): (4, "inference_small_p5"),
    (*P5, "on_demand_cost_per_hour"): (45.0, "inference_small_p5"),
    (*P5, "spot_cost_per_hour"): (15.0, "fine_tuning_medium_p5"),
    (*P5, "price_scope"): ("gpu", "inference_small_p5"),
    (*P5, "market_instances"): ([], "inference_small_p5"),
    (*P5, "corrections"): ({"gpus_per_instance": {"value": 4, "why": "x"}}, "inference_small_p5"),
    (*P5, "figures_from"): ("configuration", "inference_small_p5"),
    (*P5, "compute_tflops"): (3000.0, "inference_small_p5"),
    (*P5, "memory_bandwidth_gb_per_s"): (5000, "inference_small_p5"),
    (*P5, "memory_bandwidth_factor"): (0.5, "inference_small_p5"),
    (*P5, "interconnect_type"): ("PCIe", "inference_small_p5"),
    (*P5, "interconnect_bandwidth_gbps"): (64, "inference_small_p5"),
    (*P5, "interconnect_multiplier"): (0.3, "inference_small_p5"),
    ("model_sizes", "small", "name"): ("Tiny", None),
    ("model_sizes", "small", "description"): ("Tiny", None),
    ("model_sizes", "small", "typical_use_cases"): (["play"], None),
    ("model_sizes", "small", "examples"): (["GPT-2"], None),
    ("model_sizes", "small", "parameter_count_billion"): (7, "inference_small_p5"),
    ("model_sizes", "small", "memory_overhead_multiplier"): (1.9, "inference_small_p5"),
    ("precisions", "fp16", "bytes_per_parameter"): (3, "inference_small_p5"),
    ("precisions", "fp16", "description"): ("half", None),
    ("workload_types", "inference", "preferred_families"): (["P"], "inference_small_p5"),
    ("workload_types", "inference", "memory_overhead_multiplier"): (1.4, "inference_small_p5"),
    ("workload_types", "inference", "use_case"): ("batch_inference", None),
    ("priorities", "cost", "name"): ("thrift", None),
    ("priorities", "cost", "weights"): ({"cost": 0.2, "performance": 0.6, "reliability": 0.2}, "inference_small_p5"),
    ("use_cases", "high_volume_inference", "priority"): ("performance", "inference_small_p5"),
    ("use_cases", "high_volume_inference", "spot_suitable"): (True, "inference_small_p5"),
    ("use_cases", "high_volume_inference", "stands_for"): ("volume", None),
    ("workloads", "inference_small_p5", "name"): ("Another", "inference_small_p5"),
    ("workloads", "inference_small_p5", "description"): ("Another", "inference_small_p5"),
    ("workloads", "inference_small_p5", "expected_outcome"): ("Another", "inference_small_p5"),
    ("workloads", "inference_small_p5", "tags"): (["another"], "inference_small_p5"),
    ("workloads", "inference_small_p5", "use_case"): ("interactive_inference", "inference_small_p5"),
    (*SCENARIO, "current_instance"): ("P5e", "inference_small_p5"),
    (*SCENARIO, "current_gpu_count"): (2, "inference_small_p5"),
    (*SCENARIO, "workload_type"): ("TRAINING", "inference_small_p5"),
    (*SCENARIO, "model_size"): ("MEDIUM", "inference_small_p5"),
    (*SCENARIO, "monthly_hours"): (100, "inference_small_p5"),
    (*SCENARIO, "use_spot"): (True, "inference_small_p5"),
    (*SCENARIO, "precision"): ("int8", "inference_small_p5"),
    (*SCENARIO, "keep_gpu_count"): (True, "inference_small_p5"),
    ("workload_set_purposes", "basic_demos", "purpose"): ("Another", None),
    ("workload_set_purposes", "basic_demos", "use_case"): ("Another", None),
}  # fmt: skip


def configured(folder, section, key, entry):
    """A configuration with one entry of the user's own laid over the shipped ones."""
    folder.mkdir(exist_ok=True)
    (folder / FILE_OF[section]).write_text(json.dumps({"illustrative": True, section: {key: entry}}))
    return load_config(folder)


def answer(config, workload_id) -> str:
    """The answer: the plan of a workload without its notes on the configuration, or the tables of `config show`."""
    if workload_id is None:
        return str([block.rows for block in configuration_document(config).summary if isinstance(block, Table)])
    plan = encode("plan", plan_configured(config, form_of(config.workloads[workload_id]), workload_id))
    del plan["assumptions"]
    return json.dumps(plan)


def test_every_field_of_the_schema_is_in_the_file_of_effects_and_in_the_cases_here():
    for section, kind in STRUCTS.items():
        if section == "workload_sets":
            continue
        assert {f.encode_name for f in msgspec.structs.fields(kind)} == set(fields()[section]), section
        tested = {path[2] for path in CHANGES if path[0] == section}
        assert tested == set(fields()[section]), section
    inner = {f.encode_name for f in msgspec.structs.fields(schema.Scenario)}
    assert inner == {path[3] for path in CHANGES if path[:3] == SCENARIO}


def test_the_page_names_every_field():
    text = (Path(__file__).parents[2] / "docs" / "planning.md").read_text(encoding="utf-8")
    for section, known in fields().items():
        missing = [name for name in known if f"`{name}`" not in text]
        assert not missing or section == "use_cases", (section, missing)
    assert all(f"`{f.encode_name}`" in text for f in msgspec.structs.fields(schema.Scenario))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The answers of a folder that changes nothing, so that its name and notes are the same."""
    folder = tmp_path_factory.mktemp("fields") / "mine"
    config = configured(folder, "workloads", "inference_small_p5", {"scenario": {}})
    return folder, {id_: answer(config, id_) for id_ in (None, "inference_small_p5", "fine_tuning_medium_p5")}


@pytest.mark.parametrize("path", CHANGES, ids=".".join)
def test_a_changed_field_changes_an_answer_or_is_reported(path, plain):
    value, workload_id = CHANGES[path]
    folder, before = plain
    for file in folder.iterdir():
        file.unlink()
    section, key, *rest = path
    config = configured(folder, section, key, {rest[0]: value} if len(rest) == 1 else {rest[0]: {rest[1]: value}})
    after = answer(config, workload_id)
    same = after == before[workload_id]
    idle = {one.field for one in unused(config) if one.yours}
    assert (".".join(path) in idle) == same, "neither in the answer nor reported" if same else "reported, yet in use"


def test_sets_and_tags_choose_the_workloads(tmp_path):
    config = configured(tmp_path, "workload_sets", "basic_demos", ["batch_inference_g5"])
    assert members(config, "basic_demos") == ("batch_inference_g5",)
    assert tagged(config, ["cost-reduction"]) == ("fine_tuning_medium_p5", "inference_small_p5", "batch_inference_g5")
    assert tagged(config, ["cost_reduction", "BATCH"]) == ("batch_inference_g5",)
    with pytest.raises(GpuledgerError, match="all of the tags batch, research"):
        tagged(config, ["batch", "research"])


class TestUnused:
    def test_it_names_what_is_used_and_how_to_make_it_count(self, tmp_path):
        config = configured(tmp_path, *P5, {"compute_tflops": 3000.0, "gpu_memory_gb": 79})
        peak, memory = (one for one in unused(config) if one.yours)
        assert str(peak) == (
            "gpu_instances.P5.compute_tflops 3000 has no effect on plans: H100-SXM5-80GB is in the catalog, 989.5 "
            'dense 16-bit TFLOPS, which is used; to make it count, set "figures_from": "configuration" in '
            "gpu_instances.P5"
        )
        assert memory.field.endswith("gpu_memory_gb")
        plan = plan_configured(config, form_of(config.workloads["inference_small_p5"]))
        assert str(peak) in plan.assumptions
        counting = configured(tmp_path, *P5, {"compute_tflops": 3000.0, "figures_from": "configuration"})
        assert not [one for one in unused(counting) if one.yours]

    def test_a_bandwidth_takes_the_place_of_the_factor_and_one_gpu_has_no_link(self, tmp_path):
        own = NEW_GPU | {"memory_bandwidth_gb_per_s": 3000, "gpus_per_instance": 1}
        idle = {one.field.rpartition(".")[2] for one in unused(configured(tmp_path, "gpu_instances", "X", own))
                if ".X." in one.field}  # fmt: skip
        assert idle == {
            "memory_bandwidth_factor", "interconnect_type", "interconnect_bandwidth_gbps", "interconnect_multiplier",
        }  # fmt: skip

    def test_a_precision_that_plans_do_not_know(self, tmp_path):
        config = configured(tmp_path, "precisions", "int3", {"bytes_per_parameter": 0.4})
        (found,) = (one for one in unused(config) if one.yours)
        assert "plans do not know this precision" in found.why

    def test_the_catalogs_figures_need_the_catalog(self, tmp_path):
        (tmp_path / "gpu_instances.json").write_text(json.dumps({"X": NEW_GPU | {"figures_from": "catalog"}}))
        (fault,) = examine(tmp_path)[1]
        assert "'NVIDIA CustomGPU' is not in the catalog" in fault.message


def test_a_tag_that_is_asked_for_names_its_set():
    config = load_config()
    plans = [plan_configured(config, form_of(config.workloads[i]), i) for i in tagged(config, ["research"])]
    assert together(plans, "tagged research").plans[0].job.workload_id == "research_training_g6e"
