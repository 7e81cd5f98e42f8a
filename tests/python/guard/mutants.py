# SPDX-License-Identifier: Apache-2.0
"""Seeded miscompiles: passes that are wrong, each with a small model and the pass of the default pipeline that it stands before."""

import numpy as np

import baton as tvm
from baton import relay
from baton._ffi import get_global_func
from baton.ir import make_node
from baton.transform import Scheduled, module_pass, rewrite_allowed

MODELS = {
    "cnn": """
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32], %b: Tensor[(8), float32], %g: Tensor[(8), float32],
          %v: Tensor[(8), float32], %d: Tensor[(8, 8), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, %b, axis=1);
  %2 = nn.batch_norm(%1, %g, %b, %b, abs(%v), epsilon=1e-5f);
  %3 = nn.relu(%2.0);
  %4 = nn.max_pool2d(%3, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  %5 = transpose(%4, axes=[0, 2, 3, 1]);
  %6 = nn.pad(%5, 0f, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);
  %7 = mean(%6, axis=[1, 2]);
  %8 = nn.dense(%7, %d, units=8);
  %9 = nn.bias_add(%8, %b, axis=1);
  (nn.softmax(%9, axis=1), sum(%6, axis=[3]), nn.leaky_relu(%0, alpha=0.1f))
}""",
    "attention": """
def @main(%x: Tensor[(4, 4, 4), float32], %k: Tensor[(4, 4, 4), float32], %g: Tensor[(4), float32], %w: Tensor[(4, 4), float32],
          %m: Tensor[(4, 4, 4), bool]) {
  %0 = nn.layer_norm(%x, %g, %g, axis=-1, epsilon=1e-5f);
  %1 = reshape(nn.dense(reshape(%0, newshape=[16, 4]), %w, units=4), newshape=[4, 4, 4]);
  %2 = nn.batch_matmul(%1, %k, transpose_b=True);
  %3 = divide(%2, 2f);
  %4 = where(%m, %3, full_like(%3, -10000f));
  %5 = nn.softmax(%4, axis=-1);
  %6 = nn.batch_matmul(%5, %k, transpose_b=False);
  %7 = transpose(%6, axes=[0, 2, 1]);
  %8 = subtract(%7, %x);
  %9 = multiply(multiply(%8, 0.5f), add(1f, erf(multiply(%8, 0.707107f))));
  %10 = subtract(%9, sum(%9, axis=[1], keepdims=True));
  (%10, divide(%8, add(abs(%9), 1f)), concatenate((%8, %9), axis=1))
}""",
    "numbers": """
def @main(%x: Tensor[(4, 4), float32], %y: Tensor[(4), float32], %z: Tensor[(4, 4), float32]) {
  %0 = sum(%x, axis=[0]);
  %1 = sum(%x, axis=[1]);
  %2 = mean(%z, axis=[1]);
  %3 = max(%x, axis=[1]);
  %4 = argmax(%z, axis=[1]);
  %5 = add(%x, %y);
  %6 = maximum(%5, %z);
  %7 = clip(%6, a_min=-1f, a_max=1f);
  %8 = sqrt(multiply(%7, %7));
  %9 = where(less(%x, %z), floor(%x), round(%z));
  %10 = divide(subtract(%x, %z), add(exp(%z), 1f));
  %11 = logical_and(less(%x, 1f), greater(%z, -1f));
  %12 = cumsum(%x, axis=1);
  %13 = multiply(%z, 0f);
  %14 = add(multiply(%x, 3f), log(add(abs(%z), 1f)));
  (%0, %1, %2, %3, %4, %8, %9, %10, %11, %12, %13, %14, prod(%z, axis=[0]), subtract(%x, %x), ceil(%x), power(add(abs(%x), 1f), 2f))
}""",
    "integers": """
def @main(%a: Tensor[(6, 4), int32], %b: Tensor[(6, 4), int32], %u: Tensor[(6, 4), uint8], %s: Tensor[(6, 4), int8], %i: Tensor[(3), int32]) {
  %0 = floor_divide(%a, add(multiply(%b, %b), 1));
  %1 = floor_mod(%a, 3);
  %2 = right_shift(%a, 2);
  %3 = left_shift(%b, 1);
  %4 = cast(%u, dtype="int32");
  %5 = multiply(cast(%s, dtype="int32"), cast(%s, dtype="int32"));
  %6 = subtract(%u, cast(%s, dtype="uint8"));
  %7 = take(%a, %i, axis=0);
  %8 = strided_slice(%a, begin=[1, 0], end=[5, 3], strides=[1, 1]);
  %9 = bitwise_and(%a, bitwise_or(%b, 5));
  %10 = reverse(%s, axis=1);
  (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, repeat(%a, repeats=2, axis=0), equal(%a, %b), bitwise_not(%a), cast(%a, dtype="float32"))
}""",
    "control": """
type List[A] { Cons(A, List[A]), Nil }
def @scale(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) -> Tensor[(4), float32] { subtract(multiply(%x, 2f), %y) }
def @shift(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) -> Tensor[(4), float32] { add(%x, %y) }
def @loop(%n: int32, %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  if (less(%n, 3)) { @loop(add(%n, 1), add(%x, 1f)) } else { %x }
}
def @head(%l: List[float32]) -> float32 { match (%l) { Cons(%h, _) => %h, Nil => 7f } }
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32], %c: bool) {
  let %r = ref(%x);
  let %u = ref_write(%r, multiply(%y, 3f));
  let %a = ref_read(%r);
  let %v = ref_write(%r, add(%a, %y));
  let %w = ref_write(%r, negative(ref_read(%r)));
  let %t = (%x, @scale(%x, %y));
  (if (%c) { %a } else { @shift(%y, %x) }, %t.1, ref_read(%r), @loop(0, %x), @head(Cons(3f, Cons(4f, Nil))), %t)
}""",
    "dynamic": """
def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(3), float32]) {
  %0 = sum(%x, axis=[0]);
  %1 = divide(%0, cast(take(shape_of(%x, dtype="int64"), 0i64), dtype="float32"));
  %2 = nn.relu(subtract(%x, %1));
  (add(%2, %y), %1)
}""",
}


def model(name):
    """The module of a model, with weights that are constants where it has some."""
    mod = relay.fromtext('#[version = "0.0.5"]\n' + MODELS[name])
    if name in ("cnn", "attention"):
        rng = np.random.default_rng(7)
        names = [p.name_hint for p in mod["main"].params if p.name_hint not in ("x", "k", "m")]
        types = {p.name_hint: p.type_annotation for p in mod["main"].params}
        values = {n: tvm.nd.array(rng.uniform(0.2, 1.5, [int(d) for d in types[n].shape]).astype("float32")) for n in names}
        mod = get_global_func("driver.BindParams")(mod, values)
    return mod


MUTANTS = {}
"""Name -> (model, pass of the default pipeline that it stands before, maker)."""


def mutant(where, before="DynamicToStatic", at=None):
    """Registers a rewrite `(call, new) -> expression or None` of calls of the operator `at`, or a maker of a whole pass."""

    def register(rewrite):
        name = "".join(part.capitalize() for part in rewrite.__name__.split("_"))

        def make():
            if at is None:
                return rewrite(name)

            @relay.transform.function_pass(opt_level=0, name=name)
            class Wrong(relay.ExprMutator):
                def transform_function(self, func, mod, ctx):
                    return relay.ExprMutator.visit(self, func)

                def visit_call(self, call):
                    new = super().visit_call(call)
                    if getattr(call.op, "name", None) != at:
                        return new
                    other = rewrite(call, new)
                    return new if other is None or not rewrite_allowed() else other

            return Wrong()

        MUTANTS[rewrite.__name__] = (where, before, make)
        return rewrite

    return register


def pipeline(name):
    """The default pipeline with a mutant in it."""
    _, before, make = MUTANTS[name]
    passes = list(get_global_func("driver.DefaultPipeline")().passes)
    at = next(i for i, one in enumerate(passes) if str(one.info.name) == before)
    return Scheduled([*passes[:at], make(), *passes[at:]], ends_with=["Typed"])


def attrs(new, **fields):
    """The call with other attributes."""
    old = {key: new.attrs[key] for key in new.attrs.keys()}
    return relay.Call(new.op, list(new.args), make_node(new.attrs.type_key, **{**old, **fields}))


def op(name, *args):
    return relay.Call(relay.op.get(name), list(args))


def shape(expr):
    return [int(d) for d in expr.checked_type.shape]


# ---- Convolutional network


@mutant("cnn", at="nn.softmax")
def softmax_over_the_wrong_axis(call, new):
    return attrs(new, axis=0)


@mutant("cnn", before="FuseOps", at="nn.relu")
def relu_is_dropped(call, new):
    return new.args[0]


@mutant("cnn", before="FuseOps", at="nn.relu")
def relu_becomes_absolute(call, new):
    return relay.abs(new.args[0])


@mutant("cnn", at="nn.conv2d")
def padding_is_off_by_one(call, new):
    return attrs(new, padding=[0, 1, 2, 1])


@mutant("cnn", at="nn.conv2d")
def kernel_is_flipped(call, new):
    return relay.Call(new.op, [new.args[0], relay.reverse(new.args[1], axis=3)], new.attrs)


@mutant("cnn", at="nn.max_pool2d")
def maximum_pool_becomes_average(call, new):
    return relay.nn.avg_pool2d(new.args[0], (2, 2), (2, 2))


@mutant("cnn", at="nn.batch_norm")
def epsilon_is_wrong(call, new):
    return attrs(new, epsilon=1e-2)


@mutant("cnn", at="nn.batch_norm")
def mean_and_shift_are_exchanged(call, new):
    a = list(new.args)
    return relay.Call(new.op, [a[0], a[1], relay.negative(a[2]), a[3], a[4]], new.attrs)


@mutant("cnn", at="nn.batch_norm")
def scale_is_ignored(call, new):
    return attrs(new, scale=False)


@mutant("cnn", at="nn.bias_add")
def bias_goes_to_the_wrong_axis(call, new):
    return attrs(new, axis=2) if len(shape(call)) == 4 else None


@mutant("cnn", at="nn.bias_add")
def bias_is_lost(call, new):
    return new.args[0]


@mutant("cnn", at="transpose")
def transpose_swaps_the_wrong_axes(call, new):
    return attrs(new, axes=[0, 3, 2, 1])


@mutant("cnn", at="nn.pad")
def pad_goes_to_one_side(call, new):
    return attrs(new, pad_width=[[0, 0], [2, 0], [1, 1], [0, 0]])


@mutant("cnn", at="mean")
def sum_for_mean(call, new):
    return relay.sum(new.args[0], axis=[1, 2])


@mutant("cnn", at="nn.dense")
def weight_is_transposed(call, new):
    return relay.Call(new.op, [new.args[0], relay.transpose(new.args[1], axes=[1, 0])], new.attrs)


@mutant("cnn", at="nn.leaky_relu")
def slope_is_wrong(call, new):
    return attrs(new, alpha=0.11)


@mutant("cnn", before="AlterOpLayout")
def constant_is_stale(name):
    @relay.transform.function_pass(opt_level=0, name=name)
    class Wrong(relay.ExprMutator):
        def transform_function(self, func, mod, ctx):
            return relay.ExprMutator.visit(self, func)

        def visit_constant(self, const):
            value = const.data.numpy()
            stale = value.ndim == 4 and value.size > 1 and value.dtype == "float32" and rewrite_allowed()
            return relay.const(np.roll(value, 1, axis=0)) if stale else const

    return Wrong()


@mutant("cnn", before="FuseOps")
def constant_is_of_the_wrong_layout(name):
    @relay.transform.function_pass(opt_level=0, name=name)
    class Wrong(relay.ExprMutator):
        def transform_function(self, func, mod, ctx):
            return relay.ExprMutator.visit(self, func)

        def visit_constant(self, const):
            value = const.data.numpy()
            if value.ndim < 4 or value.shape[-1] < 2 or not rewrite_allowed():
                return const
            moved = np.ascontiguousarray(value.reshape(value.shape[:-2] + value.shape[:-3:-1]).swapaxes(-1, -2))
            return relay.const(moved)

    return Wrong()


# ---- Attention


@mutant("attention", at="nn.softmax")
def softmax_of_attention_over_the_wrong_axis(call, new):
    return attrs(new, axis=1)


@mutant("attention", at="nn.softmax")
def softmax_overflows(call, new):
    e = relay.exp(new.args[0])
    return e / relay.sum(e, axis=[-1], keepdims=True)


@mutant("attention", at="nn.layer_norm")
def layer_norm_over_the_wrong_axis(call, new):
    return attrs(new, axis=1)


@mutant("attention", at="nn.layer_norm")
def layer_norm_without_its_mean(call, new):
    x, g, b = new.args
    return x / relay.sqrt(relay.mean(x * x, axis=[-1], keepdims=True) + relay.const(1e-5)) * g + b


@mutant("attention", at="nn.batch_matmul")
def product_is_not_transposed(call, new):
    return attrs(new, transpose_b=False) if bool(call.attrs["transpose_b"]) else None


@mutant("attention", at="divide")
def scale_is_squared(call, new):
    return new.args[0] / relay.const(4.0) if isinstance(call.args[1], relay.Constant) else None


@mutant("attention", at="where")
def mask_is_inverted(call, new):
    return op("where", new.args[0], new.args[2], new.args[1])


@mutant("attention", at="transpose")
def transpose_becomes_reshape(call, new):
    return relay.reshape(new.args[0], shape(call))


@mutant("attention", at="subtract")
def operands_are_swapped(call, new):
    return new.args[1] - new.args[0]


@mutant("attention", at="erf")
def erf_becomes_an_approximation(call, new):
    x = new.args[0]
    return relay.tanh(relay.const(1.12838) * (x + relay.const(0.0894) * x * x * x))


@mutant("attention", at="sum")
def dimension_is_not_kept(call, new):
    return attrs(new, keepdims=False)


@mutant("attention", at="concatenate")
def parts_are_concatenated_in_the_wrong_order(call, new):
    return relay.concatenate([new.args[0].fields[1], new.args[0].fields[0]], axis=1)


@mutant("attention", at="full_like")
def mask_is_too_weak(call, new):
    return op("full_like", new.args[0], relay.const(-1.0))


@mutant("attention", at="reshape")
def reshape_goes_by_columns(call, new):
    if shape(call) != [16, 4]:
        return None
    return relay.reshape(relay.transpose(new.args[0], axes=[1, 0, 2]), [16, 4])


# ---- Elementwise and reductions


@mutant("numbers", at="sum")
def sum_over_the_wrong_axis(call, new):
    return attrs(new, axis=[1 - int(new.attrs["axis"][0])])


@mutant("numbers")
def different_sums_are_merged(name):
    @relay.transform.function_pass(opt_level=0, name=name)
    class Wrong(relay.ExprMutator):
        def transform_function(self, func, mod, ctx):
            self.first = {}
            return relay.ExprMutator.visit(self, func)

        def visit_call(self, call):
            new = super().visit_call(call)
            if getattr(call.op, "name", "") != "sum":
                return new
            return self.first.setdefault(call.args[0], new)  # forgot to look at the attributes

    return Wrong()


@mutant("numbers", at="mean")
def mean_divides_by_one_less(call, new):
    return relay.sum(new.args[0], axis=[1]) / relay.const(3.0)


@mutant("numbers", at="max")
def maximum_becomes_minimum(call, new):
    return relay.min(new.args[0], axis=[1])


@mutant("numbers", at="argmax")
def last_of_equal_maxima(call, new):
    return attrs(new, select_last_index=True)


@mutant("numbers", at="add")
def broadcast_is_dropped(call, new):
    if shape(call.args[1]) != [4]:
        return None
    return new.args[0] + relay.strided_slice(new.args[1], [0], [1])


@mutant("numbers", at="clip")
def bound_is_wrong(call, new):
    return attrs(new, a_max=1.5)


@mutant("numbers", at="sqrt")
def root_of_square_loses_its_sign(call, new):
    return new.args[0].args[0] if isinstance(new.args[0], relay.Call) else None


@mutant("numbers", at="round")
def floor_for_round(call, new):
    return relay.floor(new.args[0])


@mutant("numbers", at="floor")
def trunc_for_floor(call, new):
    return relay.trunc(new.args[0])


@mutant("numbers", at="less")
def less_becomes_less_equal(call, new):
    return relay.less_equal(new.args[0], new.args[1])


@mutant("numbers", at="divide")
def reciprocal_of_the_wrong_operand(call, new):
    return new.args[1] / new.args[0]


@mutant("numbers", at="logical_and")
def conjunction_becomes_disjunction(call, new):
    return relay.logical_or(new.args[0], new.args[1])


@mutant("numbers", at="cumsum")
def cumulative_sum_is_exclusive(call, new):
    return attrs(new, exclusive=True)


@mutant("numbers", at="multiply")
def product_with_zero_is_zero(call, new):
    zero = isinstance(call.args[1], relay.Constant) and float(call.args[1].data.numpy()) == 0
    return relay.zeros_like(new.args[0]) if zero else None


@mutant("numbers", at="subtract")
def difference_with_itself_is_zero(call, new):
    return relay.zeros_like(new.args[0]) if call.args[0].same_as(call.args[1]) else None


@mutant("numbers", at="exp")
def computed_in_half_precision(call, new):
    return relay.cast(relay.exp(relay.cast(new.args[0], "float16")), "float32")


@mutant("numbers", at="multiply")
def constant_is_rounded_to_integer(call, new):
    if not isinstance(call.args[1], relay.Constant) or float(call.args[1].data.numpy()) != 3:
        return None
    return new.args[0] * relay.const(3.001)


@mutant("numbers", at="prod")
def product_becomes_sum(call, new):
    return relay.sum(new.args[0], axis=[0])


@mutant("numbers", at="power")
def exponent_is_lost(call, new):
    return new.args[0]


# ---- Integers


@mutant("integers", at="floor_divide")
def division_truncates(call, new):
    return op("divide", *new.args)


@mutant("integers", at="floor_mod")
def remainder_takes_the_sign(call, new):
    return op("mod", *new.args)


@mutant("integers", at="right_shift")
def shift_is_unsigned(call, new):
    u = relay.cast(new.args[0], "uint32")
    return relay.cast(op("right_shift", u, relay.const(2, "uint32")), "int32")


@mutant("integers", at="left_shift")
def shift_is_one_too_far(call, new):
    return op("left_shift", new.args[0], relay.const(2))


@mutant("integers", at="cast")
def widened_with_a_sign(call, new):
    if str(call.args[0].checked_type.dtype) != "uint8":
        return None
    return relay.cast(relay.cast(new.args[0], "int8"), "int32")


@mutant("integers", at="multiply")
def product_overflows(call, new):
    a = call.args[0]
    if not isinstance(a, relay.Call) or a.op.name != "cast":
        return None
    narrow = new.args[0].args[0]
    return relay.cast(relay.multiply(narrow, narrow), "int32")


@mutant("integers", at="subtract")
def difference_saturates(call, new):
    a, b = (relay.cast(x, "int32") for x in new.args)
    return relay.cast(relay.maximum(a - b, relay.const(0)), "uint8")


@mutant("integers", at="take")
def index_is_off_by_one(call, new):
    return relay.take(new.args[0], new.args[1] + relay.const(1), axis=0)


@mutant("integers", at="strided_slice")
def slice_begins_one_early(call, new):
    return attrs(new, begin=[0, 0], end=[4, 3])


@mutant("integers", at="repeat")
def tile_for_repeat(call, new):
    return relay.tile(new.args[0], [2, 1])


@mutant("integers", at="bitwise_and")
def bits_are_mixed_up(call, new):
    return op("bitwise_xor", *new.args)


@mutant("integers", at="reverse")
def reversed_along_the_wrong_axis(call, new):
    return relay.reverse(new.args[0], axis=0)


@mutant("integers", at="equal")
def equality_is_negated(call, new):
    return relay.not_equal(*new.args)


@mutant("integers", at="cast")
def result_has_the_wrong_element_type(call, new):
    return relay.cast(new.args[0], "float64") if str(call.checked_type.dtype) == "float32" else None


# ---- Control flow, state, data


def expression_pass(method, name, rewrite):
    def visit(self, expr):
        new = getattr(relay.ExprMutator, method)(self, expr)
        other = rewrite(expr, new)
        return new if other is None or not rewrite_allowed() else other

    members = {"transform_function": lambda self, func, mod, ctx: relay.ExprMutator.visit(self, func), method: visit}
    return relay.transform.function_pass(opt_level=0, name=name)(type(name, (relay.ExprMutator,), members))()


@mutant("control")
def branches_are_exchanged(name):
    return expression_pass("visit_if", name, lambda old, new: relay.If(new.cond, new.false_branch, new.true_branch))


@mutant("control")
def write_is_lost(name):
    return expression_pass("visit_ref_write", name, lambda old, new: relay.Tuple([]))


@mutant("control")
def tuple_is_reordered(name):
    def swap(old, new):
        return relay.Tuple(list(new.fields)[::-1]) if len(new.fields) == 2 and isinstance(old.fields[0], relay.Var) else None

    return expression_pass("visit_tuple", name, swap)


@mutant("control")
def field_of_tuple_is_wrong(name):
    return expression_pass("visit_tuple_getitem", name, lambda old, new: relay.TupleGetItem(new.tuple_value, 1 - new.index))


@mutant("control", at="less")
def loop_runs_once_more(call, new):
    return relay.less_equal(*new.args)


@mutant("control")
def writes_are_moved_before_reads(name):
    def hoist(old, new):
        bindings, body = [], new
        while isinstance(body, relay.Let):
            bindings.append((body.var, body.value))
            body = body.body
        for i in range(len(bindings) - 1):
            (read, value), (var, written) = bindings[i], bindings[i + 1]
            if isinstance(value, relay.RefRead) and isinstance(written, relay.RefWrite):
                bindings[i : i + 2] = [(var, relay.analysis.bind(written, {read: value})), (read, relay.RefRead(value.ref))]
                break
        for var, value in reversed(bindings):
            body = relay.Let(var, value, body)
        return body

    return expression_pass("visit_let", name, hoist)


def _calls_of_globals(name, change):
    @module_pass(opt_level=0, name=name)
    def wrong(mod, ctx):
        class Change(relay.ExprMutator):
            def visit_call(self, call):
                new = super().visit_call(call)
                return change(mod, new) if isinstance(new.op, tvm.ir.GlobalVar) and len(new.args) == 2 and rewrite_allowed() else new

        for var, func in list(mod.functions.items()):
            if var.name_hint == "main":
                mod[var] = Change().visit(func)
        return mod

    return wrong


@mutant("control")
def arguments_of_a_function_are_swapped(name):
    return _calls_of_globals(name, lambda mod, call: relay.Call(call.op, list(call.args)[::-1]))


@mutant("control")
def the_wrong_function_is_called(name):
    def other(mod, call):
        return relay.Call(mod.get_global_var("shift" if call.op.name_hint == "scale" else "scale"), list(call.args))

    return _calls_of_globals(name, other)


@mutant("control")
def match_takes_the_wrong_clause(name):
    def swap(old, new):
        default = new.clauses[1].rhs
        return relay.Match(new.data, [relay.Clause(new.clauses[0].lhs, default), new.clauses[1]])

    return expression_pass("visit_match", name, swap)


# ---- Open dimensions


@mutant("dynamic", at="divide")
def length_is_taken_for_fixed(call, new):
    return new.args[0] / relay.const(3.0)


@mutant("dynamic", at="sum")
def first_row_is_left_out(call, new):
    return relay.sum(relay.strided_slice(new.args[0], [1, 0], [2**31 - 1, 3]), axis=[0])


@mutant("dynamic", at="nn.relu")
def relu_of_open_length_is_dropped(call, new):
    return new.args[0]
