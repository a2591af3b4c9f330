"""Three training jobs to tune: gpuledger train tune examples/tuning_jobs.py:language_model

language_model  a small decoder on random tokens, fp32, small batches, loss printed every step
images          a small convolutional network fed from image files that are decoded and augmented on the CPU
tuned           the same decoder as it should be run: nothing is left to gain
"""

from __future__ import annotations

import io
import random
import tempfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gpuledger.training.job import TrainingJob
from gpuledger.training.tune.settings import Settings

ON_GPU = torch.cuda.is_available()
# On a CPU the same jobs run in small, to be tried out and tested.
WIDTH, LAYERS, VOCAB, LENGTH = (1024, 3, 16384, 512) if ON_GPU else (64, 2, 256, 32)
SIDE, FILES = (128, 2048) if ON_GPU else (32, 64)
CLASSES = 100


class Decoder(nn.Module):
    """A GPT of a few layers."""

    def __init__(self, vocab: int = VOCAB, width: int = WIDTH, layers: int = LAYERS, length: int = LENGTH) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            hidden = block(hidden, causal=True)
        return self.head(self.norm(hidden))


class Block(nn.Module):
    """Attention and a wide layer, each with its norm before it."""

    def __init__(self, width: int, head: int = 64) -> None:
        super().__init__()
        self.heads = max(1, width // head)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, causal: bool = False) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))


class RandomTokens:
    """Texts without meaning; number i is always the same."""

    def __init__(self, texts: int = 4096, vocab: int = VOCAB, length: int = LENGTH) -> None:
        self._all = torch.randint(0, vocab, (texts, length + 1), generator=torch.Generator().manual_seed(7))

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, i: int) -> torch.Tensor:
        return self._all[i]


def next_token_loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the next token."""
    logits = model(tokens[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


class ImageFiles:
    """Image files in a folder, decoded and augmented when asked for; JPEG where Pillow is there, else packed bytes."""

    def __init__(self, files: int = FILES, side: int = SIDE) -> None:
        self._side, self._folder = side, image_folder(files, side)
        self._names = sorted(self._folder.iterdir())

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        pixels = read_image(self._names[i], self._side)
        # Number i is always augmented the same way, whichever worker does it: the loss stays comparable.
        dice = random.Random(i)
        edge = self._side // 8
        pixels = np.roll(pixels, (dice.randrange(edge), dice.randrange(edge)), axis=(0, 1))
        if dice.random() < 0.5:
            pixels = pixels[:, ::-1]
        planes = np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32)
        planes -= 115.0
        planes *= (1 + 0.2 * dice.random()) / 64
        return torch.from_numpy(planes), i % CLASSES


@cache
def image_folder(files: int, side: int) -> Path:
    """Files of smooth noise, written once for each run."""
    folder, dice = Path(tempfile.mkdtemp(prefix="images-")), np.random.default_rng(3)
    for i in range(files):
        coarse = dice.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
        write_image(folder / f"{i:05d}", coarse.repeat(8, axis=0).repeat(8, axis=1))
    return folder


def write_image(path: Path, pixels: np.ndarray) -> None:
    """A JPEG, or packed bytes without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        path.with_suffix(".z").write_bytes(zlib.compress(pixels.tobytes()))
    else:
        Image.fromarray(pixels).save(path.with_suffix(".jpg"), quality=90)


def read_image(path: Path, side: int) -> np.ndarray:
    """The pixels of a file."""
    if path.suffix == ".z":
        return np.frombuffer(zlib.decompress(path.read_bytes()), dtype=np.uint8).reshape(side, side, 3)
    from PIL import Image

    # Read at once: a decoder that reads piece by piece makes dozens of system calls.
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        return np.asarray(image.convert("RGB"))


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.way = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.way(x))


def small_resnet(width: int = 128 if ON_GPU else 8) -> nn.Module:
    """A ResNet of four stages, one block each."""
    stages = [Residual(width * 2**i, width * 2 ** (i + 1), 2) for i in range(3)]
    first = [nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*first, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width * 8, CLASSES))


def class_loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of the class."""
    images, labels = batch
    return functional.cross_entropy(model(images).float(), labels)


BATCH = 8 if ON_GPU else 2
language_model = TrainingJob(
    name="small language model",
    model=Decoder,
    dataset=RandomTokens,
    loss=next_token_loss,
    settings=Settings(precision="fp32", batch=BATCH, accumulate=8),
    tokens_per_sample=LENGTH,
)
images = TrainingJob(
    name="convolutional network with a real loader",
    model=small_resnet,
    dataset=ImageFiles,
    loss=class_loss,
    settings=Settings(precision="tf32" if ON_GPU else "fp32", batch=BATCH * 4, accumulate=4),
)
tuned = TrainingJob(
    name="small language model, already tuned",
    model=Decoder,
    dataset=RandomTokens,
    loss=next_token_loss,
    settings=Settings(
        precision="bf16", workers=2 if ON_GPU else 0, pin=ON_GPU, batch=BATCH * 8, logging="async",
        compile="default", fused=ON_GPU,
    ),
    tokens_per_sample=LENGTH,
)  # fmt: skip
