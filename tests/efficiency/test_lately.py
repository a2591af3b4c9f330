"""Does a short window say what each GPU mostly did?"""

from __future__ import annotations

import pytest

from gpuledger.efficiency.lately import mode_of
from gpuledger.physics.states import State

WORDS = {
    State.IDLE: "idle", State.WAIT: "waiting", State.LIGHT: "light", State.LIGHT_UNSEEN: "light",
    State.MATRIX: "matrix", State.MATRIX_UNSEEN: "matrix", State.MATRIX_THIN: "matrix", State.VECTOR: "vector",
    State.VECTOR_UNSEEN: "vector", State.MEMORY: "memory", State.MEMORY_UNSEEN: "memory", State.MEMORY_THIN: "memory",
    State.MATRIX_ALONE: "matrix", State.MEMORY_ALONE: "memory",
    State.CAPPED: "capped", State.PLAIN: "busy", State.UNSTATED: "unknown",
}  # fmt: skip


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_word(state):
    assert mode_of(state.label) == WORDS[state]


def test_lines_of_version_1_have_no_state():
    assert mode_of(None) == "unknown"
