# SPDX-License-Identifier: Apache-2.0
"""Gradients beside finite differences."""

from ...driver.relay_build import create_executor
from ...relay import transform
from ...testing import assert_allclose, enabled_targets
from .opt_pass import run_infer_type


def _np_randn_from_type(t, scale=1, mean=0):
    import numpy as np

    return (mean + scale * np.random.randn(*t.concrete_shape)).astype(t.dtype)


def check_grad(
    func, inputs=None, test_inputs=None, eps=1e-6, atol=1e-5, rtol=1e-3, scale=None, mean=0, mode="higher_order", target_devices=None, executor_kind="debug"
):
    """Raises AssertionError unless the gradient of a function agrees with central differences of `eps`, of the sum of its
    results by each element.

    `inputs`: arrays for the parameters; else random ones of their types, normal with `mean` and `scale` (10 * eps).
    `test_inputs`: those of them to differentiate by, the very same objects; else all. Use float64: in float32 the
    differences carry few digits. `mode` as that of `gradient`; `target_devices`: pairs of a target and a device, all that
    there are by default; `executor_kind`: what runs both.
    """
    import numpy as np

    forward = run_infer_type(func)
    backward = run_infer_type(transform.gradient(forward, mode=mode))
    scale = 10 * eps if scale is None else scale
    if inputs is None:
        inputs = [_np_randn_from_type(p.checked_type, scale, mean) for p in forward.params]
    if test_inputs is None:
        test_inputs = inputs
    places = [next((i for i, x in enumerate(inputs) if x is t), None) for t in test_inputs]
    if None in places:
        raise ValueError(f"test_inputs[{places.index(None)}] is none of the inputs")

    def flat(value):  # compiled code returns nested tuples flat
        return [value] if hasattr(value, "numpy") else [y for x in value for y in flat(x)]

    def total(value):
        return sum(float(np.sum(v.numpy().astype("float64"))) for v in flat(value) if str(v.dtype).startswith(("float", "bfloat")))

    for target, dev in target_devices or enabled_targets():

        def run(f, target=target, dev=dev):
            return create_executor(executor_kind, device=dev, target=target).evaluate(f)

        fwd = run(forward)
        grads = flat(run(backward)(*inputs))[-len(inputs) :]
        grads = [grads[i].numpy().astype("float64") for i in places]
        for i, given in zip(places, grads, strict=True):
            x = np.array(inputs[i])
            wanted = np.zeros(x.shape)
            for at in np.ndindex(x.shape):
                ends = []
                for step in (eps, -eps):
                    moved = x.copy()
                    moved[at] += step
                    ends.append(total(fwd(*[moved if k == i else v for k, v in enumerate(inputs)])))
                wanted[at] = (ends[0] - ends[1]) / (2 * eps)
            assert_allclose(given, wanted, atol=atol, rtol=rtol)
