# SPDX-License-Identifier: Apache-2.0
"""A program's answers for its targets about layouts and legal forms of operators: generic functions that passes ask once there is one."""

from ...ir.op import Op, register_op_attr
from ...target import GenericFunc

_ALTER, _LEGALIZE = "FTVMAlterOpLayout", "FTVMLegalize"


class OperatorFunc(GenericFunc):
    """A generic function of an operator. The pass that goes by the operator's attribute asks it from the first function on that a
    program registers; where that has no answer (None), the one that was there before.

        @topi.nn.conv2d_alter_layout.register("cpu")
        def _(attrs, inputs, tinfos, out_type): ...
    """

    def __init__(self, default, op_name, attribute):
        super().__init__(default)
        self.op_name, self.attribute, self.asked = op_name, attribute, False

    def register(self, keys, func=None, override=True, allow_override=None):
        """Sets the function for a key of targets, or for several; without `func` it is a decorator."""
        put = super().register(keys, func, override, allow_override)
        if not self.asked:
            self.asked, before = True, Op.get(self.op_name).get_attr(self.attribute)

            def ask(*args):
                answer = self(*args)
                return before(*args) if answer is None and before is not None else answer

            register_op_attr(self.op_name, self.attribute, ask)
        return put


def _of(op_name, attribute):
    return lambda default: OperatorFunc(default, op_name, attribute)


@_of("nn.conv2d", _ALTER)
def conv2d_alter_layout(attrs, inputs, tinfos, out_type):
    """The call of a convolution in another layout, or None to leave it: attributes, arguments, tensors of their types, type of the result."""


@_of("nn.conv3d", _ALTER)
def conv3d_alter_layout(attrs, inputs, tinfos, out_type):
    """The same of a convolution of volumes."""


@_of("nn.dense", _ALTER)
def dense_alter_layout(attrs, inputs, tinfos, out_type):
    """The same of a dense layer."""


@_of("nn.conv2d", _LEGALIZE)
def conv2d_legalize(attrs, inputs, types):
    """A convolution in a form that the target has, or None to leave it: attributes, arguments, their types and the result's."""


@_of("nn.conv2d_transpose", _LEGALIZE)
def conv2d_transpose_legalize(attrs, inputs, types):
    """The same of a transposed convolution."""


@_of("nn.dense", _LEGALIZE)
def dense_legalize(attrs, inputs, types):
    """The same of a dense layer."""


@_of("nn.batch_matmul", _LEGALIZE)
def batch_matmul_legalize(attrs, inputs, types):
    """The same of products of matrices."""
