# SPDX-License-Identifier: Apache-2.0
"""Pattern tables by name of the code generator that takes them.

@register_pattern_table("my_library")
def pattern_table():
    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    return [("my_library.conv2d_relu", is_op("nn.relu")(conv)), ("my_library.conv2d", conv)]

mod = relay.transform.MergeComposite(get_pattern_table("my_library"))(mod)
"""

_PATTERN_TABLES = {}


def register_pattern_table(compiler, table=None):
    """Registers a table: a function that returns rows (name, pattern) or (name, pattern, check), or the rows. As a decorator
    without `table`."""

    def register(found):
        _PATTERN_TABLES[compiler] = found() if callable(found) else found
        return found

    return register(table) if table is not None else register


def get_pattern_table(compiler):
    """The rows of a code generator's table; None if it has none."""
    return _PATTERN_TABLES.get(compiler)


__all__ = ["get_pattern_table", "register_pattern_table"]
