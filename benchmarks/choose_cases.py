"""Which types of models are measured next? Drawn by lot from the registry of transformers, so that none is favored.

    PYTHONPATH=src python benchmarks/choose_cases.py --out benchmarks/model_cases_NAME.toml --split NAME [--count 30]

All types of the installed transformers that no other model_cases*.toml has, and whose usual class computes a loss, are
shuffled with SEED and taken in that order until there are enough. One is passed over where the planner itself reports
that it cannot build or trace it, or where it needs more than MOST_GB; the reason is written into the file. Sizes follow
a fixed ladder: the default configuration, then fewer layers, experts and words, then narrower ones. Schemes alternate;
where the one whose turn it is cannot be planned, the next is tried. Of types around the same text model, one is taken.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import tomllib
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any

from plan_cases import planned

from gpuledger.errors import InputError
from gpuledger.training.blueprint import modules

HERE = Path(__file__).parent
SEED = 20261116
MOST_PARAMS, AIM_GB, MOST_GB, MOST_STEP_S = 1_300_000_000, 16, 40, 8
TEXTS, TOWERS = ("text_config", "encoder", "decoder"), ("vision_config", "audio_config")
LONGEST_S = 120  # of the processor
SCHEMES = ("mixed", "autocast", "pure")
BATCHES = (16, 4, 1)
SEQUENCE = 512
FEW = {
    "num_hidden_layers": 8, "encoder_layers": 6, "decoder_layers": 6, "depth": 8, "num_layers": 8, "n_layers": 8,
    "num_experts": 16, "num_local_experts": 16, "n_routed_experts": 16, "moe_num_experts": 16, "vocab_size": 32_768,
}  # fmt: skip
NARROW = {
    "hidden_size": 1024, "intermediate_size": 2816, "moe_intermediate_size": 704, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64,
}  # fmt: skip
LADDER: tuple[dict[str, int], ...] = ({}, FEW, FEW | {"hidden_size": 1024, "intermediate_size": 2816}, FEW | NARROW)


class TooSlow(Exception):
    """Tracing took longer than LONGEST_S."""


def left(own: Path) -> list[str]:
    """Types no other file of cases has, shuffled."""
    transformers = modules.need_transformers()
    files = (file for file in HERE.glob("model_cases*.toml") if file.resolve() != own.resolve())
    cases = (case for file in files for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"])
    had = {case["config"].get("model_type") for case in cases}
    names = [name for name in sorted(transformers.CONFIG_MAPPING.keys()) if name not in had]
    random.Random(SEED).shuffle(names)
    return names


def usual_class(name: str) -> str:
    """The class the planner takes for a type, where it computes a loss."""
    transformers = modules.need_transformers()
    mappings = (getattr(getattr(transformers, head, None), "_model_mapping", {}) for head in modules._HEADS[:-1])  # noqa: SLF001
    kind = transformers.CONFIG_MAPPING[name]
    found = next((mapping[kind] for mapping in mappings if kind in mapping), None)
    found = found[0] if isinstance(found, tuple) else found
    return "" if found is None or "labels" not in signature(found.forward).parameters else str(found.__name__)


def shrunk(config: Any, most: dict[str, int]) -> dict[str, Any]:
    """The fields of a configuration and of those within it that are larger; towers get fewer layers, not narrower."""
    small = {name: value for name, value in most.items()
             if isinstance(getattr(config, name, None), int) and getattr(config, name) > value}  # fmt: skip
    for name in (*TEXTS, *TOWERS):
        inner = getattr(config, name, None)
        if hasattr(inner, "to_dict") and (fields := shrunk(inner, FEW if most and name in TOWERS else most)):
            small[name] = {"model_type": inner.model_type, **fields}
    return small


def chosen(name: str, kind: str, split: str, schemes: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """The case of a type at the first rung of the ladder that is small enough, by the first scheme that is planned."""
    made, why = modules.need_transformers().CONFIG_MAPPING[name], "larger than wanted at the end of the ladder"
    for most in LADDER:
        try:
            fields = {"model_type": name, **shrunk(made(), most)}
            built = modules.build(dict(fields), fp32=False, full_attention=False)
        except Exception as error:  # noqa: BLE001
            why = " ".join(str(error).split()) or type(error).__name__
            continue
        if built.module.num_parameters() > MOST_PARAMS:
            continue
        case = {"name": name.replace("_", "-").lower(), "split": split, "class": kind, "config": fields}
        for scheme in schemes:
            usual: dict[str, Any] = {"sequence": SEQUENCE} if built.text else {}
            found = _fitted(case, usual | ({"scheme": scheme} if scheme != "mixed" else {}), folder)
            if isinstance(found, dict):
                return found
            why = found
    raise InputError(why, hint="")


def _fitted(case: dict[str, Any], how: dict[str, Any], folder: Path) -> dict[str, Any] | str:
    """The case with the largest batch that is planned to take AIM_GB, or one row MOST_GB; or why there is none."""
    for batch in BATCHES:
        run = {"micro_batch": batch, **how}
        found = planned({**case, "run": run}, folder)
        if "not_planned" in found:
            return str(found["not_planned"])
        rows_per_s = found["per_s"] / (SEQUENCE if found["unit"] == "token" else 1)
        seconds = 2 * batch / rows_per_s  # one step has two micro-batches
        if found["total_bytes"] <= (AIM_GB if batch > 1 else MOST_GB) * 1e9 and seconds <= MOST_STEP_S:
            return {**case, "runs": [run]}
    return f"{found['total_bytes'] / 1e9:.0f} GB and {seconds:.0f} s per step with one row"


def text_model(name: str) -> str:
    """The type of the text model within another; two around the same one would measure the same with text only."""
    inner = getattr(modules.need_transformers().CONFIG_MAPPING[name](), "text_config", None)
    return str(getattr(inner, "model_type", ""))


def written(cases: list[dict[str, Any]], passed: dict[str, str], split: str) -> str:
    """The file of cases, with what was passed over and why."""
    lines = [f"# Types drawn by benchmarks/choose_cases.py with seed {SEED} (round: {split}); their plans were written",
             f"# down in benchmarks/data/models_{split}_planned.json before any of them was measured."]  # fmt: skip
    for case in cases:
        lines += ["[[case]]", *(f"{name} = {_toml(value)}" for name, value in case.items()), ""]
    lines += ["# Passed over, in the order drawn:", *(f"# {name}: {why[:150]}" for name, why in passed.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


def _slow(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the file of cases to write")
    parser.add_argument("--split", required=True, help="the name of the round")
    parser.add_argument("--count", type=int, default=30, help="how many cases")
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, _slow)
    cases: list[dict[str, Any]] = []
    passed: dict[str, str] = {}
    inside: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for name in left(given.out):
            kind = usual_class(name)
            if not kind or any(case["class"] == kind for case in cases):
                continue  # a part of a model, or one that is there under another name
            at = len(cases) % len(SCHEMES)
            signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
            try:
                if (inner := text_model(name)) in inside:
                    raise InputError(f"one around {inner} was drawn before", hint="")
                cases.append(chosen(name, kind, given.split, (*SCHEMES[at:], *SCHEMES[:at]), Path(folder)))
                inside |= {inner} - {""}
            except TooSlow:
                passed[name] = f"tracing took more than {LONGEST_S} s"
            except Exception as error:  # noqa: BLE001
                passed[name] = " ".join(str(error).split()) or type(error).__name__
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(f"{len(cases)} {name}: {passed.get(name) or cases[-1]}", file=sys.stderr, flush=True)
            given.out.write_text(written(cases, passed, given.split), encoding="utf-8")
            if len(cases) == given.count:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
