# SPDX-License-Identifier: Apache-2.0
"""Arrays of tensors of one dtype and any shape of 0 to 6 dimensions, as lists of Relay."""

from .parser import parse

MAX_RANK = 6


def _type(rank, dtype):
    return f"Tensor[({', '.join('?' * rank)}), {dtype}]" if rank else dtype


def _clauses(ranks, row):
    return ",\n    ".join(row(rank) for rank in ranks)


def _text(d):
    """The data type of tensors of a dtype, and functions on them and on lists of them, as Relay text."""
    tensor, many = f"tensor_{d}_t", f"List[tensor_{d}_t]"
    ranks = range(MAX_RANK + 1)

    def joined(rank):
        return f"tensor{rank}_{d}(%a) => {{ match? (%y) {{ tensor{rank}_{d}(%b) => tensor{rank}_{d}(concatenate((%a, %b), axis=0)) }} }}"

    def part(rank):
        return f"tensor{rank}_{d}(%a) => tensor{rank}_{d}(take(%a, arange(%lower, %upper, 1, dtype=\"int32\"), axis=0))"

    unstacks = "\n".join(
        f"""
def @tensor_array_unstack_tensor{rank}_from_{d}(%at: int32, %end: int32, %data: {_type(rank, d)}) -> {many} {{
  if (equal(%at, %end)) {{ Nil }} else {{
    Cons(tensor{rank - 1}_{d}(take(%data, %at, axis=0)), @tensor_array_unstack_tensor{rank}_from_{d}(add(%at, 1), %end, %data))
  }}
}}
def @tensor_array_unstack_tensor{rank}_{d}(%data: {_type(rank, d)}) -> {many} {{
  @tensor_array_unstack_tensor{rank}_from_{d}(0, take(shape_of(%data, dtype="int32"), 0, axis=0), %data)
}}"""
        for rank in ranks[1:]
    )
    return f"""#[version = "0.0.5"]
type {tensor} {{ tensor_nil_{d}, {', '.join(f'tensor{rank}_{d}({_type(rank, d)})' for rank in ranks)}, }}

def @tensor_array_{d}(%n: int32) -> {many} {{
  if (equal(%n, 0)) {{ Nil }} else {{ Cons(tensor_nil_{d}, @tensor_array_{d}(subtract(%n, 1))) }}
}}
def @tensor_array_read_{d}(%array: {many}, %at: int32) -> {tensor} {{ @nth(%array, %at) }}
def @tensor_array_write_{d}(%array: {many}, %at: int32, %x: {tensor}) -> {many} {{ @update(%array, %at, %x) }}
def @tensor_expand_dims_{d}(%x: {tensor}) -> {tensor} {{
  match? (%x) {{
    {_clauses(ranks[:-1], lambda r: f"tensor{r}_{d}(%a) => tensor{r + 1}_{d}(expand_dims(%a, axis=0))")}
  }}
}}
def @tensor_concatenate_{d}(%x: {tensor}, %y: {tensor}) -> {tensor} {{
  match? (%x) {{
    {_clauses(ranks[1:], joined)}
  }}
}}
def @tensor_take_{d}(%x: {tensor}, %lower: int32, %upper: int32) -> {tensor} {{
  match? (%x) {{
    {_clauses(ranks[1:], part)}
  }}
}}
def @tensor_array_concat_{d}(%array: {many}) -> {tensor} {{
  match? (%array) {{ Cons(%x, Nil) => %x, Cons(%x, %rest) => @tensor_concatenate_{d}(%x, @tensor_array_concat_{d}(%rest)) }}
}}
def @tensor_array_stack_{d}(%array: {many}) -> {tensor} {{
  @tensor_array_concat_{d}(@map(@tensor_expand_dims_{d}, %array))
}}
def @tensor_array_pick_{d}(%array: {many}, %indices: Tensor[(?), int32], %at: int32, %end: int32) -> {many} {{
  if (equal(%at, %end)) {{ Nil }} else {{
    Cons(@nth(%array, take(%indices, %at, axis=0)), @tensor_array_pick_{d}(%array, %indices, add(%at, 1), %end))
  }}
}}
def @tensor_array_gather_{d}(%array: {many}, %indices: Tensor[(?), int32]) -> {tensor} {{
  @tensor_array_stack_{d}(@tensor_array_pick_{d}(%array, %indices, 0, take(shape_of(%indices, dtype="int32"), 0, axis=0)))
}}
def @tensor_array_scatter_from_{d}(%array: {many}, %indices: Tensor[(?), int32], %values: {many}, %at: int32, %end: int32) -> {many} {{
  if (equal(%at, %end)) {{ %array }} else {{
    @tensor_array_scatter_from_{d}(@update(%array, take(%indices, %at, axis=0), @nth(%values, %at)), %indices, %values, add(%at, 1), %end)
  }}
}}
def @tensor_array_scatter_{d}(%array: {many}, %indices: Tensor[(?), int32], %values: {many}) -> {many} {{
  @tensor_array_scatter_from_{d}(%array, %indices, %values, 0, take(shape_of(%indices, dtype="int32"), 0, axis=0))
}}
def @tensor_array_split_from_{d}(%array: {many}, %x: {tensor}, %lengths: Tensor[(?), int32], %at: int32, %end: int32, %lower: int32) -> {many} {{
  if (equal(%at, %end)) {{ %array }} else {{
    let %upper = add(%lower, take(%lengths, %at, axis=0));
    @tensor_array_split_from_{d}(@update(%array, %at, @tensor_take_{d}(%x, %lower, %upper)), %x, %lengths, add(%at, 1), %end, %upper)
  }}
}}
def @tensor_array_split_{d}(%array: {many}, %x: {tensor}, %lengths: Tensor[(?), int32]) -> {many} {{
  @tensor_array_split_from_{d}(%array, %x, %lengths, 0, take(shape_of(%lengths, dtype="int32"), 0, axis=0), 0)
}}
{unstacks}
"""


class TensorArrayOps:
    """Lists of tensors of one dtype; `register` adds the data type and the functions to the module of a prelude.

    A tensor is a value of `tensor_float32_t`: `tensor_nil_float32`, or its data in one of `tensor0_float32` to `tensor6_float32`. Functions:
    `tensor_array(size)`, `tensor_array_read(array, i)`, `tensor_array_write(array, i, tensor)`, `tensor_array_unstack_tensor1(data)` to 6,
    `tensor_array_stack(array)`, `tensor_array_concat(array)`, `tensor_array_gather(array, indices)`, `tensor_array_scatter(array, indices,
    tensors)`, `tensor_array_split(array, tensor, lengths)`, `tensor_expand_dims(tensor)`, `tensor_concatenate(a, b)`, `tensor_take(tensor,
    lower, upper)`.
    """

    def __init__(self, prelude, dtype):
        self.prelude, self.dtype = prelude, str(dtype)

    def get_name(self, canonical):
        """The name that something has in the module."""
        return f"tensor_{self.dtype}_t" if canonical == "tensor_t" else f"{canonical}_{self.dtype}"

    def get_global_var(self, canonical):
        """A function of the module."""
        return self.prelude.mod.get_global_var(self.get_name(canonical))

    def get_type(self, canonical):
        """The variable of a data type."""
        return self.prelude.mod.get_global_type_var(self.get_name(canonical))

    def get_ctor(self, canonical):
        """A constructor, as "tensor2"."""
        return self.prelude.get_ctor(self.get_name("tensor_t"), self.get_name(canonical))

    def __getattr__(self, name):
        # `define_` and the name of a function adds all of them.
        if not name.startswith("define_tensor_"):
            raise AttributeError(f"'TensorArrayOps' object has no attribute '{name}'")
        return lambda *_: self.register()

    def register(self):
        """Adds the data type and the functions, unless they are there."""
        if self.get_name("tensor_array") not in self.prelude.mod:
            self.prelude.mod.update(parse(_text(self.dtype), "prelude.rly", self.prelude.mod))


__all__ = ["MAX_RANK", "TensorArrayOps"]
