"""Is what cannot be asked refused, with the option, the value and what is allowed?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.models import get_model
from gpuledger.errors import InputError
from gpuledger.plan.setup import Setup, check, serving_split, with_defaults

LLAMA = get_model("llama-3.1-70b")
H100, A100, T4 = (get_gpu(name) for name in ("h100-sxm", "a100-sxm-80gb", "t4"))


@pytest.mark.parametrize(
    ("how", "gpu", "says", "hint"),
    [
        ({"count": 0}, H100, "count=0", "from 1 up"),
        ({"batch": 0}, H100, "batch=0", "from 1 up"),
        ({"count": 10**7}, H100, "count=10000000", "fewer"),
        ({"zero": 4}, H100, "zero=4", "0 none"),
        ({"lora_rank": -1}, H100, "lora_rank=-1", "16"),
        ({"precision": "fp8"}, A100, "has no fp8 units", "int8"),
        ({"precision": "bf16"}, T4, "has no bf16 units", "fp16"),
        ({"precision": "fp64"}, H100, "no precision is called", "fp4"),
        ({"precision": "nf5"}, H100, "no precision is called", "nf4"),
        ({"precision": "int4"}, H100, "not for training", "frozen_precision"),
        ({"mode": "serve", "cache_precision": "int4"}, H100, "cache_precision=int4", "fp8"),
        ({"frozen_precision": "nf4"}, H100, "without lora_rank", "lora_rank=16"),
        ({"optimizer": "adam"}, H100, "no optimizer is called", "adamw"),
        ({"scheme": "mix"}, H100, "no scheme is called", "mixed"),
        ({"count": 3, "tensor": 3}, H100, "does not divide the 64 heads", "1"),
        ({"count": 8, "tensor": 16}, H100, "not a multiple of", "16"),
        ({"count": 6, "pipeline": 4}, H100, "not a multiple of", "4"),
        ({"count": 100, "pipeline": 100}, H100, "has 80 layers", "at most 80"),
        ({"sequence": 200_000}, H100, "at most 131072", "131072"),
        ({"mode": "serve", "context": 200_000}, H100, "context=200000", "131072"),
    ],
)
def test_refused(how, gpu, says, hint):
    with pytest.raises(InputError) as error:
        check(Setup(**{"mode": "train", **how}), LLAMA, gpu)
    assert says in error.value.message
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("how", "says"), [({"count": 2, "tensor": 2}, "no attention heads"), ({"lora_rank": 8}, "no matrices")]
)
def test_a_convolutional_network_has_no_heads(how, says):
    with pytest.raises(InputError, match=says):
        check(Setup(mode="train", **how), get_model("resnet-50"), H100)


def test_defaults_of_the_split():
    training, serving = Setup(mode="train", count=8), Setup(mode="serve", count=8)
    assert with_defaults(training, LLAMA, tensor=None).data == 8
    assert with_defaults(serving, LLAMA, tensor=None).tensor == 8
    assert with_defaults(serving, LLAMA, tensor=2).data == 4
    assert serving_split(get_model("llama-3.2-3b"), 5) == 1  # 24 heads: five GPUs are five copies
    assert serving_split(get_model("resnet-50"), 8) == 1


def test_a_question_that_can_be_asked():
    check(Setup(mode="serve", count=16, tensor=16, precision="int4", cache_precision="fp8"), LLAMA, A100)
    check(Setup(mode="train", count=16, tensor=4, pipeline=2, lora_rank=8, frozen_precision="nf4"), LLAMA, H100)
