"""In which order do rows stand: by device, time, owner, pod and content?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.batch import as_dictionary, content_keys
from gpuledger.telemetry import schema

ARRIVAL = "_arrival"


def instants(table: pa.Table) -> np.ndarray:
    """A number per row, equal where device and instant are equal, for rows in any order."""
    codes, names = device_codes(table)
    at = np.unique(table[schema.TIME].to_numpy(), return_inverse=True)[1]
    ids: np.ndarray = np.unique(at * len(names) + codes, return_inverse=True)[1]
    return ids


def device_names(table: pa.Table) -> pa.DictionaryArray:
    """The device of each row as one name: the board, and the MIG instance where there is one."""
    uuid = as_dictionary(table["gpu_uuid"])
    if "gpu_instance_id" not in table.column_names:
        return uuid
    instance = as_dictionary(table["gpu_instance_id"])
    if instance.null_count == len(instance):
        return uuid
    joined = pc.binary_join_element_wise(
        uuid.dictionary_decode(), pc.coalesce(instance.dictionary_decode(), pa.scalar("")), "/"
    )
    return pc.utf8_rtrim(joined, characters="/").dictionary_encode()


def device_codes(table: pa.Table) -> tuple[np.ndarray, list[str]]:
    """Each row's device as a number that sorts like the device's name, and the names."""
    return ranked(device_names(table))


def ranked(labels: pa.DictionaryArray) -> tuple[np.ndarray, list[str]]:
    """A label column as numbers that sort like its texts (NULL first), and the texts that occur, in that order."""
    texts = [t or "" for t in labels.dictionary.to_pylist()]
    indices = labels.indices.fill_null(len(texts)) if labels.indices.null_count else labels.indices
    codes = indices.to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts) + 1))
    texts.append("")
    names = sorted({texts[i] for i in used})
    position = {name: i for i, name in enumerate(names)}
    rank = np.zeros(len(texts), dtype=np.int64)
    rank[used] = [position[texts[i]] for i in used]
    return rank[codes], names


def series_codes(table: pa.Table) -> np.ndarray | None:
    """Each row's owner, pod and container as a number that sorts like these labels; None where there is one only."""
    total: np.ndarray | None = None
    size = 1
    for column in schema.SERIES:
        if column in table.column_names:
            codes, names = ranked(as_dictionary(table[column]))
            if len(names) > 1:
                if total is not None and size * len(names) >= 1 << 62:
                    total = np.unique(total, return_inverse=True)[1]
                    size = int(total.max()) + 1
                total = codes if total is None else total * len(names) + codes
                size *= len(names)
    return total


def in_order(table: pa.Table) -> pa.Table:
    """The rows in order of device, time, owner, pod and container; rows equal in all of these by their content."""
    codes, _ = device_codes(table)
    at = table[schema.TIME].to_numpy()
    if len(codes) < 2 or _rising(codes, at):
        return table
    if (np.diff(codes) < 0).any():
        small = codes.max() < np.iinfo(np.uint16).max
        order = np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")
        if _rising(codes[order], at[order]):
            return pc.take(table, pa.array(order), boundscheck=False)
    series = series_codes(table)
    keys = [at, codes] if series is None else [series, at, codes]
    if ARRIVAL in table.column_names:
        keys.insert(0, table[ARRIVAL].to_numpy())
    order = np.lexsort(keys)
    return table.take(pa.array(_by_content(table, order, [at, codes] if series is None else [at, codes, series])))


def _by_content(table: pa.Table, order: np.ndarray, keys: list[np.ndarray]) -> np.ndarray:
    """An order of rows by keys, with the rows that are equal in all of them put in the order of their content."""
    same = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    if not same.any():
        return order
    ids = np.concatenate(([0], np.cumsum(~same)))
    places = np.flatnonzero(np.bincount(ids)[ids] > 1)
    rows = order[places]
    inside = content_keys(table.take(pa.array(rows)))
    order = order.copy()
    order[places] = rows[np.lexsort([np.arange(len(rows)), *inside, ids[places]])]
    return order


def _rising(codes: np.ndarray, at: np.ndarray) -> bool:
    """Whether devices never fall and time rises strictly within each."""
    step = np.diff(codes)
    return bool(((step > 0) | ((step == 0) & (np.diff(at) > 0))).all())
