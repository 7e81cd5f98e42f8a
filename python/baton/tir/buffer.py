# SPDX-License-Identifier: Apache-2.0
"""Buffers: typed views on memory."""

from .._core import Object
from ..ir import make_node
from . import _ffi_api


class Buffer(Object, key="tir.Buffer"):
    """A typed view on memory, row-major unless it has strides."""

    __slots__ = ()
    READ, WRITE = 1, 2

    def __init__(self, shape, dtype="float32", name="buffer", scope=""):
        self.__init_handle_by_constructor__(_ffi_api.Buffer, _shape(shape), dtype, name, scope)

    def scope(self):
        """ "global": memory; "local": registers and stack."""
        return _ffi_api.BufferScope(self) or "global"

    @property
    def elem_offset(self):
        """The place of the first element, in elements."""
        given = self._field("elem_offset")
        return _ffi_api.const(0, "int32") if given is None else given

    def offset_of(self, indices):
        """The place of an element behind the pointer, in elements."""
        place, strides = None, list(self.strides)
        for i, index in enumerate(indices):
            term = index * strides[i] if strides else index
            place = term if place is None else place + term if strides else place * self.shape[i] + term
        offset = self._field("elem_offset")
        place = _ffi_api.const(0, "int32") if place is None else place
        return place if offset is None else offset + place

    def access_ptr(self, access_mask, ptr_type="handle", content_lanes=1, offset=0, extent=None):
        """The pointer to the elements from the one of this number on, in row-major order: a call of "tir.tvm_access_ptr" of a value of their dtype, the
        data, the offset, the number of elements, and what is done with them (1 read, 2 write, 3 both)."""
        from ..error import ValueError
        from ..ir.op import intrinsic_op
        from .expr import Call
        from .op import convert

        if not isinstance(access_mask, int):
            if set(str(access_mask)) - set("rw"):
                raise ValueError(f'access_mask is {access_mask!r}; it is of "r" and "w"')
            access_mask = sum(bit for letter, bit in (("r", Buffer.READ), ("w", Buffer.WRITE)) if letter in access_mask)
        dtype = str(self.dtype) if content_lanes == 1 else f"{self.dtype}x{content_lanes}"
        size, first = convert(1), self._field("elem_offset")
        strides = list(self.strides)
        for d in list(self.shape) if not strides else [strides[0] * self.shape[0]]:
            size = d if getattr(size, "value", None) == 1 else size * d
        place = convert(offset) if first is None else first + offset
        extent = size - offset if extent is None else convert(extent)
        if content_lanes > 1:
            place, extent = place // content_lanes, extent // content_lanes
        mark = Call(dtype, intrinsic_op("tir.type_annotation"), [])
        return Call(ptr_type, intrinsic_op("tir.tvm_access_ptr"), [mark, self.data, place, extent, convert(access_mask)])

    def __getitem__(self, indices):
        from .expr import BufferLoad

        return BufferLoad(self, indices if isinstance(indices, (list, tuple)) else [indices])

    def vload(self, begin, dtype=None):
        """The element at `begin`; of a vector's dtype the elements from there on."""
        return self[_from(begin, _lanes(dtype))]

    def vstore(self, begin, value):
        """A statement that stores a value at `begin`; a vector into the elements from there on."""
        from .op import convert
        from .stmt import BufferStore

        value = _ffi_api.const(value, self.dtype) if isinstance(value, (int, float)) else convert(value)
        return BufferStore(self, value, _from(begin, _lanes(value.dtype)))


def _lanes(dtype):
    _, _, lanes = str(dtype or "").partition("x")
    return int(lanes or 1)


def _from(begin, lanes):
    """Indices of `lanes` elements from `begin` on."""
    from .expr import Ramp
    from .op import convert

    begin = [convert(i) for i in (begin if isinstance(begin, (list, tuple)) or type(begin).__name__ == "Array" else [begin])]
    if lanes > 1 and begin and "x" not in str(begin[-1].dtype):
        begin[-1] = Ramp(begin[-1], _ffi_api.const(1, begin[-1].dtype), lanes)
    return begin


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
    """A new buffer: dense and row-major, or with strides and an offset, which StorageFlatten takes into the index; those of parameters are
    dense."""
    made = Buffer(shape, dtype or "float32", name, scope)
    if data is None and not strides and elem_offset is None and data_alignment <= 0 and offset_factor <= 0 and not buffer_type:
        return made
    from .op import convert

    return make_node(
        "tir.Buffer",
        data=made.data if data is None else data,
        dtype=made.dtype,
        shape=made.shape,
        name=name,
        data_alignment=data_alignment if data_alignment > 0 else 64,
        strides=list(strides or []),
        elem_offset=None if elem_offset is None else convert(elem_offset),
        offset_factor=max(int(offset_factor), 1),
        buffer_type=2 if buffer_type == "auto_broadcast" else 1,
    )
