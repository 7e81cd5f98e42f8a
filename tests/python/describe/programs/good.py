# SPDX-License-Identifier: Apache-2.0
"""A user's program, all right."""

import numpy as np

import baton as tvm
from baton import relay
from baton.ir import IRModule
from baton.relay.op.nn import conv2d

x = relay.var("x", shape=(1, 3, 8, 8), dtype="float32")
w = relay.const(np.zeros((4, 3, 3, 3), "float32"))
y = relay.nn.conv2d(x, w, strides=(1, 1), padding=1, channels=4, kernel_size=(3, 3))
z = relay.nn.relu(conv2d(y, w))
call: relay.Call = relay.nn.max_pool2d(z, pool_size=2)
name: str = relay.GlobalVar("main").name_hint
first = call.args[0]
print(first.span, call.attrs)
f = relay.Function([x], relay.tanh(y))
body = f.body
mod = IRModule.from_expr(f)
with tvm.transform.PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 4}):
    out = relay.transform.FoldConstant()(relay.transform.InferType()(mod))
seq = tvm.transform.Sequential([relay.transform.FoldConstant(), relay.transform.FuseOps(2), tvm.tir.transform.Simplify()])
seq(mod)
attrs = relay.op.op_attrs.Conv2DAttrs(strides=[1, 1], padding=[0], dilation=[1], groups=1, data_layout="NCHW")
strides = list(attrs.strides)
total: int = strides[0] + 1
var = relay.Var("a", relay.TensorType((2,), "float32"))
let = relay.Let(var, relay.const(1.0), var)
n: str = let.var.name_hint


class Visitor(relay.ExprVisitor):
    def visit_call(self, call: relay.Call) -> None:
        print(call.op)


g = tvm.get_global_func("testing.echo")
g(1)
