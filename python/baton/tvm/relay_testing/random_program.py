# SPDX-License-Identifier: Apache-2.0
"""Random well-typed programs of Relay, by seed, to test passes with.

A program has all kinds of nodes: operators with broadcasting and attributes, shared expressions, lets, branches, tuples,
references, closures, polymorphic and recursive functions, data types with nested matches, annotations. It always ends, reads
no random numbers and divides by nothing near zero, so that its value before a pass is its value after it.
"""

import random

import numpy as np

_TYPES = """
type List[A] { Cons(A, List[A]), Nil, }
type Pick[A, B] { Left(A), Right(B), Both(A, B), Neither, }
"""
_LIBRARY = """
def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil }
}
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) { Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest), Nil => %acc }
}
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @swap[A, B](%p: (A, B)) -> (B, A) { (%p.1, %p.0) }
def @even(%n: int32) -> bool { if (less_equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (less_equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
"""

_FLOATS, _INTS = ("float32", "float64"), ("int32", "int64", "uint8", "int8")
_EMPTY = ((0,), (0, 3), (2, 0), (1, 0, 3), (0, 4, 1), (2, 4, 0, 3), (0, 2, 4, 4))
_SHAPES = ((), (1,), (3,), (4,), (2, 3), (3, 2), (1, 3), (2, 1), (4, 4), (2, 2, 3), (1, 4, 1), (1, 2, 4, 4), (2, 4, 3, 3))


class _Type(tuple):
    """A type, as its components. Types of different kinds differ, though their components are equal."""

    def __eq__(self, other):
        return type(self) is type(other) and tuple.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((type(self).__name__, tuple.__hash__(self)))


class _Tensor(_Type):
    """A tensor's type: (shape, dtype)."""

    def __new__(cls, shape, dtype="float32"):
        return super().__new__(cls, (tuple(shape), dtype))

    shape = property(lambda self: self[0])
    dtype = property(lambda self: self[1])

    def __str__(self):
        return self.dtype if not self.shape else f"Tensor[({', '.join(map(str, self.shape))}), {self.dtype}]"


class _Tuple(_Type):
    def __str__(self):
        return f"({', '.join(map(str, self))}{',' if len(self) == 1 else ''})"


class _Fn(_Type):
    """((parameters), result)"""

    def __str__(self):
        return f"fn ({', '.join(map(str, self[0]))}) -> {self[1]}"


class _Data(_Type):
    """(name, argument, ...)"""

    def __str__(self):
        return f"{self[0]}[{', '.join(map(str, self[1:]))}]"


class _Ref(_Type):
    """(what it holds,)"""

    def __str__(self):
        return f"ref({self[0]})"


_BOOL, _INT = _Tensor((), "bool"), _Tensor((), "int32")


def _dims(values):
    return "[" + ", ".join(map(str, values)) + "]"


def _broadcastable(shape, rng):
    """A shape that broadcasts to `shape`."""
    kept = [1 if rng.random() < 0.25 else d for d in shape]
    return tuple(kept[rng.randint(0, len(kept)) :] if rng.random() < 0.4 else kept)


class _Scope:
    """The scope of an expression: known variables, and the statements before it."""

    def __init__(self, known=()):
        self.known, self.lines = list(known), []


class _Choices:
    """Random types and names; `budget` is what may still be written."""

    def __init__(self, seed, size, skip, empty=False):
        self.rng, self.budget, self.skip = random.Random(seed), size, set(skip)
        self.shapes = _SHAPES + _EMPTY * 2 if empty else _SHAPES
        self.names = self.shared = 0
        self.functions, self.global_functions = [], []
        self.pool = [self.any_tensor_type() for _ in range(4)]  # few types, so that values of one are used for another

    def chance(self, p):
        return self.rng.random() < p

    def name(self, stem="v"):
        self.names += 1
        return f"%{stem}{self.names}"

    def wants(self, kind):
        return kind not in self.skip

    def type(self, depth=1):
        """A type to compute with."""
        r = self.rng.random()
        if depth > 0 and r < 0.15 and self.wants("tuple"):
            return _Tuple(self.type(depth - 1) for _ in range(self.rng.choice((1, 2, 2, 3))))
        if depth > 0 and r < 0.22 and self.wants("data"):
            return _Data(("List", self.tensor_type()))
        if depth > 0 and r < 0.28 and self.wants("data"):
            return _Data(("Pick", self.tensor_type(), self.tensor_type()))
        return self.tensor_type()

    def tensor_type(self):
        if self.chance(0.75):
            return self.rng.choice(self.pool)
        return self.any_tensor_type()

    def any_tensor_type(self):
        r = self.rng.random()
        dtype = "float32" if r < 0.75 else self.rng.choice(_FLOATS + _INTS + ("bool",))
        return _Tensor(self.rng.choice(self.shapes), dtype)


class _Writer(_Choices):
    # expressions

    def leaf(self, t, scope):
        """A simple expression of type `t`."""
        known = [n for n, k in scope.known if k == t]
        if known and self.chance(0.85):
            return self.rng.choice(known)
        if isinstance(t, _Tensor):
            return self.constant(t)
        if isinstance(t, _Tuple):
            return str(_Tuple(self.leaf(k, scope) for k in t))
        if isinstance(t, _Ref):
            return f"ref({self.leaf(t[0], scope)})"
        if isinstance(t, _Fn):
            return self.function(t, scope)
        if t[0] == "List":
            items = "Nil"
            for _ in range(self.rng.randint(0, 2)):
                items = f"Cons({self.leaf(t[1], scope)}, {items})"
            return items if items != "Nil" else self.typed("Nil", t, scope)
        which = self.rng.choice(("Left", "Right", "Both", "Neither"))
        parts = {"Left": (t[1],), "Right": (t[2],), "Both": (t[1], t[2]), "Neither": ()}[which]
        made = which + (f"({', '.join(self.leaf(k, scope) for k in parts)})" if parts else "")
        return self.typed(made, t, scope)

    def typed(self, text, t, scope):
        """`text` under a let that states its type: a bare constructor does not say what its parameters are."""
        name = self.name("t")
        scope.lines.append(f"let {name}: {t} = {text};")
        return name

    def constant(self, t):
        if t.dtype == "bool":
            scalar = self.rng.choice(("True", "False"))
        elif t.dtype in _FLOATS:
            scalar = self.rng.choice(("0", "1", "-1", "0.5", "2", "-1.5", "0.25", "3")) + ("f" if t.dtype == "float32" else "f64")
        else:
            scalar = str(self.rng.choice((0, 1, 2, 3))) + {"int32": "", "int64": "i64", "uint8": "u8", "int8": "i8"}[t.dtype]
        if t.dtype in ("uint8", "int8"):
            scalar = f'cast({scalar[:-2]}, dtype="{t.dtype}")'
        if not t.shape:
            return scalar
        if self.chance(0.4) and t.dtype != "bool":
            return f'{self.rng.choice(("ones", "zeros"))}(shape={_dims(t.shape)}, dtype="{t.dtype}")'
        return f'full({scalar}, shape={_dims(t.shape)}, dtype="{t.dtype}")'

    def expr(self, t, scope, depth):
        """An expression of type `t`; what must be bound first goes into the scope's lines."""
        if depth <= 0 or self.budget <= 0:
            return self.leaf(t, scope)
        self.budget -= 1
        known = [n for n, k in scope.known if k == t]
        if known and self.chance(0.12):
            return self.rng.choice(known)
        kinds = ["operator"] * 12 if isinstance(t, _Tensor) else ["build"] * 6
        for kind, weight in (
            ("if", 1),
            ("let", 2),
            ("share", 3),
            ("tuple", 1),
            ("closure", 1),
            ("global", 1),
            ("ref", 1),
            ("data", 2),
            ("recursion", 1),
            ("annotation", 1),
        ):
            if self.wants(kind):
                kinds += [kind] * weight
        if isinstance(t, _Fn):
            return self.function(t, scope)
        return getattr(self, "_" + self.rng.choice(kinds))(t, scope, depth - 1)

    def block(self, t, scope, depth, known=()):
        """`{ lines expression }`: a new scope, which sees the outer one."""
        inner = _Scope([*scope.known, *known])
        value = self.expr(t, inner, depth)
        return "{ " + " ".join([*inner.lines, value]) + " }"

    def function(self, t, scope, depth=1):
        params = [(self.name("p"), k) for k in t[0]]
        body = self.block(t[1], scope, depth, params)
        return f"fn ({', '.join(f'{n}: {k}' for n, k in params)}) -> {t[1]} {body}"

    def _build(self, t, scope, depth):
        if isinstance(t, _Tuple):
            return str(_Tuple(self.expr(k, scope, depth) for k in t))
        if isinstance(t, _Data) and t[0] == "List" and self.chance(0.5) and self.wants("recursion"):
            item = self.tensor_type()
            f = self.function(_Fn(((item,), t[1])), scope)
            return f"@map({f}, {self.expr(_Data(('List', item)), scope, depth)})"
        if isinstance(t, _Data) and t[0] == "List":
            return f"Cons({self.expr(t[1], scope, depth)}, {self.expr(t, scope, depth)})"
        return self.leaf(t, scope)

    def _if(self, t, scope, depth):
        condition = self.expr(_BOOL, scope, depth)
        return f"if ({condition}) {self.block(t, scope, depth)} else {self.block(t, scope, depth)}"

    def _let(self, t, scope, depth):
        bound = self.type() if self.chance(0.8) else t
        value = self.expr(bound, scope, depth)
        name = self.name()
        note = f": {bound}" if self.chance(0.5) else ""
        scope.lines.append(f"let {name}{note} = {value};")
        scope.known.append((name, bound))
        return self.expr(t, scope, depth)

    def _share(self, t, scope, depth):
        bound = self.type() if self.chance(0.5) else t
        value = self.expr(bound, scope, depth)
        name = f"%{self.shared}"
        self.shared += 1
        scope.lines.append(f"{name} = {value};")
        scope.known.append((name, bound))
        return self.expr(t, scope, depth)

    def _tuple(self, t, scope, depth):
        fields = [self.tensor_type() for _ in range(self.rng.randint(0, 2))]
        at = self.rng.randint(0, len(fields))
        fields.insert(at, t)
        if len(fields) == 2 and self.wants("global") and self.chance(0.3):
            swapped = self.expr(_Tuple(reversed(fields)), scope, depth)
            return self.part(f"@swap({swapped})", at, scope)
        return self.part(self.expr(_Tuple(fields), scope, depth), at, scope)

    def part(self, value, index, scope):
        """A field of `value`, which need not be a name."""
        if not value.startswith("%") or " " in value:
            name = f"%{self.shared}"
            self.shared += 1
            scope.lines.append(f"{name} = {value};")
            value = name
        return f"{value}.{index}"

    def _closure(self, t, scope, depth):
        params = tuple(self.type() for _ in range(self.rng.randint(0, 2)))
        f = self.function(_Fn((params, t)), scope, depth)
        arguments = ", ".join(self.expr(k, scope, depth) for k in params)
        if self.chance(0.2) and params == (t,):
            return f"@twice({f}, {arguments})"
        name = self.name("f")
        scope.lines.append(f"let {name} = {f};")
        if self.chance(0.5):
            scope.known.append((name, _Fn((params, t))))
        if self.chance(0.3):
            again = ", ".join(self.leaf(k, scope) for k in params)
            return f"if ({self.leaf(_BOOL, scope)}) {{ {name}({arguments}) }} else {{ {name}({again}) }}"
        return f"{name}({arguments})"

    def _global(self, t, scope, depth):
        fitting = [(n, k) for n, k in self.global_functions if k[1] == t]
        if not fitting or self.chance(0.5):
            params = tuple(self.type() for _ in range(self.rng.randint(0, 2)))
            fn = _Fn((params, t))
            named = [(self.name("g"), k) for k in params]
            body = self.block(t, _Scope(), depth, named)
            fitting = [(f"@f{len(self.functions)}", fn)]
            self.functions.append(f"def {fitting[0][0]}({', '.join(f'{n}: {k}' for n, k in named)}) -> {t} {body}")
            self.global_functions.append(fitting[0])
        name, fn = self.rng.choice(fitting)
        return f"{name}({', '.join(self.expr(k, scope, depth) for k in fn[0])})"

    def _ref(self, t, scope, depth):
        held = t if self.chance(0.7) else self.tensor_type()
        cell, old = self.name("r"), self.name()
        scope.lines.append(f"let {cell} = ref({self.expr(held, scope, depth)});")
        if self.chance(0.6):
            scope.lines.append(f"let {old} = ref_read({cell});")
            scope.known.append((old, held))
        if self.chance(0.8):
            new = self.expr(held, scope, depth)
            if self.chance(0.4):  # a write that may not happen
                condition = self.expr(_BOOL, scope, depth - 1)
                scope.lines.append(f"let {self.name('u')} = if ({condition}) {{ ref_write({cell}, {new}) }} else {{ () }};")
            else:
                scope.lines.append(f"let {self.name('u')} = ref_write({cell}, {new});")
        now = self.name()
        scope.lines.append(f"let {now} = ref_read({cell});")
        scope.known.append((now, held))
        return self.expr(t, scope, depth)

    def _data(self, t, scope, depth):
        a, b = self.tensor_type(), self.tensor_type()
        x, y = self.name("m"), self.name("m")
        if self.chance(0.5):
            value = self.expr(_Data(("Pick", a, b)), scope, depth)
            arms = [
                f"Left({x}) => {self.block(t, scope, depth, [(x, a)])}",
                f"Right(_) => {self.block(t, scope, depth)}",
                f"Both({x}, {y}) => {self.block(t, scope, depth, [(x, a), (y, b)])}",
            ]
            self.rng.shuffle(arms)
            return f"match ({value}) {{ {', '.join(arms)}, _ => {self.block(t, scope, depth)} }}"
        value = self.expr(_Data(("List", a)), scope, depth)
        two = f"Cons({x}, Cons({y}, _)) => {self.block(t, scope, depth, [(x, a), (y, a)])}, "
        one = f"Cons({x}, _) => {self.block(t, scope, depth, [(x, a)])}, "
        return f"match ({value}) {{ {two if self.chance(0.5) else ''}{one}Nil => {self.block(t, scope, depth)} }}"

    def _recursion(self, t, scope, depth):
        r = self.rng.random()
        if r < 0.3 and t == _BOOL:
            return f"@{self.rng.choice(('even', 'odd'))}({self.rng.randint(0, 5)})"
        if r < 0.5 and self.wants("data"):
            item = self.tensor_type()
            f = self.function(_Fn(((t, item), t)), scope)
            start, items = self.expr(t, scope, depth), self.expr(_Data(("List", item)), scope, depth)
            return f"@foldl({f}, {start}, {items})"
        loop, count, state = self.name("loop"), self.name("n"), self.name("s")
        step = self.block(t, scope, depth, [(state, t)])
        body = f"if (less_equal({count}, 0)) {{ {state} }} else {{ let {self.name('w')}: {t} = {step}; {loop}(subtract({count}, 1), %w{self.names}) }}"
        scope.lines.append(f"let {loop}: fn (int32, {t}) -> {t} = fn ({count}: int32, {state}: {t}) -> {t} {{ {body} }};")
        return f"{loop}({self.rng.randint(0, 3)}, {self.expr(t, scope, depth)})"

    def _annotation(self, t, scope, depth):
        value = self.expr(t, scope, depth)
        if not isinstance(t, _Tensor):
            return value
        return self.rng.choice((f"annotation.stop_fusion({value})", f"copy({value})"))

    # operators

    def _operator(self, t, scope, depth):
        shape, dtype = t
        sub = lambda s, d=dtype: self.expr(_Tensor(s, d), scope, depth)  # noqa: E731
        if dtype == "bool":
            return self.boolean(t, sub)
        options = [self.binary, self.unary, self.move, self.reduce, self.select]
        if dtype in _FLOATS and shape:
            options.append(self.network)
        made = self.rng.choice(options)(t, sub)
        return made if made is not None else self.binary(t, sub)

    def boolean(self, t, sub):
        if self.chance(0.3):
            return f"logical_not({sub(t.shape)})"
        if self.chance(0.4):
            return f"{self.rng.choice(('logical_and', 'logical_or', 'logical_xor'))}({sub(t.shape)}, {sub(_broadcastable(t.shape, self.rng))})"
        dtype = self.rng.choice(("float32", "int32"))
        compare = self.rng.choice(("less", "greater", "less_equal", "greater_equal", "equal", "not_equal"))
        return f"{compare}({sub(t.shape, dtype)}, {sub(_broadcastable(t.shape, self.rng), dtype)})"

    def binary(self, t, sub):
        a, b = sub(t.shape), sub(_broadcastable(t.shape, self.rng))
        name = self.rng.choice(("add", "add", "subtract", "multiply", "maximum", "minimum"))
        if name not in ("subtract",) and self.chance(0.5):
            a, b = b, a
        if t.dtype in _FLOATS and self.chance(0.1):
            return f"divide({a}, add(abs({sub(t.shape)}), {'1f' if t.dtype == 'float32' else '1f64'}))"
        return f"{name}({a}, {b})"

    def unary(self, t, sub):
        if self.chance(0.2):
            dtype = self.rng.choice(_FLOATS + ("int32", "bool") if t.dtype in _FLOATS else ("int32", "bool", "uint8"))
            return f'cast({sub(t.shape, dtype)}, dtype="{t.dtype}")'
        if t.dtype in _FLOATS:
            inner = sub(t.shape)
            if self.chance(0.15):
                return self.rng.choice(
                    ("sqrt(abs({}))", "rsqrt(add(abs({0}), ones_like({0})))", "exp(clip({}, a_min=-2f, a_max=2f))", "log(add(abs({0}), ones_like({0})))")
                ).format(inner)
            name = self.rng.choice(("negative", "abs", "tanh", "sigmoid", "nn.relu", "floor", "round", "sin", "erf", "copy", "zeros_like", "ones_like"))
            return f"{name}({inner})"
        if t.dtype in ("uint8",):
            return f"copy({sub(t.shape)})"
        return f"{self.rng.choice(('negative', 'abs', 'copy', 'zeros_like'))}({sub(t.shape)})"

    def move(self, t, sub):
        """Operators that move data."""
        shape, count = t.shape, int(np.prod(t.shape, dtype=int))
        options = ["reshape", "broadcast", "layout"]
        if shape:
            options += ["transpose", "concatenate", "slice", "tile", "take", "expand", "reverse", "stack", "split"]
        kind = self.rng.choice(options)
        axis = self.rng.randrange(len(shape)) if shape else 0
        rest = lambda d: (*shape[:axis], d, *shape[axis + 1 :])  # noqa: E731
        if kind == "reshape":
            same = [s for s in self.shapes if int(np.prod(s, dtype=int)) == count] or [(count,)]
            if count == 0:  # 0 in a new shape keeps the extent that was there
                return f"reshape({sub(shape)}, newshape={_dims(shape)})"
            return f"reshape({sub(self.rng.choice(same))}, newshape={_dims(shape)})"
        if kind == "broadcast":
            return f"broadcast_to({sub(_broadcastable(shape, self.rng))}, shape={_dims(shape)})"
        if kind == "transpose":
            axes = list(range(len(shape)))
            self.rng.shuffle(axes)
            source = [0] * len(shape)
            for i, a in enumerate(axes):
                source[a] = shape[i]
            return f"transpose({sub(tuple(source))}, axes={_dims(axes)})"
        if kind == "concatenate" and shape[axis] > 1:
            first = self.rng.randint(1, shape[axis] - 1)
            return f"concatenate(({sub(rest(first))}, {sub(rest(shape[axis] - first))}), axis={axis})"
        if kind == "stack" and len(shape) > 1 and 1 <= shape[axis] <= 3:
            parts = ", ".join(sub((*shape[:axis], *shape[axis + 1 :])) for _ in range(shape[axis]))
            return f"stack(({parts}{',' if shape[axis] == 1 else ''}), axis={axis})"
        if kind == "split" and shape[axis] <= 4:
            return f"split({sub(rest(shape[axis] * 2))}, indices_or_sections=2, axis={axis}).{self.rng.randint(0, 1)}" if self.chance(0.5) else None
        if kind == "slice" and shape[axis]:
            begin, stride = self.rng.randint(0, 2), self.rng.choice((1, 1, 2))
            end = begin + (shape[axis] - 1) * stride + 1
            return f"strided_slice({sub(rest(end + self.rng.randint(0, 1)))}, begin=[{begin}], end=[{end}], strides=[{stride}], axes=[{axis}])"
        if kind == "tile" and 0 not in shape:
            return f"tile({sub(rest(1))}, reps={_dims(shape[axis] if i == axis else 1 for i in range(len(shape)))})"
        if kind == "take":
            return f'take({sub(rest(3))}, {sub((shape[axis],), "int32")}, axis={axis}, mode="clip")'
        if kind == "expand" and shape[axis] == 1:
            return f"expand_dims({sub((*shape[:axis], *shape[axis + 1 :]))}, axis={axis})"
        if kind == "expand":
            return f"squeeze({sub((*shape[:axis], 1, *shape[axis:]))}, axis=[{axis}])"
        if kind == "reverse":
            return f"reverse({sub(shape)}, axis={axis})"
        return None

    def reduce(self, t, sub):
        if len(t.shape) > 2:
            return None
        axis = self.rng.randint(0, len(t.shape))
        if t.dtype == "int64" and self.chance(0.5):
            return f"argmax({sub((*t.shape[:axis], 3, *t.shape[axis:]), 'float32')}, axis=[{axis}], dtype=\"int64\")"
        name = self.rng.choice(("sum", "max", "min") + (("mean", "prod") if t.dtype in _FLOATS else ()))
        if t.shape and t.shape[-1] == 1 and self.chance(0.5):
            return f"{name}({sub((*t.shape[:-1], 3))}, axis=[-1], keepdims=True)"
        return f"{name}({sub((*t.shape[:axis], self.rng.choice((1, 2, 3)), *t.shape[axis:]))}, axis=[{axis}])"

    def select(self, t, sub):
        return f"where({sub(t.shape, 'bool')}, {sub(t.shape)}, {sub(t.shape)})"

    def network(self, t, sub):
        shape, dtype = t
        if 0 in shape and (len(shape) == 4 or self.chance(0.5)):
            return None
        if len(shape) == 2 and self.chance(0.6):
            k = self.rng.choice((1, 2, 3, 4))
            return f"nn.dense({sub((shape[0], k))}, {sub((shape[1], k))}, units={shape[1]})"
        if len(shape) == 3 and self.chance(0.6):
            k = self.rng.choice((1, 2, 3))
            return f"nn.batch_matmul({sub((shape[0], shape[1], k))}, {sub((shape[0], shape[2], k))})"
        if len(shape) == 4 and self.chance(0.7):
            n, c, h, w = shape
            if self.chance(0.3):
                return f"nn.max_pool2d({sub((n, c, h, w))}, pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1])"
            if self.chance(0.3):
                ones = [sub((c,)), sub((c,)), sub((c,)), f"abs({sub((c,))})"]
                return f"nn.batch_norm({sub(shape)}, {', '.join(ones)}).0"
            k, groups = self.rng.choice((1, 3)), self.rng.choice((1, c)) if c > 1 else 1
            inner = c if groups == c else self.rng.choice((1, 2, 4))
            return (
                f"nn.conv2d({sub((n, inner, h, w))}, {sub((c, inner // groups, k, k))}, padding={_dims([k // 2] * 4)}, channels={c}, "
                f"groups={groups}, kernel_size=[{k}, {k}])"
            )
        kind = self.rng.choice(("softmax", "bias_add", "dropout", "layer_norm", "pad"))
        axis = self.rng.randrange(len(shape))
        if kind == "softmax":
            return f"nn.softmax({sub(shape)}, axis={axis})"
        if kind == "bias_add":
            return f"nn.bias_add({sub(shape)}, {sub((shape[axis],))}, axis={axis})"
        if kind == "dropout":
            return f"nn.dropout({sub(shape)}).0"
        if kind == "layer_norm":
            return f"nn.layer_norm({sub(shape)}, {sub((shape[axis],))}, {sub((shape[axis],))}, axis={axis})"
        if shape[axis] < 2:
            return None
        pads = ", ".join("[1, 0]" if i == axis else "[0, 0]" for i in range(len(shape)))
        inner = tuple(d - 1 if i == axis else d for i, d in enumerate(shape))
        return f"nn.pad({sub(inner)}, 0f, pad_width=[{pads}])" if dtype == "float32" else None

    def program(self):
        params = [(f"%x{i}", self.tensor_type()) for i in range(self.rng.randint(1, 4))]
        result = self.type(2)
        body = self.block(result, _Scope(), 7, params)
        main = f"def @main({', '.join(f'{n}: {k}' for n, k in params)}) -> {result} {body}"
        return '#[version = "0.0.5"]' + _TYPES + _LIBRARY + "\n".join([*self.functions, main]) + "\n"


def random_program(seed, size=40, skip=(), empty=False):
    """The text of a random program whose entry is `@main`; the same for the same arguments, on each machine.

    `size` bounds the number of expressions roughly. `skip` leaves out kinds of nodes: "if", "let", "share", "tuple", "closure",
    "global", "ref", "data", "recursion", "annotation". `empty` mixes in tensors without elements.

        mod = relay.fromtext(random_program(7))
        before = relay.create_executor("debug", mod).evaluate()(*random_inputs(mod, 7))
    """
    return _Writer(seed, size, skip, empty).program()


def random_inputs(mod, seed, special=False):
    """Arguments for `@main` of a module, by its parameters' types; `special` mixes in nan, infinities, -0 and extremes."""
    rng = np.random.default_rng(seed)
    return [_sample(param.type_annotation, rng, special) for param in mod["main"].params]


def _sample(t, rng, special):
    shape, dtype = tuple(int(d) for d in t.shape), t.dtype
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if np.issubdtype(np.dtype(dtype), np.integer):
        info = np.iinfo(dtype)
        value = rng.integers(0, 5, shape).astype(dtype)
        extremes = np.array([info.min, info.max, 0], dtype)
    else:
        value = (rng.integers(-8, 9, shape) / 4).astype(dtype)
        extremes = np.array([np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).tiny / 4, np.finfo(dtype).max], dtype)
    if special:
        where = rng.random(shape) < 0.3
        value = np.where(where, extremes[rng.integers(0, len(extremes), shape)], value)
    return np.asarray(value, dtype)


__all__ = ["random_inputs", "random_program"]
