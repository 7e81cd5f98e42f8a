# SPDX-License-Identifier: Apache-2.0
"""Random numbers of a key (`relay.random.threefry_key`), on tensors of tensor expressions."""

from .functions import apply, find_operator


def _of(name):
    return find_operator("random." + name)


def threefry_generate(gen, out_shape):
    """[the key for the next numbers, random uint64 of a shape]."""
    return apply(_of("threefry_generate"), gen, tuple(out_shape))


def threefry_split(gen):
    """Two keys, whose numbers are independent of each other."""
    return apply(_of("threefry_split"), gen)


def uniform(gen, low, high, out_shape, out_dtype):
    """[the key for the next numbers, numbers spread evenly over [low, high)]."""
    return apply(lambda key, *ends: _of("uniform")(key, tuple(out_shape), out_dtype, *(ends or (low, high))), gen, *_tensors(low, high))


def normal(gen, mean, scale, out_shape, out_dtype):
    """[the key for the next numbers, numbers of a normal distribution]."""
    return apply(lambda key, *both: _of("normal")(key, tuple(out_shape), out_dtype, *(both or (mean, scale))), gen, *_tensors(mean, scale))


def _tensors(*values):
    return values if all(hasattr(v, "op") for v in values) else ()


__all__ = ["normal", "threefry_generate", "threefry_split", "uniform"]
