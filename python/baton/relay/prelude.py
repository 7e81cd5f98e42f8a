# SPDX-License-Identifier: Apache-2.0
"""The prelude: lists, trees and options with their functions, written in Relay."""

import re

from .._ffi import get_global_func
from ..ir import IRModule
from .parser import parse
from .tensor_array import StaticTensorArrayOps
from .tensor_array_any_rank import TensorArrayOps

_TEXT = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
type Tree[A] { Rose(A, List[Tree[A]]), }

def @id[A](%x: A) -> A { %x }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }
def @flip[A, B, C](%f: fn (A, B) -> C) -> fn (B, A) -> C { fn (%b: B, %a: A) -> C { %f(%a, %b) } }

def @hd[A](%xs: List[A]) -> A { match? (%xs) { Cons(%x, _) => %x } }
def @tl[A](%xs: List[A]) -> List[A] { match? (%xs) { Cons(_, %rest) => %rest } }
def @nth[A](%xs: List[A], %n: int32) -> A {
  if (equal(%n, 0)) { @hd(%xs) } else { @nth(@tl(%xs), subtract(%n, 1)) }
}
def @update[A](%xs: List[A], %n: int32, %v: A) -> List[A] {
  if (equal(%n, 0)) { Cons(%v, @tl(%xs)) } else { Cons(@hd(%xs), @update(@tl(%xs), subtract(%n, 1), %v)) }
}
def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil }
}
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) { Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest), Nil => %acc }
}
def @foldr[A, B](%f: fn (A, B) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => %f(%x, @foldr(%f, %acc, %rest)), Nil => %acc }
}
def @foldr1[A](%f: fn (A, A) -> A, %xs: List[A]) -> A {
  match? (%xs) { Cons(%x, Nil) => %x, Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest)) }
}
def @concat[A](%xs: List[A], %ys: List[A]) -> List[A] {
  match (%xs) { Cons(%x, %rest) => Cons(%x, @concat(%rest, %ys)), Nil => %ys }
}
def @filter[A](%f: fn (A) -> bool, %xs: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => if (%f(%x)) { Cons(%x, @filter(%f, %rest)) } else { @filter(%f, %rest) },
    Nil => Nil
  }
}
def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match ((%xs, %ys)) { (Cons(%x, %xr), Cons(%y, %yr)) => Cons((%x, %y), @zip(%xr, %yr)), _ => Nil }
}
def @rev[A](%xs: List[A]) -> List[A] {
  @foldl(fn (%acc: List[A], %x: A) -> List[A] { Cons(%x, %acc) }, Nil, %xs)
}
def @map_accumr[A, B, C](%f: fn (A, B) -> (A, C), %init: A, %xs: List[B]) -> (A, List[C]) {
  let %step = fn (%b: B, %acc: (A, List[C])) -> (A, List[C]) {
    let %both = %f(%acc.0, %b);
    (%both.0, Cons(%both.1, %acc.1))
  };
  @foldr(%step, (%init, Nil), %xs)
}
def @map_accuml[A, B, C](%f: fn (A, B) -> (A, C), %init: A, %xs: List[B]) -> (A, List[C]) {
  let %step = fn (%acc: (A, List[C]), %b: B) -> (A, List[C]) {
    let %both = %f(%acc.0, %b);
    (%both.0, Cons(%both.1, %acc.1))
  };
  @foldl(%step, (%init, Nil), %xs)
}
def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) { Some(%both) => Cons(%both.1, @unfoldr(%f, %both.0)), None => Nil }
}
def @unfoldl[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] { @rev(@unfoldr(%f, %seed)) }
def @sum(%xs: List[int32]) -> int32 { @foldl(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0, %xs) }
def @length[A](%xs: List[A]) -> int32 {
  @foldl(fn (%n: int32, %x: A) -> int32 { add(%n, 1) }, 0, %xs)
}
def @tmap[A, B](%f: fn (A) -> B, %t: Tree[A]) -> Tree[B] {
  match (%t) {
    Rose(%x, %children) => Rose(%f(%x), @map(fn (%c: Tree[A]) -> Tree[B] { @tmap(%f, %c) }, %children))
  }
}
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) {
    Rose(_, %children) => add(1, @sum(@map(fn (%c: Tree[A]) -> int32 { @size(%c) }, %children)))
  }
}
def @iterate[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A {
  if (equal(%n, 0)) { fn (%x: A) -> A { %x } } else { @compose(%f, @iterate(%f, subtract(%n, 1))) }
}
"""

# Natural numbers, for tests of data types.
_NAT = """#[version = "0.0.5"]
type nat { Z, S(nat), }

def @nat_double(%x: nat) -> nat { match (%x) { Z => Z, S(%n) => S(S(@nat_double(%n))) } }
def @nat_add(%x: nat, %y: nat) -> nat { match (%x) { Z => %y, S(%n) => S(@nat_add(%n, %y)) } }
def @nat_iterate[A](%f: fn (A) -> A, %n: nat) -> fn (A) -> A {
  match (%n) { Z => fn (%x: A) -> A { %x }, S(%m) => fn (%x: A) -> A { %f(@nat_iterate(%f, %m)(%x)) } }
}
"""
# Gradients that need not be computed: of zeros, and of ones, only a function that makes them is kept.
_GRADIENT = """#[version = "0.0.5"]
type GradCell[T] { Raw(T), One(fn () -> T), Zero(fn () -> T), }

def @FromGradCell[T](%g: GradCell[T]) -> T { match (%g) { Raw(%x) => %x, One(%f) => %f(), Zero(%f) => %f() } }
def @MultiplyGradCells[T](%f: fn (T, T) -> T, %a: GradCell[T], %b: GradCell[T]) -> GradCell[T] {
  match ((%a, %b)) {
    (Zero(_), _) => %a,
    (_, Zero(_)) => %b,
    (One(_), _) => %b,
    (_, One(_)) => %a,
    (Raw(%x), Raw(%y)) => Raw(%f(%x, %y))
  }
}
def @AddGradCells[T](%f: fn (T, T) -> T, %a: GradCell[T], %b: GradCell[T]) -> GradCell[T] {
  match ((%a, %b)) {
    (Zero(_), _) => %b,
    (_, Zero(_)) => %a,
    _ => Raw(%f(@FromGradCell(%a), @FromGradCell(%b)))
  }
}
"""
# File of the standard library -> (text, the data type that shows that it is there, the last function).
_FILES = {"prelude.rly": (_TEXT, "List", "iterate"), "nat.rly": (_NAT, "nat", "nat_iterate"), "gradient.rly": (_GRADIENT, "GradCell", "AddGradCells")}

_BUILT_IN = ("core.rly", "nn.rly")
# The type of memory that `memory.alloc_storage` gives.
_CORE = '#[version = "0.0.5"]\ntype Storage {}\n'

_TYPES = {"List": ("l", "cons", "nil"), "Option": ("optional", "some", "none"), "Tree": ("tree", "rose")}
_FUNCTIONS = (
    "id",
    "compose",
    "flip",
    "hd",
    "tl",
    "nth",
    "update",
    "map",
    "foldl",
    "foldr",
    "foldr1",
    "concat",
    "filter",
    "zip",
    "rev",
    "map_accumr",
    "map_accuml",
    "unfoldr",
    "unfoldl",
    "sum",
    "length",
    "tmap",
    "size",
    "iterate",
)


class Prelude:
    """Adds the prelude to a module and holds its names.

        mod = baton.IRModule()
        p = relay.prelude.Prelude(mod)
        mod["main"] = relay.Function([], p.length(p.cons(relay.const(1), p.nil())))

    `l, cons, nil`, `optional, some, none` and `tree, rose` are the data types `List[A]`, `Option[A]` and `Tree[A]` with
    their constructors (also `mod.get_type("List")`); `map`, `foldl`, `zip`, ... are global variables.
    """

    def __init__(self, mod=None):
        self.mod = IRModule() if mod is None else mod
        import_std(self.mod)
        for name, fields in _TYPES.items():
            for field, value in zip(fields, self.mod.get_type(name), strict=True):
                setattr(self, field, value)
        for name in _FUNCTIONS:
            setattr(self, name, self.mod.get_global_var(name))

    def get_name(self, canonical, dtype):
        """The name of what belongs to tensors of a dtype: "tensor_t", "tensor_array", "tensor1", ..."""
        return TensorArrayOps(self, dtype).get_name(canonical)

    def get_type(self, name, dtype=None):
        """(variable, *constructors) of a data type; with a dtype the variable of what belongs to tensors of it."""
        return self.mod.get_type(name) if dtype is None else self._tensors(dtype).get_type(name)

    def get_ctor(self, type_name, name, dtype=None):
        """A constructor by name; with a dtype of what belongs to tensors of it."""
        if dtype is not None:
            ops = self._tensors(dtype)
            return self.get_ctor(ops.get_name(type_name) if type_name == "tensor_t" else type_name, ops.get_name(name))
        for constructor in self.mod.get_type(type_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise ValueError(f"the data type `{type_name}` has no constructor `{name}`")

    def get_tensor_ctor(self, name, dtype):
        """A constructor of tensors of a dtype: "tensor_nil", "tensor0" to "tensor6"."""
        return self.get_ctor("tensor_t", name, dtype)

    def get_global_var(self, name, dtype=None):
        """A function of the module; with a dtype one on tensors of it, as `tensor_array_stack`."""
        return self.mod.get_global_var(name) if dtype is None else self._tensors(dtype).get_global_var(name)

    def _tensors(self, dtype):
        ops = TensorArrayOps(self, dtype)
        ops.register()
        return ops

    def get_name_static(self, canonical, dtype, shape, batch_dim=None):
        """The name of what belongs to tensors of a shape."""
        return StaticTensorArrayOps(self, dtype, shape, batch_dim).get_name(canonical)

    def get_global_var_static(self, canonical, dtype, shape, batch_dim=None):
        """A function on tensors of a shape."""
        return self._static(dtype, shape, batch_dim).get_global_var(canonical)

    def get_type_static(self, canonical, dtype, shape):
        """The variable of a data type of tensors of a shape."""
        return self._static(dtype, shape).get_type(canonical)

    def get_ctor_static(self, type_name, name, dtype, shape):
        """A constructor of a data type of tensors of a shape."""
        ops = self._static(dtype, shape)
        return self.get_ctor(ops.get_name(type_name) if type_name == "tensor_t" else type_name, ops.get_name(name))

    def get_tensor_ctor_static(self, name, dtype, shape):
        """A constructor of tensors of a shape: "tensor_constructor" or "tensor_nil"."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)

    def _static(self, dtype, shape, batch_dim=None):
        ops = StaticTensorArrayOps(self, dtype, shape, batch_dim)
        ops.register()
        return ops


_OF_TENSORS = re.compile(r"tensor_(?P<type>(?:float|int|uint)\d+)_t|tensor_\w+_(?P<function>(?:float|int|uint)\d+)")


def enter(mod, name):
    """Adds what belongs to tensors of a dtype to a module that has the prelude, where a name says so, as `tensor_array_float32` and
    `tensor_float32_t`. Whether it did: the name may still be missing."""
    found = _OF_TENSORS.fullmatch(name)
    if found is None or "iterate" not in mod or not any(var.name_hint == "List" for var in mod.type_definitions):
        return False
    dtype = found["type"] or found["function"]
    if f"tensor_array_{dtype}" in mod:
        return False
    TensorArrayOps(Prelude(mod), dtype).register()
    return True


def import_std(mod, name="prelude.rly"):
    """Adds what a file of the standard library defines, unless the module has it: `prelude.rly`, `nat.rly` or `gradient.rly`. The operators that
    `core.rly` and `nn.rly` declare are there without them; `core.rly` has the type `Storage`."""
    if name in _BUILT_IN:
        if name == "core.rly" and not any(var.name_hint == "Storage" for var in mod.type_definitions):
            mod.update(parse(_CORE, name))
        return
    if name not in _FILES:
        raise ValueError(f"there is no `{name}` in the standard library; it has {', '.join([*_FILES, *_BUILT_IN])}")
    text, first, last = _FILES[name]
    if any(var.name_hint == first for var in mod.type_definitions):
        if last in mod:
            return
        raise ValueError(f"the module has its own data type `{first}`; {name} brings another")
    mod.update(get_global_func("relay.analysis.InferModuleTypes")(parse(text, name)))


__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "import_std"]
