"""What share of its board does a MIG slice hold, and how do readings of the whole board count once?"""

from __future__ import annotations

import numpy as np

from gpuledger.units import PPM

_SEVENTHS = 7


def exact_share(ppm: np.ndarray) -> np.ndarray:
    """Shares of a board from whole ppm; MIG cuts boards into sevenths, which whole ppm cannot hold. NaN stays NaN."""
    sevenths = np.rint(ppm * _SEVENTHS / PPM)
    return np.where(np.abs(ppm * _SEVENTHS - sevenths * PPM) < _SEVENTHS, sevenths / _SEVENTHS, ppm / PPM)


def sliced_wall_ms(
    board: np.ndarray, device: np.ndarray, share: np.ndarray, observed_ms: np.ndarray, boards: int
) -> tuple[np.ndarray, np.ndarray]:
    """By board the time it was seen as slices, and the sum of share x time over its slices of known share.

    `device` counts the slices. The time is that of the slice seen longest; slices that follow one another hold more
    than that together, and never more than all of the board at a time.
    """
    known = ~np.isnan(share)
    board, device, share, observed = board[known], device[known], share[known], observed_ms[known]
    held = np.bincount(board, share * observed, minlength=boards)
    of_device = np.bincount(device, observed, minlength=1)
    longest = np.zeros(boards)
    np.maximum.at(longest, board, of_device[device])
    return np.maximum(longest, held), held


def slice_scale(
    board: np.ndarray, device: np.ndarray, share: np.ndarray, observed_ms: np.ndarray, boards: int
) -> np.ndarray:
    """By board the factor that makes its slices' share x reading add up to the board's reading, once.

    Energy and power are read for the whole board and repeated for each slice, whatever part of the board is in use.
    """
    wall, held = sliced_wall_ms(board, device, share, observed_ms, boards)
    return np.divide(wall, held, out=np.ones(boards), where=held > 0)
