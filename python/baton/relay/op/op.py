# SPDX-License-Identifier: Apache-2.0
"""The operator registry and the attributes of operators."""

import itertools

from ...ir import Op, register_op_attr


class OpPattern:
    """How an operator may be fused."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


def get(op_name):
    """The operator of a name; an unknown one is an error that lists the nearest."""
    return Op.get(op_name)


def list_op_names():
    """Names of all operators."""
    return Op.list_op_names()


def get_op_attr(op_name, attr_name):
    """An attribute of an operator; None if there is none."""
    return Op.get(op_name).get_attr(attr_name)


def has_attr(op_name, attr_name):
    """Whether an operator has an attribute."""
    return Op.get(op_name).has_attr(attr_name)


def reset_attr(op_name, attr_name):
    """Removes an attribute of an operator."""
    Op.get(op_name).reset_attr(attr_name)


def register(op_name, describe=""):
    """Registers an operator of this name, which passes know.

        op = relay.op.op.register("my.twice", "x + x")
        op.set_num_inputs(1)
        op.add_type_rel("Identity")
        relay.op.op.register_pattern("my.twice", relay.op.OpPattern.ELEMWISE)

    An operator that is there already raises ValueError. `register_compute` says what it computes, without which a library or a pass has to.
    """
    from ...ir import _ffi_api
    from . import make

    op = _ffi_api.RegisterOp(op_name, describe)
    make.forget_names()
    return op


def register_pattern(op_name, pattern, level=10):
    """Sets how the operator may be fused."""
    return register_op_attr(op_name, "TOpPattern", pattern, level)


def register_stateful(op_name, stateful, level=10):
    """Says whether calls of the operator have effects."""
    return register_op_attr(op_name, "TOpIsStateful", stateful, level)


def register_gradient(op_name, fgradient=None, level=10):
    """Sets the gradient of the operator: `f(call, grad) -> [gradient of each argument]`."""
    return register_op_attr(op_name, "FPrimalGradient", fgradient, level)


def register_legalize(op_name, legal_op=None, level=10):
    """Sets how a call is made legal for a target: `f(attrs, inputs, types) -> expression or None`."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_mixed_precision_conversion(op_name, func=None, level=10):
    """Sets what ToMixedPrecision makes of a call: `f(call, "float16") -> [category, accumulation dtype, result dtype]`, where the
    category is 0 (always narrow), 1 (as its arguments are) or 2 (never)."""
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)


def register_compute(op_name, compute=None, level=10):
    """Says what an operator computes, that `relay.op.op.register` made: `f(attrs, inputs, out_type)` gives a tensor of te, or a list of them,
    from those of the arguments. Executors and `relay.build` then run it, and fuse it as `register_pattern` says.

        relay.op.op.register("my.twice", "x + x").add_type_rel("Identity")

        @relay.op.register_compute("my.twice")
        def twice(attrs, inputs, out_type):
            x = inputs[0]
            return te.compute(x.shape, lambda *i: x(*i) + x(*i))

    Built-in operators keep their computation. Shapes of the tensors may have variables: use `inputs[k].shape`.
    """
    from ...ir import _ffi_api

    def attach(f):
        _ffi_api.OpSetCompute(Op.get(op_name), f)
        return f

    return attach if compute is None else attach(compute)


def of_program(what, op_name):
    """The operator of a name, which is a program's own: a built-in one is an error."""
    from ...error import UnsupportedError, ValueError
    from ...ir import _ffi_api

    op = Op.get(op_name)
    try:
        _ffi_api.OpSetNumInputs(op, op.num_inputs)
    except ValueError:
        raise UnsupportedError(
            f"{what} of `{op_name}`: there is one generator of kernels, which schedules what a built-in operator computes; relay.op.register_compute "
            "says what one of a program's own computes, relay.op.register_pattern how it may be fused"
        ) from None
    return op


def register_schedule(op_name, schedule=None, level=10):
    """Takes a schedule for an operator of a program; it is not used, since the compiler schedules kernels itself. Those of built-in operators
    have one generator, which takes none."""
    of_program("register_schedule", op_name)
    return schedule if schedule is not None else lambda f: f


def register_broadcast_schedule(op_name, level=10):
    """Says that the operator broadcasts its arguments."""
    return register_pattern(op_name, OpPattern.BROADCAST, level)


def register_reduce_schedule(op_name, level=10):
    """Says that the operator reduces its argument."""
    return register_pattern(op_name, OpPattern.COMM_REDUCE, level)


def register_fake_quantization_to_integer(op_name, func=None, level=10):
    """Sets what FakeQuantizationToInteger makes of a call: `f(call, types) -> [expression, affine type]`. The arguments of `call` are integers
    (or constants), `types` has the affine type of each (`tvm.ir.TensorAffineType`: scale, zero_point, dtype, axis), and under `call` that of
    what the region ends in.

        @relay.op.register_fake_quantization_to_integer("nn.softsign")
        def same_integers(call, types):
            return [relay.op.copy(call.args[0]), types[call.args[0]]]
    """
    return register_op_attr(op_name, "FTVMFakeQuantizationToInteger", func, level)


def register_alter_op_layout(op_name, alter_layout=None, level=10):
    """Sets how a call changes its layout."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


def register_convert_op_layout(op_name, convert_layout=None, level=10):
    """Sets how ConvertLayout converts a call: `f(attrs, inputs, types, desired_layouts)` gives a call with the same arguments
    and attributes with other layouts, or None; the pass puts the transforms."""
    return register_op_attr(op_name, "FTVMConvertOpLayout", convert_layout, level)


def register_infer_correct_layout(op_name, infer_layout=None, level=10):
    """Sets how the operator says to ConvertLayout which layouts its inputs and outputs have:
    `f(attrs, new_in_layouts, old_in_layouts, old_in_types) -> [input layouts, output layouts]`, or with new attributes as a third, or None
    to stay as it is. Layouts are texts, as "NHWC"; "" is one that is not known, or any.

        @relay.op.register_infer_correct_layout("nn.l2_normalize")
        def layouts(attrs, new, old, types):
            axis = [new[0].index(old[0][a]) for a in attrs.axis]
            return [[new[0]], [new[0]], relay.op.op_attrs.L2NormalizeAttrs(eps=attrs.eps, axis=axis)]

    It is asked too about a call that a function of `register_convert_op_layout` made: of the old attributes and of the new ones, and the
    pass puts transforms where the answers differ.
    """
    return register_op_attr(op_name, "FInferCorrectLayout", infer_layout, level)


def register_shape_func(op_name, data_dependent, shape_func=None, level=10):
    """Sets the function that computes the shape of the result."""
    return register_op_attr(op_name, "FShapeFunc", shape_func, level)


def register_injective_schedule(op_name, level=10):
    """Says that the operator maps indices only."""
    return register_pattern(op_name, OpPattern.INJECTIVE, level)


_debugged = itertools.count()


def debug(expr, debug_func=None):
    """The value of an expression, which `debug_func` is called with each time that it is computed; without one Python's debugger starts.
    Such a program runs in its process alone. Types of the expression are tensors of known shapes."""
    from ..._ffi import register_func
    from ...te import extern
    from ...tir import call_packed
    from ..expr import Call

    name = f"baton.debug.{next(_debugged)}"

    def see(value, out):
        value.copyto(out)
        breakpoint() if debug_func is None else debug_func(value)

    def compute(attrs, inputs, out_type):
        x = inputs[0]
        return [extern([x.shape], [x], lambda ins, outs: call_packed(name, ins[0], outs[0]), name="debug", dtype=[x.dtype])]

    register_func(name, see)
    op = register(name, "Gives its argument, which a function of the program sees.")
    op.set_num_inputs(1)
    op.add_type_rel("Identity")
    register_stateful(name, True)
    register_compute(name, compute)
    return Call(op, [expr])
