"""Label codes and events: the arrays that every part of the mechanism works on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Codes = NDArray[np.int64]
"""Category codes, shape (n, m): entry (i, r) is the category of record i in attribute r."""

Floats = NDArray[np.float64]

Indices = NDArray[np.int64]
"""Positions of rows, shape (n,)."""

Event = Mapping[int, Collection[int]]
"""{attribute: categories}: the records whose attributes all lie in the named categories."""


def as_codes(labels: ArrayLike, sizes: Sequence[int]) -> Codes:
    """`labels` as an (n, m) array of codes, each checked to lie in range(ψ_r).

    Raises:
        ValueError: wrong shape, or a code out of range (named by row and attribute, never by value).
    """
    codes = np.asarray(labels)
    if codes.ndim != 2 or codes.shape[1] != len(sizes):
        raise ValueError(f"labels have shape {codes.shape}; expected (n, {len(sizes)})")
    if codes.size and not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(f"labels are of type {codes.dtype}; expected integer category codes")
    outside = (codes < 0) | (codes >= np.asarray(sizes))
    if outside.any():
        row, attribute = np.argwhere(outside)[0]
        raise ValueError(f"row {row}: the code of attribute {attribute} is not in 0..{sizes[attribute] - 1}")
    return codes.astype(np.int64, copy=False)


def cells(sizes: Sequence[int]) -> int:
    """Π ψ_r: the number of combinations of categories."""
    return math.prod(sizes)


def combinations(codes: Codes) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows of `codes` (c, m), how often each occurs (c,), and which one each row is (n,)."""
    n, m = codes.shape
    keys = np.zeros(n, dtype=np.int64)
    radix = 1
    for attribute in range(m):
        column = codes[:, attribute]
        size = int(column.max(initial=0)) + 1
        if radix * size > 2**62:
            unique, keys = np.unique(keys, return_inverse=True)
            radix = len(unique)
        keys = keys * size + column
        radix *= size
    if radix <= max(4 * n, 1024):
        occupied = np.flatnonzero(np.bincount(keys, minlength=radix))
        position = np.zeros(radix, dtype=np.int64)
        position[occupied] = np.arange(len(occupied))
        which = position[keys]
    else:
        which = np.unique(keys, return_inverse=True)[1].astype(np.int64, copy=False)
    counts = np.bincount(which).astype(np.int64, copy=False)
    first = np.empty(len(counts), dtype=np.int64)
    first[which[::-1]] = np.arange(n - 1, -1, -1)
    return codes[first], counts, which


def grid(sizes: Sequence[int]) -> Codes:
    """All combinations in row-major order, shape (Π ψ_r, m)."""
    return np.indices(tuple(sizes)).reshape(len(sizes), -1).T.astype(np.int64)


def event_mask(codes: Codes, event: Event) -> NDArray[np.bool_]:
    """Which rows of `codes` count for the event, shape (n,)."""
    mask = np.ones(len(codes), dtype=bool)
    for attribute, categories in event.items():
        mask &= np.isin(codes[:, attribute], list(categories))
    return mask
