# SPDX-License-Identifier: Apache-2.0
"""A long short-term memory over a fixed number of steps (Hochreiter and Schmidhuber, 1997)."""

from ... import relay
from ...relay.scope_builder import ScopeBuilder
from . import layers
from .init import create_workload


def lstm_cell(num_hidden, batch_size=1, dtype="float32", name=""):
    """One step as a function of (inputs, states, weights and biases of both): it gives (output, (hidden, memory))."""

    def var(suffix, *shape):
        return relay.var(name + suffix, relay.TensorType(shape, dtype))

    state = relay.TensorType((batch_size, num_hidden), dtype)
    inputs, states = var("inputs", batch_size, num_hidden), relay.var(name + "states", relay.TupleType([state, state]))
    i2h_weight, i2h_bias = var("i2h_weight", 4 * num_hidden, num_hidden), var("i2h_bias", 4 * num_hidden)
    h2h_weight, h2h_bias = var("h2h_weight", 4 * num_hidden, num_hidden), var("h2h_bias", 4 * num_hidden)
    builder = ScopeBuilder()
    i2h = builder.let("i2h", layers.dense_add_bias(data=inputs, units=4 * num_hidden, weight=i2h_weight, bias=i2h_bias, name=name + "i2h"))
    hidden = relay.TupleGetItem(states, 0)
    h2h = builder.let("h2h", layers.dense_add_bias(data=hidden, units=4 * num_hidden, weight=h2h_weight, bias=h2h_bias, name=name + "h2h"))
    parts = builder.let("parts", relay.split(relay.add(i2h, h2h), indices_or_sections=4, axis=1).astuple())
    in_gate = builder.let("in_gate", relay.sigmoid(relay.TupleGetItem(parts, 0)))
    forget_gate = builder.let("forget_gate", relay.sigmoid(relay.TupleGetItem(parts, 1)))
    change = builder.let("change", relay.tanh(relay.TupleGetItem(parts, 2)))
    out_gate = builder.let("out_gate", relay.sigmoid(relay.TupleGetItem(parts, 3)))
    memory = builder.let("memory", relay.add(relay.multiply(forget_gate, relay.TupleGetItem(states, 1)), relay.multiply(in_gate, change)))
    output = builder.let("output", relay.multiply(out_gate, relay.tanh(memory)))
    builder.ret(relay.Tuple([output, relay.Tuple([output, memory])]))
    result = relay.TupleType([state, relay.TupleType([state, state])])
    return relay.Function([inputs, states, i2h_weight, i2h_bias, h2h_weight, h2h_bias], builder.get(), result)


def get_net(iterations, num_hidden, batch_size=1, dtype="float32"):
    """All steps as a function; each reads the same input, and has its own parameters."""
    shape = (batch_size, num_hidden)
    builder = ScopeBuilder()
    zeros = builder.let("zeros", relay.zeros(shape, dtype))
    states = builder.let("states0", relay.Tuple([zeros, zeros]))
    data = relay.var("data", shape=shape, dtype=dtype)
    output, params = None, [data]
    for i in range(iterations):

        def var(suffix, *extents, i=i):
            return relay.var(f"step{i}_{suffix}", shape=extents, dtype=dtype)

        own = [
            var("i2h_weight", 4 * num_hidden, num_hidden),
            var("i2h_bias", 4 * num_hidden),
            var("h2h_weight", 4 * num_hidden, num_hidden),
            var("h2h_bias", 4 * num_hidden),
        ]
        cell = builder.let(f"cell{i}", lstm_cell(num_hidden, batch_size, dtype, f"cell{i}_"))
        call = builder.let(f"step{i}", relay.Call(cell, [data, states, *own]))
        output, states = builder.let(f"output{i}", relay.TupleGetItem(call, 0)), builder.let(f"states{i + 1}", relay.TupleGetItem(call, 1))
        params += own
    builder.ret(output if output is not None else zeros)
    return relay.Function(params, builder.get(), relay.TensorType(shape, dtype))


def get_workload(iterations, num_hidden, batch_size=1, dtype="float32"):
    """(module, parameters)."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
