# SPDX-License-Identifier: Apache-2.0
"""Complex tensors, Fourier transforms, special functions, and what is looked at behind compiled code."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton as tvm  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh")


def same(function, *args):
    got = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})(*args)
    want = function(*args)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4 * float(want.abs().max()) if want.dtype != torch.bool else 0)


def complexes(*shape):
    return torch.randn(*shape, dtype=torch.complex64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y + 2 * x - y / (1 + 2j),
        lambda x, y: (x / y).conj().transpose(0, 1) @ y,
        lambda x, y: torch.cat([x, y], 1)[:, 1:].abs(),
        lambda x, y: torch.view_as_real(x.exp() * y).sum(0),
        lambda x, y: torch.where(x.real > 0, x, y).angle(),
        lambda x, y: torch.polar(x.abs(), y.real).imag,
        lambda x, y: (x == y) | (x != x),
        lambda x, y: torch.view_as_complex(torch.stack([x.real, y.imag], -1)),
    ],
)
def test_operators(function):
    same(function, complexes(3, 3), complexes(3, 3))


@pytest.mark.parametrize("points", [2, 7, 64, 100, 127, 480])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms(name, points):
    x = torch.randn(3, points) if name in ("rfft", "ihfft") else complexes(3, points)
    same(getattr(torch.fft, name), x)


def test_transforms_of_several_axes_and_norms():
    same(lambda x: torch.fft.fft2(x, norm="ortho"), torch.randn(2, 6, 5))
    same(lambda x: torch.fft.irfftn(torch.fft.rfftn(x, norm="forward"), x.shape, norm="forward"), torch.randn(4, 6, 8))
    same(lambda x: torch.stft(x, 32, 8, window=torch.hann_window(32), return_complex=True).abs(), torch.randn(2, 200))


def test_an_exported_program_is_complex_only_inside():
    class Mixes(torch.nn.Module):
        def forward(self, x):
            return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real

    x = torch.randn(2, 6, 8)
    got = tvm.compile(torch.export.export(Mixes(), (x,)))(x)
    torch.testing.assert_close(torch.from_dlpack(got), Mixes()(x), rtol=1e-4, atol=1e-4)

    class Gives(torch.nn.Module):
        def forward(self, x):
            return torch.fft.fft(x)

    with pytest.raises(tvm.error.UnsupportedError, match=r"the result 0 is complex.*view_as_real"):
        tvm.compile(torch.export.export(Gives(), (x,)))

    class Takes(torch.nn.Module):
        def forward(self, x):
            return x.abs()

    with pytest.raises(tvm.error.UnsupportedError, match=r"the input `x` is complex"):
        tvm.compile(torch.export.export(Takes(), (complexes(3),)))


def test_an_operator_without_a_rule_for_complex_tensors_is_named():
    with pytest.raises(Exception, match=r"aten\.acos\.default.*there is no rule of it for complex tensors"):
        torch.compile(torch.acos, backend="baton", options={"fallback": "error"})(complexes(3))
    with pytest.warns(UserWarning, match="aten.acos.default"):
        torch._dynamo.reset()
        x = complexes(3)
        got = torch.compile(lambda x: torch.acos(x * 2) + 1, backend="baton")(x)
    torch.testing.assert_close(got, torch.acos(x * 2) + 1)


def test_a_singular_matrix_raises_pytorchs_error():
    solve = torch.compile(torch.linalg.inv, backend="baton", fullgraph=True, options={"fallback": "error"})
    x = torch.randn(2, 3, 3)
    torch.testing.assert_close(solve(x), torch.linalg.inv(x), rtol=1e-3, atol=1e-4)
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg\.inv: \(Batch element 1\).*singular"):
        solve(torch.stack([torch.eye(3), torch.zeros(3, 3)]))

    def part(x):
        return torch.linalg.inv(x) @ torch.linalg.eigvals(x).real[..., None]

    with pytest.warns(UserWarning, match="linalg_eig"):
        island = torch.compile(part, backend="baton")
        torch.testing.assert_close(island(x), part(x), rtol=1e-3, atol=1e-4)


SPECIAL = {
    **{f"special.bessel_{k}": k for k in ("j0", "j1", "y0", "y1")},
    **{f"special.modified_bessel_{k}": k for k in ("i0", "i1", "k0", "k1")},
    **{"special.i0e": "i0e", "special.i1e": "i1e", "special.scaled_modified_bessel_k0": "k0e", "special.scaled_modified_bessel_k1": "k1e"},
}


@pytest.mark.parametrize("name", [*SPECIAL, "special.airy_ai"])
def test_bessels_and_airys_functions(name):
    scipy = pytest.importorskip("scipy.special")
    x = np.concatenate([[1e-30, 1e-3], np.linspace(0.01, 40, 500), [300.0]])
    if "_y" not in name and "_k" not in name:
        x = np.concatenate([-x[:-1], x])
    function = getattr(torch.special, name.removeprefix("special."))
    given = torch.tensor(x)
    got = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})(given).numpy()
    want = scipy.airy(x)[0] if name.endswith("airy_ai") else getattr(scipy, SPECIAL[name])(x)
    far = want == 0  # the least numbers
    np.testing.assert_allclose(got[~far], want[~far], rtol=1e-8, atol=1e-9 if name[8:12] in ("bess", "airy") else 0)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_derivatives_of_digamma(order):
    x = torch.cat([torch.linspace(-7.9, 9, 170), torch.tensor([-3.0, 0.0, 1e-3])]).double()
    got = torch.compile(lambda v: torch.polygamma(order, v), backend="baton", options={"fallback": "error"})(x)
    want = torch.polygamma(order, x)
    usual = want.abs() < 1e25  # eager is finite at some poles
    torch.testing.assert_close(got[usual], want[usual], rtol=1e-6, atol=0)


STRIDED = {
    "transposed": lambda x: x.t(),
    "steps": lambda x: x[::2, 1::2],
    "conjugate": lambda x: x.conj(),
    "transposed conjugate": lambda x: x.mH,
    "expanded": lambda x: x[:, None].expand(4, 3, 6),
    "channels_last": lambda x: x.reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "imaginary part": lambda x: x.imag,
    "real view": torch.view_as_real,
}


@pytest.mark.parametrize("name", STRIDED)
def test_strides_of_complex_tensors(name):
    def function(x):
        return (x * 2).abs() + x.real, x + x

    x = STRIDED[name](torch.randn(4, 6, dtype=torch.complex64))
    fast = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})
    torch.testing.assert_close(fast(x), function(x), rtol=1e-4, atol=1e-5)
