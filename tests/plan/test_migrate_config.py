"""Are the three configuration files read as written, and is each fault named with file, field, value and remedy?"""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import FactError, FileFault, GpuledgerError
from gpuledger.plan.guide.config import examine, init_config, load_config, parse, reference
from gpuledger.plan.guide.options import per_gpu, prices_of, scope_of

FILES = ("gpu_instances.json", "model_config.json", "workloads.json")

# The guide's table: GB, vCPUs, GPUs, TFLOPS, GB/s, on-demand, spot, bandwidth factor, link multiplier.
TABLE = """
G4dn 16 96 1 8.1 32 .526 .214 .4 .3
G5 24 192 8 31 64 1.624 .44 .4 .3
G6 24 192 8 120 64 1.323 .727 .4 .3
G6e 48 192 8 733 450 3.5 1.75 .6 .7
P4d 40 96 8 312 600 32 10 .6 1
P4de 80 96 8 312 600 40 12 .7 1
P5 80 192 8 2000 900 50 16 .9 1
P5e 141 192 8 2000 900 55 18 1 1
P6 192 192 4 4500 1800 60 20 1 1.2
"""


class TestReference:
    @pytest.mark.parametrize("row", TABLE.split("\n")[1:-1])
    def test_the_guides_own_figures_stand_in_the_guides_own_fields(self, row):
        key, *figures = row.split()
        one = reference().instances[key]
        found = (
            one.gpu_memory_gb, one.vcpus, one.gpus_per_instance, one.compute_tflops, one.interconnect_bandwidth_gbps,
            one.on_demand_cost_per_hour, one.spot_cost_per_hour, one.memory_bandwidth_factor,
            one.interconnect_multiplier,
        )  # fmt: skip
        assert found == tuple(float(f) for f in figures)

    def test_it_says_that_its_prices_are_illustrative_and_of_what(self):
        config = reference()
        assert config.illustrative
        assert {k: scope_of(i) for k, i in config.instances.items()} == {
            k: "gpu" if k.startswith("G") else "instance" for k in config.instances
        }

    def test_a_price_of_an_instance_is_divided_by_its_gpus(self):
        # 50 / 8; the guide took 50 for one GPU.
        assert str(per_gpu(reference().instances["P5"], "on-demand")) == "6.25"
        assert str(per_gpu(reference().instances["G6e"], "on-demand")) == "3.5"

    def test_eight_gpus_of_p6_cost_twice_the_four_the_guide_prices(self):
        p6 = reference().instances["P6"]
        assert (p6.gpus, p6.gpus_per_instance) == (8, 4)
        assert prices_of(p6).usd_per_instance_h == 120

    def test_seven_workloads_five_sets_four_sizes_five_precisions(self):
        config = reference()
        counts = [len(x) for x in (config.workloads, config.sets, config.sizes, config.precisions)]
        assert counts == [7, 5, 4, 5]
        assert [s.parameter_count_billion for s in config.sizes.values()] == [13, 35, 70, 140]
        assert [s.memory_overhead_multiplier for s in config.sizes.values()] == [1.5, 1.5, 1.6, 1.7]

    def test_weights_of_the_priorities(self):
        found = {k: tuple(getattr(p.weights, f) for f in ("cost", "performance", "reliability"))
                 for k, p in reference().priorities.items()}  # fmt: skip
        assert found == {
            "cost": (0.6, 0.2, 0.2), "performance": (0.2, 0.6, 0.2), "balanced": (0.33, 0.33, 0.34),
            "reliability": (0.2, 0.3, 0.5),
        }  # fmt: skip

    def test_every_workload_says_what_is_expected_and_why_it_runs(self):
        for one in reference().workloads.values():
            assert one.expected_outcome
            assert one.tags
            assert one.use_case in reference().use_cases


def edited(tmp_path, file, change) -> None:
    """A whole configuration with one thing changed."""
    init_config(tmp_path, force=True)
    raw = json.loads((tmp_path / file).read_text())
    change(raw)
    (tmp_path / file).write_text(json.dumps(raw))


def put(*path_and_value):
    """Change one field."""
    *path, last, value = path_and_value

    def change(raw):
        for step in path:
            raw = raw[step]
        raw[last] = value

    return change


def drop(*path):
    def change(raw):
        for step in path[:-1]:
            raw = raw[step]
        del raw[path[-1]]

    return change


P5 = ("gpu_instances", "P5")
SCENARIO = ("workloads", "inference_small_p5", "scenario")
NEW = {"name": "x"}
FAULTS = {
    "negative price": (
        0, put(*P5, "on_demand_cost_per_hour", -5),
        "gpu_instances.P5.on_demand_cost_per_hour: -5", "above 0",
    ),
    "price of zero": (
        0, put(*P5, "spot_cost_per_hour", 0),
        "gpu_instances.P5.spot_cost_per_hour: 0", "above 0",
    ),
    "price in words": (
        0, put(*P5, "on_demand_cost_per_hour", "fifty"),
        "'fifty'", "a number",
    ),
    "no GPUs": (
        0, put(*P5, "gpus_per_instance", 0),
        "gpu_instances.P5.gpus_per_instance: 0", "whole number of at least 1",
    ),
    "half a GPU": (
        0, put(*P5, "gpus_per_instance", 0.5),
        "gpus_per_instance: 0.5", "whole number",
    ),
    "missing field": (
        0, put("gpu_instances", "X", NEW),
        "gpu_instances.X.family: the field is missing", "config init",
    ),
    "unknown field": (
        0, put(*P5, "on_demand_cost", 3),
        "gpu_instances.P5.on_demand_cost: no such field", "on_demand_cost_per_hour",
    ),
    "unknown scope": (
        0, put(*P5, "price_scope", "gpus"),
        "gpu_instances.P5.price_scope: 'gpus'", "gpu or instance",
    ),
    "unknown catalog GPU": (
        0, put(*P5, "catalog_gpu", "h100"),
        "gpu_instances.P5.catalog_gpu: 'h100'", "allowed",
    ),
    "unknown section": (
        0, put("gpu_instance", {}),
        "gpu_instance: no such section", "gpu_instances",
    ),
    "section of the wrong kind": (
        0, put("gpu_instances", []),
        "gpu_instances: []", "an object",
    ),
    "wrong correction": (
        0, put(*P5, "corrections", {"vcpus": {"value": 1, "why": "x"}}),
        "corrections.vcpus", "gpus_per_instance",
    ),
    "size of zero": (
        1, put("model_sizes", "small", "parameter_count_billion", 0),
        "model_sizes.small.parameter_count_billion: 0", "above 0",
    ),
    "overhead below one": (
        1, put("model_sizes", "small", "memory_overhead_multiplier", 0.5),
        "0.5", "at least 1",
    ),
    "weights do not add up": (
        1, put("priorities", "cost", "weights", "cost", 0.7),
        "priorities.cost.weights: they add up to 1.1", "add up to 1",
    ),
    "weight above one": (
        1, put("priorities", "cost", "weights", "cost", 1.7),
        "priorities.cost.weights.cost: 1.7", "at most 1",
    ),
    "unknown priority": (
        1, put("use_cases", "batch_inference", "priority", "speed"),
        "use_cases.batch_inference.priority: 'speed'", "cost, performance",
    ),
    "a kind of work is gone": (
        1, put("workload_types", "training", None),
        "workload_types.training: the entry is missing", "three",
    ),
    "unknown workload type": (
        2, put(*SCENARIO, "workload_type", "INFERENSE"),
        "workload_type: 'INFERENSE'", "INFERENCE",
    ),
    "unknown model size": (
        2, put(*SCENARIO, "model_size", "TINY"),
        "model_size: 'TINY'", "SMALL, MEDIUM, LARGE, MASSIVE",
    ),
    "unknown precision": (
        2, put(*SCENARIO, "precision", "fp7"),
        "precision: 'fp7'", "fp32, fp16, bf16, fp8, int8",
    ),
    "a precision the GPU lacks": (
        2, put("workloads", "training_large_p4d", "scenario", "precision", "fp8"),
        "workloads.training_large_p4d.scenario.precision: 'fp8' is not allowed: A100", "allowed: fp32",
    ),
    "unknown instance": (
        2, put(*SCENARIO, "current_instance", "P9"),
        "current_instance: 'P9'", "G4dn",
    ),
    "no GPUs in use": (
        2, put(*SCENARIO, "current_gpu_count", 0),
        "current_gpu_count: 0", "at least 1",
    ),
    "more hours than a month has": (
        2, put(*SCENARIO, "monthly_hours", 800),
        "monthly_hours: 800", "at most 744",
    ),
    "missing scenario": (
        2, drop("workloads", "inference_small_p5", "scenario"),
        "", "",
    ),
    "unknown use case": (
        2, put("workloads", "inference_small_p5", "use_case", "fun"),
        "use_case: 'fun'", "batch_inference",
    ),
    "a set names nobody": (
        2, put("workload_sets", "basic_demos", ["nobody"]),
        "workload_sets.basic_demos[0]: 'nobody'", "allowed",
    ),
    "an empty set": (
        2, put("workload_sets", "basic_demos", []),
        "workload_sets.basic_demos: the set is empty", "workload",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_names_file_field_value_and_what_is_allowed(case, tmp_path):
    at, change, message, hint = FAULTS[case]
    edited(tmp_path, FILES[at], change)
    if not message:  # what a user leaves out of a shipped entry stays as shipped
        assert load_config(tmp_path).workloads
        return
    config, faults = examine(tmp_path)
    assert config is None
    told = [f for f in faults if message in f.message]
    assert told, [f.message for f in faults]
    assert str(tmp_path / FILES[at]) in told[0].message
    assert hint in told[0].hint
    assert told[0].exit_code == 2
    with pytest.raises(GpuledgerError):
        load_config(tmp_path)


def test_all_faults_are_told_not_only_the_first(tmp_path):
    init_config(tmp_path)
    raw = json.loads((tmp_path / FILES[0]).read_text())
    raw["gpu_instances"]["P5"]["vcpus"] = -1
    raw["gpu_instances"]["G5"]["gpu_memory_gb"] = 0
    (tmp_path / FILES[0]).write_text(json.dumps(raw))
    (tmp_path / FILES[2]).write_text("{")
    assert len(examine(tmp_path)[1]) == 3


def test_all_faults_of_one_entry_are_told(tmp_path):
    own = {"price_scope": "node", "gpus_per_instance": 0, "colour": "red"}
    (tmp_path / FILES[0]).write_text(json.dumps({"gpu_instances": {"P5": own, "New": {"name": "x", "vcpus": "many"}}}))
    scenario = {"monthly_hours": 9999, "use_spot": "yes", "current_gpu_count": 0}
    (tmp_path / FILES[2]).write_text(json.dumps({"workloads": {"inference_small_p5": {"scenario": scenario}}}))
    told = {f.field for f in examine(tmp_path)[1]}
    at = "workloads.inference_small_p5.scenario"
    assert {"gpu_instances.P5.price_scope", "gpu_instances.P5.gpus_per_instance", "gpu_instances.P5.colour"} <= told
    assert {"gpu_instances.New.vcpus", "gpu_instances.New.family", "gpu_instances.New.gpu_type"} <= told
    assert {f"{at}.monthly_hours", f"{at}.use_spot", f"{at}.current_gpu_count"} <= told


def test_the_precisions_named_as_allowed_are_allowed(tmp_path):
    scenario = {"current_instance": "P4d", "precision": "fp8"}
    own = {"workloads": {"inference_small_p5": {"scenario": scenario}}}
    (tmp_path / FILES[2]).write_text(json.dumps(own))
    (fault,) = examine(tmp_path)[1]
    named = fault.hint.removeprefix("allowed: ").split(", ")
    assert "bf16" in named
    for precision in named:
        scenario["precision"] = precision
        (tmp_path / FILES[2]).write_text(json.dumps(own))
        assert examine(tmp_path)[1] == ()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"gpu_instances": {', "line 1, column"),
        ('{\n "gpu_instances": {"P5": {"vcpus": 1,,}}\n}', "line 2"),
        ('{"gpu_instances": {"P5": {"vcpus": 1e999}}}', "vcpus: inf is not a JSON number"),
        ('{"gpu_instances": {"P5": {"vcpus": NaN}}}', "vcpus: nan is not a JSON number"),
        ('{"gpu_instances": {}, "gpu_instances": {}}', "gpu_instances: the key is there twice"),
        ("[]", "list at the top"),
        ("", "the file ends there"),
    ],
)
def test_broken_json_is_told_with_its_place(text, where, tmp_path):
    (tmp_path / FILES[0]).write_text(text)
    with pytest.raises(FactError) as refused:
        load_config(tmp_path)
    assert where in refused.value.message
    assert str(tmp_path / FILES[0]) in refused.value.message
    assert refused.value.hint


def test_a_folder_that_is_not_there_or_empty_says_how_to_make_one(tmp_path):
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(FileFault) as refused:
            load_config(folder)
        assert "gpuledger config init" in refused.value.hint


def test_a_field_that_the_reference_fills_in_is_said_aloud(tmp_path):
    init_config(tmp_path)
    assert load_config(tmp_path).notes == ()
    first, last = (json.loads((tmp_path / name).read_text()) for name in (FILES[0], FILES[2]))
    del first["gpu_instances"]["P5"]["gpu_memory_gb"]
    del last["workloads"]["inference_small_p5"]["scenario"]["current_gpu_count"]
    (tmp_path / FILES[0]).write_text(json.dumps(first))
    (tmp_path / FILES[2]).write_text(json.dumps(last))
    instances, workloads = load_config(tmp_path).notes
    assert instances == "gpu_instances.P5: gpu_memory_gb not given: taken from the shipped reference"
    assert workloads.startswith("workloads.inference_small_p5: scenario.current_gpu_count not given")


def test_a_missing_file_is_said_aloud(tmp_path):
    (tmp_path / FILES[0]).write_text('{"gpu_instances": {}}')
    config = load_config(tmp_path)
    assert "has no model_config.json and no workloads.json" in config.notes[0]
    assert not config.illustrative


def test_the_files_written_by_init_load_as_the_reference(tmp_path):
    init_config(tmp_path)
    assert load_config(tmp_path).instances == reference().instances
    assert load_config(tmp_path).illustrative
    with pytest.raises(FileFault, match="there already"):
        init_config(tmp_path)


def test_null_removes_and_another_gpu_forgets_what_was_said_of_the_first(tmp_path):
    (tmp_path / FILES[0]).write_text('{"gpu_instances": {"G4dn": null, "P5": {"gpu_type": "NVIDIA Other"}}}')
    (tmp_path / FILES[2]).write_text('{"workloads": {"production_serving_g4dn": null}, "workload_sets": '
                                     '{"cost_optimization_focus": ["inference_small_p5"]}}')  # fmt: skip
    config = load_config(tmp_path)
    assert "G4dn" not in config.instances
    assert config.instances["P5"].catalog_gpu is None


def test_a_users_own_gpu_count_takes_the_place_of_the_correction(tmp_path):
    (tmp_path / FILES[0]).write_text('{"P6": {"gpus_per_instance": 2}}')
    assert load_config(tmp_path).instances["P6"].gpus == 2


class TestComments:
    def test_a_comment_in_a_string_is_no_comment(self):
        assert parse('{"a": "http://x", /* b */ "c": 1 // d\n}', "f") == {"a": "http://x", "c": 1}

    @given(st.dictionaries(st.text(), st.text(alphabet=string.printable)), st.text(alphabet="ab /*\"'"))
    @settings(max_examples=40)
    def test_json_with_a_comment_is_read_as_without(self, data, comment):
        assert parse(f"{json.dumps(data, ensure_ascii=False)} // {comment}", "f") == data

    def test_a_fault_behind_a_comment_is_named_with_its_own_line(self):
        with pytest.raises(FactError, match="line 3, column"):
            parse('{ // first\n /* second */ "a": 1\n "b": 2}', "f")
