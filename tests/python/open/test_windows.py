# SPDX-License-Identifier: Apache-2.0
"""Convolutions and their like whose windows and channels are open: beside the same program for fixed shapes, saved and loaded; extents that
do not fit are an error, and nothing is read that is not there."""

import re

import numpy as np
import pytest

import baton
from baton import relay

HEAD = '#[version = "0.0.5"]\n'


def f32(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape).astype("float32")


# An extent in braces is open; each list: shapes of the arguments.
PROGRAMS = {
    "window": ("nn.conv2d(%x, %w, padding=[1, 1, 1, 1])", "(1, 4, 8, 8)", "(6, 4, {kh}, {kw})",
               [((1, 4, 8, 8), (6, 4, 3, 3)), ((1, 4, 8, 8), (6, 4, 1, 5))]),
    "window that an attribute says": ("nn.conv2d(%x, %w, kernel_size=[3, 2], channels=6)", "({n}, 4, {h}, 8)", "({o}, 4, {kh}, {kw})",
                                      [((2, 4, 8, 8), (6, 4, 3, 2)), ((1, 4, 3, 8), (6, 4, 3, 2))]),
    "all": ("nn.conv2d(%x, %w, strides=[2, 1], dilation=[1, 2], padding=[1, 2, 1, 2])", "({n}, {c}, {h}, {w})", "({o}, {i}, {kh}, {kw})",
            [((2, 4, 8, 9), (6, 4, 3, 2)), ((1, 1, 5, 5), (2, 1, 1, 1))]),
    "one dimension": ("nn.conv1d(%x, %w, padding=[1, 1])", "(1, 4, {w})", "(6, 4, {k})", [((1, 4, 8), (6, 4, 3)), ((1, 4, 5), (6, 4, 2))]),
    "three dimensions": ("nn.conv3d(%x, %w)", "(1, 2, 6, {h}, 5)", "(3, 2, {kd}, {kh}, 2)", [((1, 2, 6, 4, 5), (3, 2, 3, 2, 2))]),
    "groups": ("nn.conv2d(%x, %w, groups=2)", "(1, {c}, 8, 8)", "({o}, {i}, {k}, 3)", [((1, 4, 8, 8), (6, 2, 3, 3)), ((1, 2, 8, 8), (4, 1, 2, 3))]),
    "rows last": ('nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="HWIO")', "(1, {h}, 8, 4)", "({k}, 3, 4, {o})",
                  [((1, 8, 8, 4), (2, 3, 4, 5))]),
    "each channel alone": ("nn.conv2d(%x, %w, groups=4, padding=[1, 1, 1, 1])", "(1, 4, {h}, 8)", "(4, 1, {k}, {l})",
                           [((1, 4, 8, 8), (4, 1, 3, 3)), ((1, 4, 3, 8), (4, 1, 2, 5))]),
    "a multiplier": ("nn.conv2d(%x, %w, groups=4)", "(1, 4, 8, 8)", "(4, {m}, 3, 3)", [((1, 4, 8, 8), (4, 2, 3, 3)), ((1, 4, 8, 8), (4, 1, 3, 3))]),
    "a multiplier or groups": ("nn.conv2d(%x, %w, groups=4)", "(1, {c}, 8, 8)", "(4, 2, 3, 3)", [((1, 4, 8, 8), (4, 2, 3, 3)), ((1, 8, 8, 8), (4, 2, 3, 3))]),
    "a multiplier, all open": ("nn.conv2d(%x, %w, groups=4)", "(1, {c}, 8, 8)", "({o}, {i}, {k}, 3)",
                               [((1, 4, 8, 8), (4, 2, 3, 3)), ((1, 8, 8, 8), (4, 2, 3, 3)), ((1, 4, 8, 8), (8, 1, 2, 3))]),
    "transposed": ("nn.conv2d_transpose(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1])", "({n}, {c}, {h}, 8)", "({i}, {o}, {k}, 3)",
                   [((1, 4, 8, 8), (4, 6, 3, 3)), ((2, 2, 3, 8), (2, 1, 2, 3))]),
    "transposed, groups": ("nn.conv1d_transpose(%x, %w, groups=2, kernel_size=[3])", "(1, {c}, 5)", "({i}, 3, {k})", [((1, 4, 5), (4, 3, 3))]),
    "deformable": ("nn.deformable_conv2d(%x, multiply(%x, 0.5f), %w, kernel_size=[1, 1], padding=[0, 0, 0, 0])", "({n}, {c}, {h}, 5)", "(3, {c}, 1, 1)",
                   [((1, 2, 4, 5), (3, 2, 1, 1))]),
    "einsum": ('einsum((%x, %w), equation="ab,bc->ac")', "({a}, {b})", "({d}, {c})", [((2, 3), (3, 4)), ((2, 3), (1, 4)), ((2, 1), (3, 4))]),
    "slopes": ("nn.prelu(%x, %w)", "(2, {c}, 3)", "({s})", [((2, 4, 3), (4,)), ((2, 4, 3), (1,))]),
}  # fmt: skip

MISFITS = {
    "input channels": ("nn.conv2d(%x, %w)", "(1, {c}, 8, 8)", "(6, 4, 3, 3)", ((1, 3, 8, 8), (6, 4, 3, 3)), ((1, 4, 8, 8), (6, 4, 3, 3))),
    "channels of a group": ("nn.conv2d(%x, %w, groups=2)", "(1, {c}, 8, 8)", "(6, 4, 3, 3)", ((1, 4, 8, 8), (6, 4, 3, 3)), ((1, 8, 8, 8), (6, 4, 3, 3))),
    "groups": ("nn.conv2d(%x, %w, groups=2)", "(1, 4, 8, 8)", "({o}, 2, 3, 3)", ((1, 4, 8, 8), (5, 2, 3, 3)), ((1, 4, 8, 8), (6, 2, 3, 3))),
    "the window": ("nn.conv2d(%x, %w, kernel_size=[3, 3])", "(1, 4, 8, 8)", "(6, 4, {k}, 3)", ((1, 4, 8, 8), (6, 4, 2, 3)), ((1, 4, 8, 8), (6, 4, 3, 3))),
    "a window beyond": ("nn.conv2d(%x, %w)", "(1, 4, 8, 8)", "(6, 4, {k}, 3)", ((1, 4, 8, 8), (6, 4, 10, 3)), ((1, 4, 8, 8), (6, 4, 8, 3))),
    "an empty window": ("nn.conv2d(%x, %w)", "(1, 4, 8, 8)", "(6, 4, {k}, 3)", ((1, 4, 8, 8), (6, 4, 0, 3)), ((1, 4, 8, 8), (6, 4, 8, 3))),
    "transposed": ("nn.conv2d_transpose(%x, %w)", "(1, {c}, 8, 8)", "(4, 6, 3, 3)", ((1, 3, 8, 8), (4, 6, 3, 3)), ((1, 4, 8, 8), (4, 6, 3, 3))),
    "a multiplier": ("nn.conv2d(%x, %w, groups=4)", "(1, {c}, 8, 8)", "({o}, 2, 3, 3)", ((1, 4, 8, 8), (8, 2, 3, 3)), ((1, 4, 8, 8), (4, 2, 3, 3))),
    "letters": ('einsum((%x, %w), equation="ab,bc->ac")', "(2, {b})", "({d}, 4)", ((2, 3), (2, 4)), ((2, 3), (3, 4))),
    "slopes": ("nn.prelu(%x, %w)", "(2, {c}, 3)", "(4)", ((2, 3, 3), (4,)), ((2, 4, 3), (4,))),
    "a block": ('layout_transform(add(%x, %w), src_layout="NCHW4c", dst_layout="NCHW")', "(1, 2, 3, 3, {b})", "(1)", ((1, 2, 3, 3, 3), (1,)), ((1, 2, 3, 3, 4), (1,))),
}  # fmt: skip


def program(body, x, w, names):
    """The text of one, with a name or `?` for each open extent."""
    x, w = (re.sub(r"{(\w+)}", r"\1" if names else "?", t) for t in (x, w))
    return f"{HEAD}def @main(%x: Tensor[{x}, float32], %w: Tensor[{w}, float32]) {{ {body} }}"


@pytest.mark.parametrize("names", [True, False], ids=["names", "unknown"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_open_windows_give_what_fixed_ones_give(case, names, tmp_path):
    body, x, w, feeds = PROGRAMS[case]
    model = baton.compile(program(body, x, w, names))
    model.save(tmp_path / "m.so")
    loaded = baton.load(tmp_path / "m.so")
    for shapes in feeds:
        args = [f32(*shape) for shape in shapes]
        fixed = program(body, *("(" + ", ".join(map(str, s)) + ")" for s in shapes), True)
        want = relay.create_executor("debug", relay.fromtext(fixed)).evaluate()(*args).numpy()
        for run in (model, loaded):
            np.testing.assert_allclose(run(*args).numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("names", [True, False], ids=["names", "unknown"])
@pytest.mark.parametrize("case", MISFITS)
def test_extents_that_do_not_fit_are_refused(case, names):
    body, x, w, bad, good = MISFITS[case]
    model = baton.compile(program(body, x, w, names))
    with pytest.raises(ValueError, match="must be"):
        model(*(f32(*shape) for shape in bad))
    if good:
        model(*(f32(*shape) for shape in good))
