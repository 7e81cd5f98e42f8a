# SPDX-License-Identifier: Apache-2.0
"""ToMixedPrecision as programs of Relay 0.8 call it."""

import numpy as np
import pytest

import baton as tvm
from baton import relay


def run(expr, *args):
    params = relay.analysis.free_vars(expr)
    return relay.create_executor("debug").evaluate(relay.Function(params, expr))(*args).numpy()


def test_mixed_precision_is_near():
    mod, params = relay.testing.mlp.get_workload(batch_size=2)
    data = np.random.default_rng(0).standard_normal((2, 1, 28, 28)).astype("float32")
    narrow = relay.transform.ToMixedPrecision("float16")(mod)
    assert narrow["main"].ret_type == mod["main"].ret_type and relay.analysis.list_op_freqs(narrow)["cast"] > 2
    both = []
    for m in (mod, narrow):
        run = tvm.contrib.graph_executor.GraphModule(relay.build(m, "llvm", params=params)["default"](tvm.cpu()))
        run.run(data=data)
        both.append(run.get_output(0).numpy())
    tvm.testing.assert_allclose(both[1], both[0], rtol=2e-2, atol=1e-3)
    assert (both[1] != both[0]).any()


def test_results_stay_narrow_unless_asked():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    product = relay.nn.relu(relay.nn.dense(x, w))
    narrow = relay.nn.relu(relay.nn.dense(relay.cast(x, "float16"), relay.cast(w, "float16"), out_dtype="float16"))
    one = relay.transform.ToMixedPrecision("float16")(relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], product))))
    tvm.ir.assert_structural_equal(one, relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], narrow))))
    both = relay.Function([x, w], relay.Tuple([product, relay.exp(x), relay.cast(x, "float32")]))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(both))
    fields = relay.transform.InferType()(relay.transform.ToMixedPrecision("float16")(mod))["main"].ret_type.fields
    assert [t.dtype for t in fields] == ["float16", "float32", "float32"]
    with tvm.transform.PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        kept = relay.transform.ToMixedPrecision("float16")(mod)
    assert [t.dtype for t in relay.transform.InferType()(kept)["main"].ret_type.fields] == ["float32"] * 3


def test_operators_say_their_precision():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    body = relay.exp(relay.nn.dense(x, w))
    dtypes = {}
    for name, rules in {
        "never": {"nn.dense": [2, "float32", "float32"]},
        "all narrow": {"nn.dense": [0, "float16", "float16"], "exp": [1, "float16", "float16"]},
    }.items():
        with (
            TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", lambda call, dtype, r=rules: r["nn.dense"]),
            TempOpAttr("exp", "FTVMMixedPrecisionConversionType", lambda call, dtype, r=rules: r.get("exp", [2, "float32", dtype])),
        ):
            made = relay.transform.InferType()(relay.transform.ToMixedPrecision("float16", 0)(tvm.IRModule.from_expr(body)))
        dtypes[name] = {}
        relay.analysis.post_order_visit(
            made["main"], lambda e, d=dtypes[name]: d.setdefault(e.op.name, e.checked_type.dtype) if isinstance(e, relay.Call) else None
        )
    assert dtypes["never"] == {"nn.dense": "float32", "exp": "float32"}
    assert dtypes["all narrow"]["nn.dense"] == dtypes["all narrow"]["exp"] == "float16"
    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", lambda call, dtype: [7]), pytest.raises(ValueError, match="nn.dense"):
        relay.transform.ToMixedPrecision()(tvm.IRModule.from_expr(body))
    for wrong in (("float32", 1), ("int8", 1), ("float16", 3)):
        with pytest.raises(ValueError):
            relay.transform.ToMixedPrecision(*wrong)
    assert relay.op.register_mixed_precision_conversion
    # Without a registration the attribute says what the definition does.
    known = {"nn.conv2d": 0, "nn.relu": 1, "exp": 2, "sum": 2}
    assert {name: relay.op.get(name).get_attr("FTVMMixedPrecisionConversionType")(None, "float16")[0] for name in known} == known
    assert relay.op.get("unique").get_attr("FTVMMixedPrecisionConversionType") is None
