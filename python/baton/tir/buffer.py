# SPDX-License-Identifier: Apache-2.0
"""Buffers: typed views on memory."""

from .._core import Object
from . import _ffi_api


class Buffer(Object, key="tir.Buffer"):
    """A typed view on memory, row-major."""

    __slots__ = ()
    READ, WRITE = 1, 2

    def __init__(self, shape, dtype="float32", name="buffer", scope=""):
        self.__init_handle_by_constructor__(_ffi_api.Buffer, _shape(shape), dtype, name, scope)

    def scope(self):
        """ "global": memory; "local": registers and stack."""
        return _ffi_api.BufferScope(self) or "global"

    @property
    def strides(self):
        """None: elements are in row-major order."""
        return []

    @property
    def elem_offset(self):
        """0: the first element stands at the pointer."""
        return _ffi_api.const(0, "int64")

    offset_factor = buffer_type = property(lambda self: 1, doc="1: buffers are dense.")

    def access_ptr(self, access_mask, ptr_type="handle", content_lanes=1, offset=0):
        """The pointer to the elements, from the one of this number on, in row-major order."""
        from ..error import ValueError
        from ..ir.op import intrinsic_op
        from .expr import BufferLoad, Call

        if not isinstance(access_mask, int) and set(str(access_mask)) - set("rw"):
            raise ValueError(f'access_mask is {access_mask!r}; it is of "r" and "w"')
        if isinstance(getattr(offset, "value", offset), int) and int(offset) == 0:
            return self.data
        indices, flat = [], _ffi_api.const(offset, "int64") if isinstance(offset, int) else offset
        for extent in reversed(self.shape[1:]):
            indices.insert(0, flat % extent)
            flat = flat // extent
        return Call("handle", intrinsic_op("tir.address_of"), [BufferLoad(self, [flat, *indices])])

    def __getitem__(self, indices):
        from .expr import BufferLoad

        return BufferLoad(self, indices if isinstance(indices, (list, tuple)) else [indices])

    def vload(self, begin, dtype=None):
        """The element at `begin`."""
        return self[begin]

    def vstore(self, begin, value):
        """A statement that stores a value at `begin`."""
        from .stmt import BufferStore

        return BufferStore(self, value, begin if isinstance(begin, (list, tuple)) else [begin])


def _shape(shape):
    return list(shape) if isinstance(shape, (list, tuple)) or hasattr(shape, "__len__") else [shape]


def decl_buffer(
    shape,
    dtype=None,
    name="buffer",
    data=None,
    strides=None,
    elem_offset=None,
    scope="",
    data_alignment=-1,
    offset_factor=0,
    buffer_type="",
    axis_separators=None,
    span=None,
):
    """A new buffer. Buffers are dense and row-major: strides and offsets are not supported."""
    from ..error import UnsupportedError

    if strides or elem_offset is not None or data is not None:
        raise UnsupportedError("buffers are dense, row-major and own their data variable: strides, elem_offset and data cannot be given")
    return Buffer(shape, dtype or "float32", name, scope)
