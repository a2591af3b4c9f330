"""Is the rule in the audit of a busy GPU, with its saving?"""

import gpuledger


def test_a_busy_gpu_is_to_be_cooled(busy_lake):
    audit = gpuledger.open(busy_lake).audit(prices=2)
    (found,) = [r for r in audit.recommendations if r.id == "cool-down"]
    assert found.gpus == 1
    assert "nvidia-smi" in found.change.text
