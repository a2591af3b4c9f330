"""A training loop as first written, and what the tuner makes of it: python examples/naive_training.py

fp32 with TF32 off, image files decoded in the loop's own process, passes of eight images, `.item()` after each of them.
Without arguments it trains for a few updates and prints its speed; with --tune it prints the ladder as well.
`gpuledger train tune examples/naive_training.py:job` does the same on the command line.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))
from tuning_jobs import CLASSES, ON_GPU, SIDE, Block, ImageFiles, class_loss

from gpuledger.training.job import TrainingJob
from gpuledger.training.tune.settings import Settings

WIDTH, LAYERS, PATCH = (1024, 6, 16) if ON_GPU else (64, 2, 8)
BATCH, ACCUMULATE = (8, 16) if ON_GPU else (2, 8)


class SmallViT(nn.Module):
    """Patches of an image through a few transformer blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.zeros((SIDE // PATCH) ** 2, WIDTH))
        self.blocks = nn.Sequential(*(Block(WIDTH) for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.blocks(hidden).mean(1))


job = TrainingJob(
    name="naive image training",
    model=SmallViT,
    dataset=ImageFiles,
    loss=class_loss,
    settings=Settings(precision="fp32", workers=0, batch=BATCH, accumulate=ACCUMULATE, logging="every-step"),
    samples_per_epoch=1_281_167,  # as many as ImageNet's training images: an epoch worth waiting for
)


def train(updates: int) -> float:
    """The naive loop itself, as a person would write it; images a second."""
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if ON_GPU else "cpu"
    model = SmallViT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(ImageFiles(), batch_size=BATCH, shuffle=True)
    batches = (batch for _ in itertools.count() for batch in loader)  # epoch after epoch
    begun = time.perf_counter()
    for update in range(updates):
        for _ in range(ACCUMULATE):
            images, labels = next(batches)
            loss = functional.cross_entropy(model(images.to(device)), labels.to(device)) / ACCUMULATE
            loss.backward()
            print(f"\rupdate {update + 1}: loss {loss.item() * ACCUMULATE:.3f}", end="")
        optimizer.step()
        optimizer.zero_grad()
    return updates * BATCH * ACCUMULATE / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=4, help="optimizer steps of the naive loop")
    parser.add_argument("--tune", action="store_true", help="let the tuner make it faster")
    args = parser.parse_args()
    if args.updates < 1:
        parser.error("--updates: give at least 1")
    print(f"\n{train(args.updates):,.0f} images a second, as first written")
    if args.tune:
        from gpuledger.cli.app import run

        run(["train", "tune", f"{__file__}:job"])


if __name__ == "__main__":
    main()
