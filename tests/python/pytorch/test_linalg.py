# SPDX-License-Identifier: Apache-2.0
"""Decompositions of small matrices: values that do not depend on the signs of vectors."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")


pytestmark = pytest.mark.usefixtures("fresh")


def same(function, *args, rtol=1e-4, atol=1e-5):
    torch._dynamo.reset()
    got = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})(*args)
    torch.testing.assert_close(got, function(*args), rtol=rtol, atol=atol)


def symmetric(*shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    return x + x.mT


DEFICIENT = torch.randn(5, 2, generator=torch.Generator().manual_seed(0)) @ torch.randn(2, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 3), (3, 5), (2, 4, 4), (7, 7)])
def test_singular_values_and_pseudo_inverses(shape):
    same(torch.linalg.svdvals, torch.randn(shape))
    same(torch.linalg.pinv, torch.randn(shape), rtol=1e-3, atol=1e-3)


def test_matrices_without_full_rank():
    for function in (torch.linalg.svdvals, torch.linalg.pinv, torch.linalg.matrix_rank):
        same(function, DEFICIENT)
    same(torch.linalg.svdvals, torch.zeros(3, 3))
    same(torch.linalg.pinv, torch.zeros(3, 2))


SYMMETRIC = {"diagonal": torch.diag(torch.tensor([2.0, -2.0, 2.0, 0.0])), "equal": torch.eye(3), "usual": symmetric(6, 6), "many": symmetric(2, 3, 3)}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_eigenvalues_of_symmetric_matrices(name):
    """Values of equal size and other sign, equal ones, and usual ones."""
    same(torch.linalg.eigvalsh, SYMMETRIC[name])


def test_the_exponential_of_a_matrix():
    x = torch.randn(3, 4, 4)
    for scale in (0, 1e-3, 1, 3):
        same(torch.linalg.matrix_exp, x * scale, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solutions_by_factors(left, adjoint):
    lu, pivots = torch.linalg.lu_factor(torch.randn(4, 4))
    b = torch.randn(2, 4, 3) if left else torch.randn(2, 3, 4)
    same(lambda *args: torch.linalg.lu_solve(*args, left=left, adjoint=adjoint), lu, pivots, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_reflections(left, transpose):
    a, tau = torch.geqrf(torch.randn(4, 4))
    b = torch.randn(4, 3) if left else torch.randn(3, 4)
    same(lambda *args: torch.ormqr(*args, left=left, transpose=transpose), a, tau, b)
