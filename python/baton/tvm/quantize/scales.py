# SPDX-License-Identifier: Apache-2.0
"""How far the numbers reach that integers are to stand for."""

import math

import numpy as np

# Share of the magnitudes that "percentile" keeps within the range.
PERCENTILE = 0.99999
# Bins of a distribution of magnitudes, at most; each is to hold some values on average, or there is no distribution to see.
BINS, IN_A_BIN = 2048, 8


def power2_scale(array):
    """The least power of two that no magnitude is above."""
    most = float(np.abs(array).max(initial=0))
    return 2.0 ** math.ceil(math.log2(most)) if most > 0 else 1.0


def max_scale(array):
    """The largest magnitude."""
    most = float(np.abs(array).max(initial=0))
    return most if most > 0 else 1.0


def by_percentile(samples, percentile=PERCENTILE):
    """The magnitude that all but a few in 100,000 values stay below."""
    magnitudes = np.abs(np.asarray(samples).ravel())
    if magnitudes.size == 0:
        return 1.0
    at = min(magnitudes.size - 1, math.ceil(percentile * magnitudes.size) - 1)
    most = float(np.partition(magnitudes, at)[at])
    return most if most > 0 else max_scale(magnitudes)


def _divergences(counts, levels):
    """(ends, divergences): how much of the distribution of magnitudes `counts` is lost with `levels` steps up to each end, in bins."""
    ends, losses = np.arange(levels, len(counts) + 1), []
    beyond = np.concatenate([np.cumsum(counts[::-1])[::-1], [0]])
    for end in ends:
        kept = counts[:end]
        clipped = kept.copy()
        clipped[-1] += beyond[end]
        # Each step stands for the mean of the bins in it that hold something.
        starts = np.arange(levels) * end // levels
        sums, filled = np.add.reduceat(kept, starts), np.add.reduceat((kept > 0).astype("float64"), starts)
        widths = np.diff(np.append(starts, end))
        means = np.repeat(np.divide(sums, filled, out=np.zeros(levels), where=filled > 0), widths)
        shown = np.where(kept > 0, means, 0.0)
        p, q = clipped / clipped.sum(), shown / max(shown.sum(), 1e-300)
        at = p > 0
        losses.append(float((p[at] * np.log(p[at] / np.maximum(q[at], 1e-12))).sum()))
    return ends, losses


def by_kl_divergence(samples, nbit=8):
    """The range whose integers lose least information about the distribution of magnitudes (S. Migacz: 8-bit Inference with TensorRT,
    2017). Zeros are exact in any range, so they do not count. Few values make no distribution: all of them are kept."""
    magnitudes = np.abs(np.asarray(samples, "float32").ravel())
    magnitudes = magnitudes[magnitudes > 0]
    if magnitudes.size == 0:
        return 1.0
    most, levels = float(magnitudes.max()), 2 ** (min(nbit, 8) - 1)
    bins = min(BINS, magnitudes.size // IN_A_BIN)
    if bins <= levels:
        return most
    counts = np.histogram(magnitudes, bins=bins, range=(0, most))[0].astype("float64")
    ends, losses = _divergences(counts, levels)
    return min(most, (int(ends[int(np.argmin(losses))]) + 0.5) * most / bins)


__all__ = ["by_kl_divergence", "by_percentile", "max_scale", "power2_scale"]
