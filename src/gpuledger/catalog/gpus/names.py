"""Which spelling of a GPU's name is the same name, which is another model's, and which is not that of one board?"""

from __future__ import annotations

import re
from collections.abc import Iterable

# CodeCarbon: "4 x NVIDIA A100-SXM4-80GB".
_COUNT = re.compile(r"^\d{1,3} ?x ")
_BRANDS = re.compile(r"^((nvidia|geforce|tesla|amd|radeon|instinct)[\s_-]*)+(?=.)", re.IGNORECASE)
# rocm-smi: "Arcturus GL-XL [Instinct MI100]"; with several names in the brackets it may be any of them.
_DIE = re.compile(r"^[^\[]*\[([^\[\]/]+)\]$")
_SHARED_DIE = re.compile(r"\[[^\[\]]+/[^\[\]]+\]$")
# "NVIDIA A40-48Q", "GRID P40-2B4", "GRID A100-1-5CME": gigabytes, the kind of license, then what a MIG slice adds.
_VGPU = re.compile(r"-\d{1,3}(b4|[abcq](me|nome|meall)?(gfx)?)$")
# "NVIDIA H100 80GB HBM3 MIG 3g.40gb", and "nvidia_a100_1g.5gb" or "mig-1g.5gb.me" of schedulers.
_MIG = re.compile(r"(^|[\s_-])mig[\s_-]|(^|[\s._-])\d{1,2}g\.\d{1,3}gb([.+-]\w+)*$")
# Letters of a word that are as alike as this are one word, misspelled.
ALIKE_FROM_RATIO = 0.6
# The model in a word: "a100" of "a100d", "4090" of "4090", "rtx4090" of "rtx4090".
_MODEL = re.compile(r"([a-z]*)(\d+)(?!\d*gb)")


def plain(name: str) -> str:
    """A name without letter case, count, brand and the separators tools differ in; one between digits is kept."""
    words = _DIE.sub(r"\1", _COUNT.sub("", name.strip().casefold()))
    joined = re.sub(r"[\s_-]+", lambda gap: "-" if _between_digits(gap) else "", words)
    return _BRANDS.sub("", joined)


def _between_digits(gap: re.Match[str]) -> bool:
    before, after = gap.string[: gap.start()][-1:], gap.string[gap.end() :][:1]
    return before.isdigit() and after.isdigit()


def squeezed(text: str) -> str:
    """A text in which a plain name is found whatever separators it has there, next to names that only look like it."""
    return text.casefold().translate(_NO_SEPARATORS)


_NO_SEPARATORS = {ord(c): None for c in " _-\t"}


def without_brand(name: str) -> str:
    """A name without the words that are of its maker."""
    return _BRANDS.sub("", name.strip())


def not_one_board(name: str) -> str:
    """Why this is not the name of one board: it is that of a part of one, or of a die; empty where it may be one."""
    folded = name.strip().casefold()
    if _SHARED_DIE.search(folded):
        return f"{name!r} is the name of a die: it may be any of the cards in the brackets"
    part = "a slice (MIG)" if _MIG.search(folded) else "a virtual GPU (vGPU)" if _VGPU.search(folded) else ""
    return f"{name!r} is {part} of a board: a part of it, so a board's price and power are not its own" if part else ""


def same_model(asked: str, spellings: Iterable[str], words: frozenset[str]) -> bool:
    """Whether this may be a misspelling: the numbers are those of the GPU, and it has every word that names GPUs."""
    theirs = [s.casefold() for s in spellings]
    has, models = {w for s in theirs for w in words_of(s)}, {m for s in theirs for m in _models(s)}
    if any(w in words and w not in has for w in words_of(asked.casefold())):
        return False
    return all(any(_alike(m, other) for other in models) for m in _models(asked.casefold()))


def words_of(text: str) -> list[str]:
    """The words of a name that are letters only."""
    return [w for w in re.split(r"[^a-z0-9]+", text) if w.isalpha()]


def _models(text: str) -> list[tuple[str, str]]:
    return [(m[1], m[2]) for w in re.split(r"[^a-z0-9]+", text) for m in _MODEL.finditer(w)]


def _alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """One number, behind letters that are the same or look like it: "smx5" for "sxm5", never "p4" for "t4"."""
    import difflib  # only a mistake needs it

    (a, number), (b, same) = one, other
    if number != same or a.endswith(b) or b.endswith(a):
        return number == same
    return difflib.SequenceMatcher(None, a, b).ratio() > ALIKE_FROM_RATIO
