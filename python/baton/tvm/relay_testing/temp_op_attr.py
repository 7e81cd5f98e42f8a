# SPDX-License-Identifier: Apache-2.0
"""An operator's attribute for the time of a `with`."""

from ...ir import Op


class TempOpAttr:
    """`with TempOpAttr("nn.conv2d", "FTVMLegalize", f):` sets the attribute and puts the old one back."""

    def __init__(self, op_name, attr_key, attr_value):
        self.op, self.attr_key = Op.get(op_name), attr_key
        self.older = self.op.get_attr(attr_key)
        self.op.set_attr(attr_key, attr_value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.op.set_attr(self.attr_key, self.older)
