# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
"""A user's program with mistakes that the stubs show."""

import baton as tvm
from baton import relay

x = relay.var("x", shape=(1, 3, 8, 8))
relay.nn.conv2d(x, x, stride=(1, 1))  # wrong: no such attribute
relay.nn.conv2d(x)  # wrong: an input is missing
relay.nn.leaky_relu(x, alpha="steep")  # wrong: a number
relay.nn.relu("x")  # wrong: no expression
relay.nn.lelu(x)  # wrong: no such operator
relay.transform.FoldConstants()  # wrong: no such pass
call = relay.nn.relu(x)
call.arguments  # wrong: no such field
call.args.name  # wrong: an array has no name
n: int = relay.GlobalVar("main").name_hint  # wrong: text
relay.op.op_attrs.Conv2DAttrs(strides="many")  # wrong: numbers
tvm.transform.PassContext(optlevel=3)  # wrong: no such argument
tvm.ir.load_json()  # wrong: an argument is missing
