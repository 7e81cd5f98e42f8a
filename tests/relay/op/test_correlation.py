# SPDX-License-Identifier: Apache-2.0
"""`nn.correlation`: patches of two images beside each other."""

import numpy as np
from cases import Case, Reject, each, f16, f32, f64, rejects, table


def correlation(a, b, kernel_size=1, max_displacement=1, stride1=1, stride2=1, padding=(0,), is_multiply=True, layout="NCHW"):
    """Place by place, as the paper says."""
    pad = list(padding) * (4 // len(padding)) if len(padding) < 4 else list(padding)
    a64, b64 = (np.pad(x.astype("float64"), ((0, 0), (0, 0), (pad[0], pad[2]), (pad[1], pad[3]))) for x in (a, b))
    reach = max_displacement // stride2 * stride2
    wide = np.pad(b64, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    steps = range(-reach, reach + 1, stride2)
    border = max_displacement + (kernel_size - 1) // 2
    places = [range(max_displacement, max_displacement + -(-(n - 2 * border) // stride1) * stride1, stride1) for n in a64.shape[2:]]
    out = np.zeros((len(a), len(steps) ** 2, len(places[0]), len(places[1])))
    for q, (dy, dx) in enumerate((dy, dx) for dy in steps for dx in steps):
        for i, y in enumerate(places[0]):
            for j, x in enumerate(places[1]):
                p = a64[:, :, y : y + kernel_size, x : x + kernel_size]
                w = wide[:, :, y + dy + reach :, x + dx + reach :][:, :, : p.shape[2], : p.shape[3]]
                out[:, q, i, j] = np.sum(p * w if is_multiply else abs(p - w), axis=(1, 2, 3)) / (a.shape[1] * kernel_size**2)
    return out.astype(a.dtype)


test_correlation = table(
    Case(
        "nn.correlation",
        correlation,
        f32(2, 3, 8, 7),
        f32(2, 3, 8, 7),
        max_displacement=each(0, 1, 2),
        padding=each([2], [2, 3]),
        is_multiply=each(True, False),
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "nn.correlation",
        correlation,
        f32(1, 2, 9, 9),
        f32(1, 2, 9, 9),
        kernel_size=3,
        max_displacement=2,
        stride1=each(1, 2),
        stride2=each(1, 2),
        padding=[3],
        rtol=1e-5,
        atol=1e-6,
    ),
    Case("nn.correlation", correlation, f64(1, 2, 8, 6), f64(1, 2, 8, 6), max_displacement=1, padding=[1, 0, 2, 1]),
    Case("nn.correlation", correlation, f16(1, 2, 5, 5), f16(1, 2, 5, 5), atol=1e-3),
    dynamic=True,
)

A = ((1, 2, 6, 6), "float32")
test_rejects = rejects(
    Reject("nn.correlation", "R1", ((1, 2, 6, 6), "int32"), ((1, 2, 6, 6), "int32")),
    Reject("nn.correlation", "R1", A, ((1, 2, 6, 6), "float64")),
    Reject("nn.correlation", "R2", ((2, 6, 6), "float32"), ((2, 6, 6), "float32")),
    Reject("nn.correlation", "R2", A, ((1, 2, 6, 5), "float32")),
    Reject("nn.correlation", "R3", A, A, kernel_size=2),
    Reject("nn.correlation", "R3", A, A, padding=[1, 2, 3]),
    Reject("nn.correlation", "R3", A, A, layout="NHWC"),
    Reject("nn.correlation", "R4", A, A, max_displacement=3),
)
