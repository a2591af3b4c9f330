"""Does `gpuledger plan migrate` answer, write its report, and refuse what cannot be asked?"""

from __future__ import annotations

import json

import pytest


def refused(cli, *args, words=()):
    ended = cli("plan", "migrate", *args)
    assert ended.code == 2, ended
    assert ended.out == ""
    assert "Traceback" not in ended.err
    first, second = ended.err.strip().splitlines()
    assert first.startswith("error: ")
    assert second.startswith("next: ")
    for word in words:
        assert word in ended.err, ended.err


FORM = ("--instance", "P5", "--gpus", 1, "--workload", "inference", "--model-size", "small")


def test_market_prices_by_default_with_their_date(cli):
    ended = cli("plan", "migrate", *FORM, "--json")
    (plan,) = ended.json()["plans"]
    assert ended.code == 0
    assert plan["price_dates"] == ["2026-08-22", "2026-08-22"]
    assert not plan["illustrative"]
    assert plan["current"]["instance"] == "p5.4xlarge"
    assert all(o["region"] == "us-east-1" for o in plan["options"])


def test_the_reference_by_name_and_every_figure_of_the_screen_in_json(cli):
    args = ("plan", "migrate", *FORM, "--config", "reference")
    screen, (plan,) = cli(*args).out, cli(*args, "--json").json()["plans"]
    assert "Refused, and what would change that" in cli(*args, "--full").out
    assert plan["illustrative"]
    assert plan["current"]["monthly_usd"] == "4500"
    assert "$4,500" in screen
    assert f"{float(plan['chosen']['monthly_usd']):,.0f}" in screen
    assert f"{plan['chosen']['score']:.3f}" in screen
    assert {"low_monthly_usd", "high_monthly_usd", "speed_ratio", "usd_per_million", "risk", "effort"} <= set(
        plan["chosen"]
    )
    assert set(plan["chosen"]["measures"]) == {
        "dollars", "throughput", "headroom", "interconnect", "availability", "risk", "effort",
    }  # fmt: skip
    for kind, words in (("CANNOT FIT MODEL", "cannot fit the model"), ("SPOT", "on spot, which production")):
        assert words in screen.split("Refused: ")[1]
        assert any(r["kind"] == kind and r["remedies"] for r in plan["refused"])


def test_a_model_of_the_catalog_on_a_gpu_by_name(cli):
    args = ("--gpu", "a100-sxm4-80gb", "--gpus", 4, "--workload", "fine-tuning", "--model", "llama-3.1-70b")
    (plan,) = cli("plan", "migrate", *args, "--precision", "bf16", "--priority", "balanced", "--json").json()["plans"]
    assert plan["job"]["model"] == "llama-3.1-70b"
    assert plan["current"]["gpu"] == "a100-sxm4-80gb"
    assert plan["weights"] == {"cost": 0.33, "performance": 0.33, "reliability": 0.34}


def test_a_set_sums_up_and_an_option_changes_its_members(cli):
    args = ("plan", "migrate", "--set", "basic_demos", "--config", "reference", "--json")
    found, on_demand = cli(*args).json(), cli(*args, "--on-demand").json()
    assert found["now_usd"] == "5300"
    assert [p["job"]["workload_id"] for p in found["plans"]] == ["fine_tuning_medium_p5", "inference_small_p5"]
    assert on_demand["plans"][0]["current"]["purchase"] == "on-demand"


def test_a_tag_plans_the_workloads_that_have_it(cli):
    args = ("plan", "migrate", "--config", "reference", "--json", "--tag")
    one, both = cli(*args, "cost_reduction").json(), cli(*args, "cost_reduction", "--tag", "batch").json()
    assert [p["job"]["workload_id"] for p in one["plans"]] == [
        "fine_tuning_medium_p5", "inference_small_p5", "batch_inference_g5",
    ]  # fmt: skip
    assert one["name"] == "tagged cost_reduction"
    assert [p["job"]["workload_id"] for p in both["plans"]] == ["batch_inference_g5"]


def test_a_kept_number_of_gpus_refuses_others_and_the_screen_names_the_patterns(cli):
    args = ("plan", "migrate", "--workload-id", "fine_tuning_medium_p5", "--config", "reference", "--keep-gpus")
    (plan,) = cli(*args, "--json").json()["plans"]
    assert {o["gpus"] for o in plan["options"]} == {2}
    assert any(r["kind"] == "COUNT" and r["remedies"] for r in plan["refused"])
    assert [p["name"] for p in plan["patterns"] if p["applies"]] == ["legacy_training", "budget_research"]
    assert "Common patterns" in cli(*args).out
    assert "scaling" in plan["chosen"]


def test_python_answers_what_the_command_answers(cli):
    import gpuledger
    from gpuledger.errors import GpuledgerError

    said = cli("plan", "migrate", "--workload-id", "inference_small_p5", "--config", "reference", "--json").json()
    found = gpuledger.plan.migrate(workload_id="inference_small_p5", config="reference")
    assert found.to_dict()["plans"] == said["plans"]
    assert "Migration plan" in found.to_markdown()
    assert gpuledger.plan.run("migrate", tags="batch", config="reference").plans[0].job.tags
    with pytest.raises(GpuledgerError, match="did you mean workload"):
        gpuledger.plan.migrate(workloud="inference")
    with pytest.raises(GpuledgerError, match="not given: instance or gpu, workload, model or size"):
        gpuledger.plan.migrate()


def test_whole_instances_cost_more_than_shares(cli):
    args = ("plan", "migrate", "--instance", "p5.48xlarge", "--gpus", 2, "--workload", "inference", "--model-size",
            "small", "--json")  # fmt: skip
    (share,), (whole,) = (cli(*args, *more).json()["plans"] for more in ((), ("--whole",)))
    assert float(whole["current"]["monthly_usd"]) == pytest.approx(4 * float(share["current"]["monthly_usd"]))


def test_a_measured_load_refuses_what_is_too_slow(cli):
    args = ("plan", "migrate", *FORM, "--config", "reference", "--json")
    (idle,), (busy,) = (cli(*args, "--busy", pct).json()["plans"] for pct in (1, 90))
    assert len(busy["options"]) < len(idle["options"])
    assert all(o["speed_ratio"] >= 0.9 for o in busy["options"])


def test_what_has_no_matrices_is_fine_tuned_whole(cli):
    args = ("plan", "migrate", "--instance", "P5", "--workload", "fine-tuning", "--json", "--model")
    (cnn,), (decoder,) = (cli(*args, name).json()["plans"] for name in ("resnet-50", "llama-3.2-1b"))
    assert (cnn["job"]["method"], decoder["job"]["method"]) == ("full", "lora")
    assert any("every weight trained" in words for words in cnn["assumptions"])


def test_a_speed_that_is_not_known_sends_nobody_to_another_gpu(cli):
    ended = cli("plan", "migrate", "--instance", "P5", "--workload", "inference", "--model", "resnet-50")
    assert ended.code == 2
    assert "resnet-50 writes no tokens" in ended.err
    assert "measure it where it runs" in ended.err


def test_an_old_price_is_called_old_by_the_rule_of_the_price_list(cli):
    """85 days are old for spot (30) and not for on-demand (180), as `gpuledger prices` says of the same offers."""
    listed = cli("prices", "--cloud", "aws", "--region", "us-east-1", "--by", "region", "--limit", 0, "--json").json()
    old = {(row["instance"], row["purchase"].replace("_", "-")): row["stale"] for row in listed["rows"]}
    (plan,) = cli("plan", "migrate", "--workload-id", "training_large_p4d", "--json").json()["plans"]
    seen = (plan["current"], *plan["options"], *plan["refused"])
    assert {o["purchase"] for o in seen} == {"on-demand", "spot"}
    assert all(o["stale"] == old[o["instance"], o["purchase"]] for o in seen)
    assert plan["current"]["stale"] == any("present setup is of" in words for words in plan["warnings"])


def test_the_report_as_page_markdown_and_json(cli, tmp_path):
    ended = cli("plan", "migrate", "--workload-id", "training_large_p4d", "--config", "reference", "--out", "plan")
    assert ended.code == 0
    page, text = ((tmp_path / "plan" / f"migrate.{kind}").read_text() for kind in ("html", "md"))
    data = json.loads((tmp_path / "plan" / "migrate.json").read_text())
    for said in (page, text):
        assert "CANNOT FIT MODEL" in said
        assert "Assumptions" in said
        assert "Performance gains with P5/P6 instances" in said
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert data["plans"][0]["verdict"] == "move"
    assert data["plans"][0]["current"]["fits"] is False


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ("--instance or --gpu", "--workload", "--model or --model-size", "--workload-id")),
        ((*FORM[:2], "--gpus", 0, *FORM[4:]), ("GPU count 0", "from 1 to")),
        ((*FORM, "--precision", "fp7"), ("'fp7'", "bf16")),
        ((*FORM, "--priority", "speed"), ("'speed'", "cost, performance, balanced, reliability")),
        ((*FORM, "--hours", 800), ("800", "at most 744")),
        ((*FORM, "--hours", "nan"), ("nan", "at most 744")),
        ((*FORM, "--busy", 120), ("--busy 120", "from 0 to 100")),
        ((*FORM, "--cloud", "nobody"), ("no cloud is called 'nobody'", "aws", "yotta")),
        ((*FORM, "--use-case", "fun"), ("'fun'", "batch_inference")),
        ((*FORM, "--method", "magic"), ("'magic'", "lora, qlora, full")),
        ((*FORM, "--method", "full"), ("--method full", "fine-tuning", "high volume inference")),
        (("--set", "performance_focus", "--method", "lora"), ("--method lora", "fine-tuning")),
        ((*FORM[:4], "--workload", "training", *FORM[6:], "--busy", 20), ("--busy 20", "server", "research training")),
        (("--instance", "P5", "--workload", "fine-tuning", "--model", "resnet-50", "--method", "lora"),
         ("'lora'", "resnet-50 has no matrices to adapt", "full")),
        ((*FORM, "--model", "llama-3.1-8b"), ("--model and --model-size",)),
        ((*FORM, "--gpu", "l4"), ("--instance and --gpu",)),
        (("--instance", "P9", *FORM[2:]), ("no instance or GPU is called 'P9'",)),
        (("--instance", "P5", "--workload", "dancing", "--model-size", "small"), ("'dancing'", "training")),
        (("--instance", "P5", "--workload", "inference", "--model-size", "tiny"), ("'tiny'", "small")),
        (("--instance", "P5", "--workload", "inference", "--model", "llama-9"), ("llama-9",)),
        (("--workload-id", "nobody"), ("no workload is called 'nobody'",)),
        (("--gpu", "a100-sxm4-80gb", *FORM[4:], "--precision", "fp8"), ("'fp8'", "A100-SXM4-80GB", "bf16")),
        (("--instance", "P5", "--workload", "training", "--model-size", "small", "--precision", "int8"),
         ("'int8'", "not for training", "bf16")),
        (("--set", "nobody"), ("no workload set is called 'nobody'",)),
        (("--set", "basic_demos", "--instance", "P5"), ("--set names its own setups",)),
        (("--tag", "cost_reductoin"), ("--tag 'cost_reductoin'", "did you mean cost_reduction?")),
        (("--tag", "batch", "--tag", "research"), ("no workload has all of the tags batch, research", "fewer")),
        (("--tag", "batch", "--set", "basic_demos"), ("--set and --tag both name workloads", "one of them")),
        (("--tag", "batch", "--gpu", "l4"), ("--tag names its own setups", "--instance and --gpu")),
        ((*FORM, "--config", "nowhere"), ("nowhere", "gpuledger config init")),
        ((*FORM, "--config", "reference", "--region", "eu-west-1"), ("--config brings its own prices",)),
        ((*FORM, "--region", "mars"), ("mars",)),
        (("--instance", "P5e", *FORM[2:], "--region", "eu-west-3"), ("not offered in aws eu-west-3", "--region any")),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_ends_with_2_and_says_what_is_allowed(cli, args, words):
    refused(cli, *args, words=words)


def test_a_model_that_fits_nowhere_ends_with_2_after_the_whole_answer(cli, tmp_path):
    args = ("plan", "migrate", "--instance", "P6", "--gpus", 1, "--workload", "training", "--model-size", "giant")
    (tmp_path / "mine").mkdir()
    size = {"name": "Giant", "parameter_count_billion": 5000, "memory_overhead_multiplier": 2}
    (tmp_path / "mine" / "model_config.json").write_text(json.dumps({"model_sizes": {"giant": size}}))
    ended = cli(*args, "--config", "mine", "--json")
    assert ended.code == 2
    assert ended.json()["plans"][0]["verdict"] == "nothing fits"
    assert "error: giant (5000B) runs on none of" in ended.err
    assert "CANNOT FIT MODEL" in ended.err
    assert "next: " in ended.err


class TestConfig:
    def test_show_says_both_prices(self, cli):
        ended = cli("config", "show", "reference")
        assert ended.code == 0
        assert "6.25" in ended.out
        assert cli("config", "show", "reference", "--json").json()["instances"]["P5"]["usd_per_gpu_h"] == "6.25"

    def test_init_then_check_then_a_fault(self, cli, tmp_path):
        assert cli("config", "init", "mine").code == 0
        assert "sound: 9 instances, 4 model sizes, 7 workloads, 5 sets" in cli("config", "check", "mine").out
        again = cli("config", "init", "mine")
        assert again.code == 2
        assert "force" in again.err
        (tmp_path / "mine" / "gpu_instances.json").write_text(
            '{"P5": {"on_demand_cost_per_hour": -5}, "G5": {"vcpus": 0}}'
        )
        ended = cli("config", "check", "mine")
        assert ended.code == 2
        assert ended.err.count("error: ") == 2
        assert "mine/gpu_instances.json: gpu_instances.P5.on_demand_cost_per_hour: -5 is not allowed" in ended.err
        assert "allowed: a number above 0" in ended.err
        told = cli("config", "check", "mine", "--json")
        assert (told.code, told.json()["sound"], len(told.json()["faults"])) == (2, False, 2)

    def test_check_reports_values_without_effect(self, cli, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "gpu_instances.json").write_text('{"P5": {"compute_tflops": 3000}}')
        ended = cli("config", "check", "mine")
        assert ended.code == 0
        assert "note: gpu_instances.P5.compute_tflops 3000 has no effect on plans" in ended.out
        assert "interconnect_multiplier of 9 shipped instances have no effect on plans" in ended.out
        told = cli("config", "check", "mine", "--json").json()["unused"]
        assert [one["field"] for one in told if one["yours"]] == ["gpu_instances.P5.compute_tflops"]
        assert {"value", "why", "instead"} <= set(told[0])

    def test_show_has_the_month_at_spot_prices_and_says_what_each_field_does(self, cli):
        told = cli("config", "show", "reference", "--json").json()
        assert told["instances"]["G6e"]["gpu_spot_monthly_usd"] == "1260"
        assert told["fields"]["gpu_instances"]["vcpus"]["effect"] == "shown"
        assert "1,260" in cli("config", "show", "reference").out

    def test_the_shipped_one_is_sound(self, cli):
        assert cli("config", "check").code == 0
