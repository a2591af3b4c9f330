"""A plain training loop to put an audit around: gpuledger audit -- python examples/train_lm.py --seconds 60

A small language model on random tokens. --precision fp32 is the naive loop, --wait-ms makes it wait for data.
"""

import argparse
import sys
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
parser.add_argument("--wait-ms", type=float, default=0, help="pretend the loader takes this long for a batch")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument(
    "--steps", type=int, default=0, help="stop after so many steps instead, and print the seconds they took"
)
parser.add_argument("--again", action="store_true", help="after each run wait for a line on the input, then run again")
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
layer = nn.TransformerEncoderLayer(1536, 16, 6144, dropout=0.0, batch_first=True, norm_first=True)
model = nn.Sequential(
    nn.Embedding(16384, 1536), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), nn.Linear(1536, 16384)
)
model = model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
loss_of = nn.CrossEntropyLoss()


def step() -> torch.Tensor:
    """One batch: wait for it, forward, backward, update."""
    time.sleep(args.wait_ms / 1000)
    tokens = torch.randint(0, 16384, (args.batch, 1025), device=device)
    with torch.autocast(device, torch.bfloat16, enabled=args.precision == "bf16"):
        logits = model(tokens[:, :-1])
        loss = loss_of(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


def settle() -> None:
    """Wait for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def run() -> None:
    """Train for the steps or seconds asked for, and say how it went."""
    start, done = time.perf_counter(), 0
    while done < args.steps if args.steps else time.perf_counter() - start < args.seconds:
        last = step()
        done += 1
        if done % 10 == 0:
            settle()
    settle()
    took = time.perf_counter() - start
    tokens_per_s = done * args.batch * 1024 / took
    print(f"{done} steps in {took:.3f} s, {tokens_per_s:,.0f} tokens/s, loss {last.item():.3f}", flush=True)


for _ in range(3):
    step()
settle()
run()
while args.again and sys.stdin.readline():
    run()
