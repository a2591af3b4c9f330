"""Do the callbacks of Hugging Face and Lightning measure what their trainers do?"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from gpuledger.lake.counted import read_counted  # noqa: E402
from gpuledger.lake.layout import Lake  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
torch.set_num_threads(1)


def test_hugging_face(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from gpuledger.training.meter.hf_callback import MeterCallback

    small = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32,
    )  # fmt: skip
    ids = [{"input_ids": list(range(16)), "labels": list(range(16))} for _ in range(64)]
    args = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=8,
        report_to=[], use_cpu=True, save_strategy="no", logging_steps=2, disable_tqdm=True,
    )  # fmt: skip
    callback = MeterCallback(lake=tmp_path / "lake", run_id="hf", show=False)
    trainer = transformers.Trainer(transformers.LlamaForCausalLM(small), args, train_dataset=ids, callbacks=[callback])
    trainer.train()
    seen = callback.report.seen
    assert (seen.steps, seen.updates) == (8, 8)
    assert seen.tokens_per_step == 2 * 4 * 16, "all batches of an update"
    assert seen.timed_steps == 5
    for phase in ("data_wait", "forward", "backward", "optimizer"):
        assert seen.phases_s[phase] > 0, phase
    assert seen.loader.workers == 0
    assert seen.work.tokens == 128
    (run,) = read_counted(Lake(tmp_path / "lake"))
    assert run.state == "done"


def test_lightning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightning = pytest.importorskip("pytorch_lightning")
        from gpuledger.training.meter.lightning_callback import MeterCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(32, 8)

        def training_step(self, batch, _index):
            inputs, targets = batch
            return nn.functional.cross_entropy(self.layer(inputs), targets)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = DataLoader(TensorDataset(torch.randn(96, 32), torch.randint(0, 8, (96,))), batch_size=8)
    callback = MeterCallback(lake=tmp_path / "lake", run_id="pl", show=False)
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[callback], precision="bf16-mixed",
    )  # fmt: skip
    trainer.fit(Module(), data)
    seen = callback.report.seen
    assert (seen.steps, seen.updates) == (12, 12)
    assert seen.samples_per_step == 8
    assert seen.precision == "bf16"
    for phase in ("data_wait", "h2d", "forward", "backward", "optimizer"):
        assert seen.phases_s[phase] > 0, phase
    assert seen.work.forward_flop == 2 * 8 * 32 * 8
    assert "batch_to_device" not in vars(trainer.strategy), "everything is as it was"
    (run,) = read_counted(Lake(tmp_path / "lake"))
    assert run.state == "done"


def test_lightning_that_raises_keeps_what_was_counted(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightning = pytest.importorskip("pytorch_lightning")
        from gpuledger.training.meter.lightning_callback import MeterCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def training_step(self, batch, index):
            if index == 6:
                raise ValueError("boom")
            return self.layer(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = DataLoader(TensorDataset(torch.randn(40, 4)), batch_size=4)
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[MeterCallback(lake=tmp_path, run_id="pl", show=False)],
    )  # fmt: skip
    with pytest.raises(ValueError, match="boom"):
        trainer.fit(Module(), data)
    (run,) = read_counted(Lake(tmp_path))
    assert run.state == "raised ValueError: boom"
    assert run.report["seen"]["steps"] == 6
