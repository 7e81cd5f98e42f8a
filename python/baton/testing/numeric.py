# SPDX-License-Identifier: Apache-2.0
"""Comparisons of arrays, of gradients with differences, and of integer expressions."""


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7):
    """Raises AssertionError unless two arrays are close: |actual - desired| <= atol + rtol * |desired|, shapes equal."""
    import numpy as np

    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    if actual.shape != desired.shape:
        raise AssertionError(f"shapes differ: {actual.shape} and {desired.shape}")
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


# Offsets in steps -> weights of the values there, for the first derivative; each is nearer than the one before.
_STENCILS = [((-1, 1), (-1 / 2, 1 / 2)), ((-2, -1, 1, 2), (1 / 12, -2 / 3, 2 / 3, -1 / 12))]


def check_numerical_grads(function, input_values, grad_values, function_value=None, delta=1e-3, atol=1e-2, rtol=0.1):
    """Raises AssertionError unless gradients agree with differences of a function's values.

    input_values, grad_values: arrays by name, or in order, as `function` takes them; its value is a number. function_value: its value for
    the inputs, which must be finite. delta: step of the differences. The norm of the difference of two gradients is at most
    sqrt(size) * atol + rtol * (norm of the differences' gradient). Where two points do not suffice, four are taken.
    """
    import numpy as np

    by_name = hasattr(input_values, "items")
    values = {n: np.array(v) for n, v in (input_values.items() if by_name else enumerate(input_values))}
    grads = dict(grad_values.items() if by_name else enumerate(grad_values))

    def at(changed):
        return float(np.sum(np.asarray(function(**changed) if by_name else function(*changed.values())), dtype="float64"))

    value = at(values) if function_value is None else float(function_value)
    if not np.isfinite(value):
        raise AssertionError(f"the function's value is {value}")
    for name, value in values.items():
        grad = np.asarray(grads[name])
        if grad.shape != value.shape:
            raise AssertionError(f"the gradient of {name} has the shape {grad.shape}, and {name} {value.shape}")
        if not np.isfinite(grad).all():
            raise AssertionError(f"the gradient of {name} is not finite")
        for offsets, weights in _STENCILS:
            want = np.zeros(value.shape)
            for place in np.ndindex(value.shape):
                for offset, weight in zip(offsets, weights, strict=True):
                    moved = value.copy()
                    moved[place] += offset * delta
                    want[place] += weight * at({**values, name: moved}) / delta
            distance, allowed = np.linalg.norm((grad - want).ravel()), np.sqrt(grad.size) * atol + rtol * np.linalg.norm(want.ravel())
            if distance <= allowed:
                break
        else:
            raise AssertionError(
                f"gradient of {name}: differs from differences by {distance:.6g}, allowed is {allowed:.6g}\ngradient: {grad}\ndifferences: {want}"
            )


def assert_prim_expr_equal(lhs, rhs):
    """Raises AssertionError unless two integer expressions are provably equal."""
    from ..arith import Analyzer
    from ..ir import structural_equal

    if not structural_equal(lhs, rhs) and not Analyzer().can_prove_equal(lhs, rhs):
        raise AssertionError(f"{lhs} and {rhs} are not equal")


def check_bool_expr_is_true(bool_expr, vranges, cond=None):
    """Raises AssertionError unless a condition holds for all values of variables in their ranges for which `cond` holds.

    vranges: `ir.Range` by variable, with extents that are numbers. All values are tried.
    """
    import itertools

    from ..arith import Analyzer
    from ..tir import const, convert
    from ..tir.stmt_functor import substitute

    expr, given = convert(bool_expr), None if cond is None else convert(cond)
    variables = list(vranges)
    for values in itertools.product(*(range(int(r.min), int(r.min) + int(r.extent)) for r in vranges.values())):
        binding = {v: const(x, v.dtype) for v, x in zip(variables, values, strict=True)}

        def holds(e, binding=binding):
            return Analyzer().can_prove(substitute(e, binding))

        if (given is None or holds(given)) and not holds(expr):
            at = ", ".join(f"{v} = {x}" for v, x in zip(variables, values, strict=True))
            raise AssertionError(f"{bool_expr} does not hold for {at}")


def check_int_constraints_trans_consistency(constraints_trans, vranges=None):
    """Raises AssertionError unless a change of variables, an IntConstraintsTransform, goes there and back for all values that its
    constraints allow."""
    from ..tir import all as all_of
    from ..tir import const
    from ..tir.stmt_functor import substitute

    vranges = dict(vranges or {})

    def one_way(first, there, second, back):
        conditions = [const(True, "bool"), *first.relations]
        within = {v: first.ranges[v] if v in first.ranges else vranges[v] for v in first.variables}
        for v in first.variables:
            check_bool_expr_is_true(substitute(back[v], there) == v, within, all_of(*conditions))

    src, dst = constraints_trans.src, constraints_trans.dst
    one_way(src, dict(constraints_trans.dst_to_src.items()), dst, dict(constraints_trans.src_to_dst.items()))
    one_way(dst, dict(constraints_trans.src_to_dst.items()), src, dict(constraints_trans.dst_to_src.items()))


__all__ = ["assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true", "check_int_constraints_trans_consistency", "check_numerical_grads"]
