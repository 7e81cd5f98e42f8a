# SPDX-License-Identifier: Apache-2.0
"""SemanticGuard: finds passes that change results, in every setting that passes run in, and raises no false alarm."""

import threading

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.guard import Checker, Sampler, compare_modules
from baton.guard.compare import EXACT, REASSOCIATING, beyond_noise, differences
from baton.guard.sample import KINDS, array_of, numpy_of
from baton.instrument import SemanticGuard, SemanticGuardError
from baton.transform import PassContext, Sequential, module_pass

EVERYTHING = """#[version = "0.0.5"]
type Tree[A] { Leaf(A), Node(Tree[A], Tree[A]) }
def @sum(%t: Tree[float32]) -> float32 {
  match (%t) { Leaf(%x) => %x, Node(%l, %r) => add(@sum(%l), @sum(%r)) }
}
def @loop(%n: int32, %x: Tensor[(?), float32]) -> Tensor[(?), float32] {
  if (less_equal(%n, 0)) { %x } else { @loop(subtract(%n, 1), add(%x, 1f)) }
}
def @main(%x: Tensor[(2, 3), float32], %p: (Tensor[(3), float16], bool), %d: Tensor[(?, 3), bfloat16], %r: ref(int32),
          %g: fn(Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32], %t: Tree[float32]) {
  let %u = ref_write(%r, add(ref_read(%r), 1));
  let %q = %p.0;
  (multiply(%g(%x), 2f), add(%q, %q), add(%d, %d), ref_read(%r), @sum(%t), @loop(3, nn.relu(reshape(%x, newshape=[-1]))))
}
"""


def swap(op, other, name="Bad"):
    """A function pass that takes one operator for another."""

    @relay.transform.function_pass(opt_level=0, name=name)
    class Swap(relay.ExprMutator):
        def transform_function(self, func, mod, ctx):
            return relay.ExprMutator.visit(self, func)

        def visit_call(self, call):
            new = super().visit_call(call)
            return relay.Call(relay.op.get(other), new.args, new.attrs) if call.op == relay.op.get(op) else new

    return Swap()


def parse(text):
    return relay.fromtext(text if text.startswith("#") else f'#[version = "0.0.5"]\n{text}')


SMALL = "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) { nn.relu(add(multiply(%x, 3f), %y)) }"


@pytest.mark.parametrize("sample", ["all", "changed", 3])
def test_every_kind_of_value_is_checked(sample):
    guard = SemanticGuard(sample=sample)
    with PassContext(opt_level=3, instruments=[guard]):
        mod = relay.transform.InferType()(parse(EVERYTHING))
        Sequential([relay.transform.FoldConstant(), relay.transform.EliminateCommonSubexpr(), relay.transform.ToANormalForm(),
                    relay.transform.DeadCodeElimination(), relay.transform.InferType()])(mod)  # fmt: skip
    assert not guard.findings and not guard.not_checked and sum(guard.checked.values()) > 0


@pytest.mark.parametrize("sample", ["all", "changed", 2, 5])
def test_names_the_first_pass_that_changes_a_result(sample):
    passes = [relay.transform.InferType(), relay.transform.FoldConstant(), swap("add", "subtract", "Wrong"),
              swap("nn.relu", "tanh", "WrongToo"), relay.transform.InferType()]  # fmt: skip
    with pytest.raises(SemanticGuardError, match=r"pass `Wrong` changed what @main computes") as error:
        with PassContext(opt_level=3, instruments=[SemanticGuard(sample=sample)]):
            Sequential(passes)(parse(SMALL))
    finding = error.value.finding
    assert (finding.pass_name, finding.function, finding.seed) == ("Wrong", "main", 0)
    assert finding.difference.path == "result" and len(finding.difference.where) == 2 and finding.difference.max_abs > 0
    x, y = (numpy_of(finding.inputs[name]) for name in "xy")
    assert finding.difference.before == pytest.approx(np.maximum(x * 3 + y, 0)[finding.difference.where])
    assert "add" in str(finding.before) and "subtract" in str(finding.after)
    assert finding.to_json()["pass"] == "Wrong"


def test_records_all_of_them():
    guard = SemanticGuard(mode="record")
    with PassContext(opt_level=3, instruments=[guard]):
        Sequential([swap("add", "subtract", "A"), relay.transform.InferType(), swap("nn.relu", "tanh", "B")])(parse(SMALL))
    assert [f.pass_name for f in guard.findings] == ["A", "B"], "the sequence around them is not to blame"
    assert "pass `A` changed" in guard.summary()


def test_module_passes_and_several_functions():
    mod = parse("def @f(%x: Tensor[(4), int32]) { add(%x, 1) }\ndef @main(%x: Tensor[(4), int32]) { multiply(@f(%x), 2) }")

    @module_pass(opt_level=0, name="Whole")
    def whole(mod, ctx):
        mod["f"] = swap("add", "subtract")(mod)["f"]
        return mod

    with pytest.raises(SemanticGuardError, match="changed what @f computes"):
        with PassContext(instruments=[SemanticGuard()]):
            whole(mod)


@pytest.mark.parametrize("threads", [1, 4])
def test_while_function_passes_run_in_parallel(threads):
    functions = "\n".join(f"def @f{i}(%x: Tensor[(8), float32]) {{ add(add(%x, 1f), multiply(2f, 3f)) }}" for i in range(24))
    guard = SemanticGuard(sample="changed")
    with PassContext(opt_level=3, num_threads=threads, instruments=[guard]):
        mod = relay.transform.InferType()(parse(functions))
        relay.transform.FoldConstant()(mod)
    assert not guard.findings and guard.checked["FoldConstant"] == 1


def test_in_nested_contexts_and_on_several_threads():
    guard = SemanticGuard(mode="record")

    def work():
        with PassContext(instruments=[guard]):
            with PassContext(opt_level=3):
                swap("add", "subtract", "Inner")(parse(SMALL))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [f.pass_name for f in guard.findings] == ["Inner"] * 4


def test_a_pass_that_throws_leaves_the_guard_as_it_was():
    @module_pass(opt_level=0, name="Throws")
    def throws(mod, ctx):
        raise KeyError("no")

    guard = SemanticGuard()
    with PassContext(instruments=[guard]):
        with pytest.raises(KeyError):
            throws(parse(SMALL))
        with pytest.raises(SemanticGuardError):
            swap("add", "subtract")(parse(SMALL))


@pytest.mark.parametrize(
    "text, why",
    [
        ("def @main(%x) { add(%x, %x) }", "no type"),
        ("def @main(%x: Tensor[(2), float8_e4m3fn]) { add(%x, 1f) }", "element type float8_e4m3fn"),
        ("def @f(%x: int32) -> int32 { @f(add(%x, 1)) }\ndef @main(%x: int32) { @f(%x) }", "more than 1000 calls"),
        ("def @main(%x: Tensor[(99999, 99999), float32]) { add(%x, 1f) }", "too large"),
    ],
)
def test_says_what_was_not_checked(text, why):
    guard = SemanticGuard(max_calls=1000)
    with PassContext(instruments=[guard]):
        swap("add", "maximum")(parse(text))
    assert not guard.findings and any(why in reason for _, _, reason in guard.not_checked), guard.not_checked


def test_a_pass_after_which_evaluation_fails_is_to_blame():
    mod = parse("def @main(%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[3, 2]) }")

    @module_pass(opt_level=0, name="Breaks")
    def breaks(mod, ctx):
        x = mod["main"].params[0]
        mod["main"] = relay.Function([x], relay.reshape(x, [5, 2]))
        return mod

    with pytest.raises(SemanticGuardError, match="evaluation fails after the pass"):
        with PassContext(instruments=[SemanticGuard()]):
            breaks(mod)


def test_passes_that_are_there_to_change_results_are_left_alone():
    guard = SemanticGuard(skip=["Wanted"])
    with PassContext(instruments=[guard]):
        swap("add", "subtract", "Wanted")(parse(SMALL))
    assert not guard.findings and not guard.checked
    guard = SemanticGuard(passes=["Other"])
    with PassContext(instruments=[guard]):
        swap("add", "subtract", "Wanted")(parse(SMALL))
    assert not guard.findings and not guard.checked


@pytest.mark.parametrize("type_, expression", [
    # Rounding differs, and is multiplied by what follows or decides between two numbers: no fault of the pass.
    ("Tensor[(64), float32]", "multiply(add(add(%x, 1000000f), -999999f), 3f)"),
    ("Tensor[(5), float32]", "multiply(add(add(%x, 1000000f), -999999f), 3f)"),
    ("float32", "multiply(add(add(%x, 1000000f), -999999f), 3f)"),
    ("Tensor[(64), float32]", "less(multiply(multiply(%x, 0.1f), 3f), multiply(%x, 0.3f))"),
    ("Tensor[(64), float32]", "multiply(subtract(divide(%x, 3f), multiply(%x, 0.3333333f)), 100000f)"),
    ("Tensor[(4, 64), float32]", "argmax(add(add(%x, 10000000f), -9999999f), axis=[1])"),
])  # fmt: skip
def test_no_alarm_where_rounding_explains_it(type_, expression):
    before = relay.transform.InferType()(parse(f"def @main(%x: {type_}) {{ {expression} }}"))
    guard = SemanticGuard()
    with PassContext(opt_level=3, config={"fp": "fast"}, instruments=[guard]):
        after = Sequential([relay.transform.SimplifyExpr(), relay.transform.InferType(), relay.transform.FoldConstant()])(before)
    assert not guard.not_checked and guard.checked["SimplifyExpr"] == guard.checked["FoldConstant"] == 1
    # That is worth something only where the results do differ by more than a tolerance allows.
    apart = 0
    for seed in range(8):
        value = Sampler("ordinary", seed).value(before["main"].params[0].checked_type)
        results = [relay.create_executor("debug", mod).evaluate()(value) for mod in (before, after)]
        apart += bool(differences(*results, REASSOCIATING))
    assert apart > 0
    # A change that rounding does not explain is found in the same program. (Errors of a single number, and what decides
    # between two, may be as large.)
    if type_ != "float32" and expression.startswith("multiply"):
        with pytest.raises(SemanticGuardError), PassContext(instruments=[SemanticGuard()]):
            swap("multiply", "add")(before)


def test_errors_that_round_to_nothing_prove_nothing():
    """The error drawn for an element may be lost in rounding; what it says of the others holds for that one too."""
    before, after = (tvm.nd.array(np.array(v, "float32")) for v in ([1.0] * 64, [1.1] * 64))
    moved = np.full(64, 1.1, "float32")
    moved[7] = 1.0
    noisy = [tvm.nd.array(moved)]
    assert beyond_noise(before, after, noisy, EXACT)[0].where == (7,), "one draw alone"
    assert not beyond_noise(before, after, noisy, EXACT, gross=True)
    far = tvm.nd.array(np.full(64, 1000.0, "float32"))
    assert beyond_noise(before, far, noisy, EXACT, gross=True), "far beyond what errors do to any element"
    few = [tvm.nd.array(np.ones(5, "float32")), tvm.nd.array(np.full(5, 1000.0, "float32"))]
    assert not beyond_noise(*few, few[:1], EXACT, gross=True), "five elements and one draw say too little"
    whole = [tvm.nd.array(np.full(64, v, "int64")) for v in (3, 900)]
    assert not beyond_noise(*whole, whole[:1], EXACT, gross=True), "an integer jumps"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_no_alarm_on_real_networks(name):
    """`bench/guard.py --models all` takes ten of them; here two of those that the onnx package has."""
    onnx = pytest.importorskip("onnx")
    from pathlib import Path

    from baton.driver.compiler import Source

    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    mod = Source.of(path).read({})
    guard = SemanticGuard(sample="changed")
    with PassContext(opt_level=3, instruments=[guard]):
        relay.optimize(mod, target="llvm")
    assert not guard.findings and not guard.not_checked and guard.checked["FuseOps"] == 1


def test_programs_for_devices_that_are_not_there():
    """What a program computes does not depend on where: the guard evaluates it on the host, and finds what is wrong with it."""
    text = """def @f(%a: Tensor[(4), float32]) -> Tensor[(4), float32] { exp(on_device(%a, device_type=2)) }
    def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
      let %a = on_device(add(%x, 1f), device_type=12);
      add(on_device(multiply(%a, 2f), device_type=2, is_fixed=True), @f(ones(shape=[4], dtype="float32")))
    }"""
    guard = SemanticGuard()
    with PassContext(opt_level=3, instruments=[guard]):
        planned = Sequential([relay.transform.InferType(), relay.transform.PlanDevices()])(parse(text))
    assert guard.checked["PlanDevices"] == 1 and not guard.not_checked and "device_copy" in planned.astext()
    with pytest.raises(SemanticGuardError, match="`Wrong` changed what @main computes"), PassContext(instruments=[SemanticGuard()]):
        swap("multiply", "maximum", "Wrong")(planned)


def test_a_guard_lets_go_of_values():
    guard = SemanticGuard(mode="record")
    with PassContext(instruments=[guard]):
        relay.transform.InferType()(parse(SMALL))
        assert guard._local.checker is not None
    assert guard._local.checker is None
    with PassContext(instruments=[guard]):
        swap("add", "subtract", "Later")(parse(SMALL))
    assert [f.pass_name for f in guard.findings] == ["Later"]


def test_noise_tells_rounding_from_change():
    x = relay.var("x", shape=(64,))
    big = relay.const(1e6)
    before = tvm.IRModule.from_expr(relay.Function([x], relay.subtract(relay.add(x, big), big)))
    same = tvm.IRModule.from_expr(relay.Function([x], relay.add(relay.subtract(x, big), big)))
    wrong = tvm.IRModule.from_expr(relay.Function([x], relay.add(relay.subtract(x, big), relay.const(1e6 + 50))))
    assert compare_modules(before, same)[0] is None, "x + c - c loses what x - c + c loses"
    found, _ = compare_modules(before, wrong)
    assert found is not None and found.difference.max_abs == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_the_same_for_a_seed_and_hold_what_they_promise(dtype, kind):
    type_ = relay.TensorType((8, 40), dtype)
    one, two, other = (numpy_of(Sampler(kind, seed).value(type_)) for seed in (1, 1, 2))
    assert np.array_equal(one, two, equal_nan=dtype not in ("bool",) and "int" not in dtype) and not np.array_equal(one, other)
    if "float" in dtype and kind == "special":
        assert np.isnan(one).any() and np.isinf(one).any() and (one == 0).any()
    if "float" in dtype and kind not in ("special",):
        assert np.isfinite(one).all()
    if kind == "extreme" and "int" in dtype:
        assert one.min() == np.iinfo(dtype).min and one.max() == np.iinfo(dtype).max


def test_tolerance_knows_the_element_type():
    for dtype, off, alarm in [("float32", 1e-6, False), ("float32", 1e-3, True), ("float64", 1e-6, True), ("float16", 1e-3, False),
                              ("bfloat16", 1e-3, False), ("float16", 0.1, True), ("int32", 1, True), ("bool", 1, True)]:  # fmt: skip
        a = np.ones(4)
        found = differences(array_of(a, dtype), array_of(a - off, dtype), EXACT)
        assert bool(found) == alarm, (dtype, off)
    nan = array_of(np.array([np.nan, np.inf, 1.0]), "float32")
    moved = array_of(np.array([np.inf, np.inf, 1.0]), "float32")
    assert not differences(nan, nan, EXACT) and differences(nan, moved, EXACT) and not differences(nan, moved, REASSOCIATING)


def test_large_numbers_that_stand_for_infinity():
    """An attention mask of -3.4e38: errors drawn at random make it infinite, which excuses nothing."""
    mask = 'multiply(subtract(1f, cast(minimum(%m, 2i64), dtype="float32")), -3.4028235e38f)'
    text = f"def @main(%x: Tensor[(4, 4), float32], %m: Tensor[(1, 4), int64]) {{{{ nn.softmax(add(%x, {mask}), axis={{0}}) }}}}"
    found, _ = compare_modules(parse(text.format(1)), parse(text.format(0)))
    assert found is not None and found.kind == "ordinary"
    ids = relay.TensorType((64,), "int64")
    assert numpy_of(Sampler("ordinary", 0).value(ids)).max() == 3
    assert numpy_of(Sampler("ordinary", 0).value(ids, name="attention_mask")).max() == 1


def test_what_does_not_change_is_not_computed_again():
    checker = Checker(kinds=["ordinary"])
    old = parse("def @main(%x: Tensor[(64), float32]) { %0 = exp(%x); %1 = tanh(%0); %2 = multiply(%1, 2f); nn.relu(%2) }")
    new = parse("def @main(%x: Tensor[(64), float32]) { %0 = exp(%x); %1 = tanh(%0); %2 = add(%1, %1); nn.relu(%2) }")
    found, why = checker.check(old, new)
    assert found is None and not why
    assert int(checker._counts(checker.session)[2]) == 5, "four operators, and the one that is new"


def _erf(x):
    import math

    return np.vectorize(math.erf, otypes=["float64"])(x)


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x, g, b):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


@pytest.mark.parametrize("kind", ["ordinary", "wide", "grid", "special"])
@pytest.mark.parametrize(
    "text, meaning",
    [
        ("%a: Tensor[(2, 3, 4), float32], %b: Tensor[(3, 1), float32] -> add(%a, %b)", np.add),
        ("%a: Tensor[(3, 1), float32], %b: Tensor[(2, 1, 4), float32] -> subtract(%a, %b)", np.subtract),
        ("%a: Tensor[(2, 3), float32], %b: float32 -> multiply(%a, %b)", np.multiply),
        ("%a: float32, %b: float32 -> divide(%a, %b)", np.divide),
        ("%a: Tensor[(2, 1, 3, 1), float32], %b: Tensor[(4, 1, 5), float32] -> divide(%a, %b)", np.divide),
        ("%a: Tensor[(9), float32] -> negative(%a)", np.negative),
        ("%a: Tensor[(5, 5), float32] -> sqrt(%a)", np.sqrt),
        ("%a: Tensor[(5, 5), float32] -> exp(%a)", np.exp),
        ("%a: Tensor[(5, 5), float32] -> tanh(%a)", np.tanh),
        ("%a: Tensor[(5, 5), float32] -> erf(%a)", _erf),
        ("%a: Tensor[(2, 3, 4), float32] -> transpose(%a)", np.transpose),
        ("%a: Tensor[(2, 3, 4, 5), float32] -> transpose(%a, axes=[0, -1, 1, 2])", lambda a: a.transpose(0, 3, 1, 2)),
        ("%a: Tensor[(4), float32] -> transpose(%a)", np.transpose),
        ("%a: Tensor[(2, 35, 3, 18), float32] -> transpose(%a, axes=[2, 3, 0, 1])", lambda a: a.transpose(2, 3, 0, 1)),
        ("%a: Tensor[(2, 3, 7), float32] -> nn.softmax(%a, axis=-1)", _softmax),
        ("%a: Tensor[(3, 8), float32], %g: Tensor[(8), float32], %b: Tensor[(8), float32] -> nn.layer_norm(%a, %g, %b)", _layer_norm),
        ("%a: Tensor[(3, 0), float32], %b: Tensor[(1, 0), float32] -> add(%a, %b)", np.add),
        ("%a: Tensor[(7, 5), float32], %b: Tensor[(9, 5), float32] -> nn.dense(%a, %b)", lambda a, b: a @ b.T),
        ("%a: Tensor[(5), float32], %b: Tensor[(17, 5), float32] -> nn.dense(%a, %b, units=17)", lambda a, b: b @ a),
        ("%a: Tensor[(2, 3, 5), float32], %b: Tensor[(8, 5), float32] -> nn.dense(%a, %b, out_dtype=\"float32\")", lambda a, b: a @ b.T),
        (
            "%a: Tensor[(2, 3, 5), float32], %b: Tensor[(3, 5, 6), float32] -> nn.contrib_dense_pack(%a, %b, units=17)",
            lambda a, b: a @ b.transpose(1, 0, 2).reshape(5, 18)[:, :17],
        ),
        ("%a: Tensor[(1, 5), float32], %b: Tensor[(2, 5, 16), float32] -> nn.contrib_dense_pack(%a, %b)", lambda a, b: a @ b.transpose(1, 0, 2).reshape(5, 32)),
        ("%a: Tensor[(3, 7, 5), float32], %b: Tensor[(3, 9, 5), float32] -> nn.batch_matmul(%a, %b)", lambda a, b: a @ b.transpose(0, 2, 1)),
        (
            "%a: Tensor[(3, 5, 7), float32], %b: Tensor[(3, 5, 9), float32] -> nn.batch_matmul(%a, %b, transpose_a=True, transpose_b=False)",
            lambda a, b: a.transpose(0, 2, 1) @ b,
        ),
        ("%a: Tensor[(2, 3, 4), float32] -> sum(%a)", lambda a: a.sum()),
        ("%a: Tensor[(2, 3, 4), float32] -> sum(%a, axis=[-1, 0])", lambda a: a.sum((0, 2))),
        ("%a: Tensor[(2, 3, 4), float32] -> sum(%a, axis=[1], keepdims=True)", lambda a: a.sum(1, keepdims=True)),
        ("%a: Tensor[(2, 3, 4), float32] -> sum(%a, axis=[1], exclude=True)", lambda a: a.sum((0, 2))),
        ("%a: Tensor[(2, 3, 4), float32] -> sum(%a, axis=[])", lambda a: a),
        ("%a: Tensor[(2, 3, 4), float32], %i: Tensor[(2, 2), int64] -> take(%a, %i, axis=1)", lambda a, i: a.take(i.astype(int), 1, mode="clip")),
        ("%a: Tensor[(3, 4), float32], %i: int32 -> take(%a, %i, axis=-2)", lambda a, i: a.take(int(i), 0, mode="clip")),
        (
            "%a: Tensor[(9, 2), float32], %i: Tensor[(50), int64] -> take(%a, %i, axis=0, mode=\"negative\")",
            lambda a, i: a[np.clip(np.where(i < 0, i + 9, i), 0, 8).astype(int)],
        ),
        ("%a: Tensor[(3, 4), float32], %i: Tensor[(5), int64] -> take(%a, %i, axis=0, mode=\"wrap\")", lambda a, i: a.take(i.astype(int), 0, mode="wrap")),
        ("%a: Tensor[(5, 6), float32] -> strided_slice(%a, begin=[1, -4], end=[4, 100], strides=[1, 2])", lambda a: a[1:4, -4::2]),
        ("%a: Tensor[(5, 6), float32] -> strided_slice(%a, begin=[-9], end=[-1], strides=[9], axes=[-1])", lambda a: a[:, 0:5:9]),
        ("%a: Tensor[(5, 6), float32] -> strided_slice(%a, begin=[4], end=[0], strides=[-1])", lambda a: a[4:0:-1]),
        ("%a: Tensor[(5, 6), float32] -> strided_slice(%a, begin=[1, 1], end=[2, -1], slice_mode=\"size\")", lambda a: a[1:3, 1:]),
    ],
)
def test_operators_in_plain_loops(text, meaning, kind):
    params, body = text.split(" -> ")
    mod = relay.transform.InferType()(parse(f"def @main({params}) {{ {body} }}"))
    checker = Checker()
    args, _ = checker.sample([p.checked_type for p in mod["main"].params], kind, [])
    got = checker.evaluate(mod["main"], args, mod).value
    with np.errstate(all="ignore"):
        want = meaning(*[numpy_of(a).astype("float64") for a in args])
        assert tuple(got.shape) == want.shape and got.dtype == "float32"
        if kind == "special":  # what overflows or is lost in float32 is not the question
            small = np.abs(want) < 1e30
            np.testing.assert_array_equal(np.isnan(numpy_of(got)), np.isnan(want))
            np.testing.assert_allclose(numpy_of(got)[small], want[small], rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_allclose(numpy_of(got), want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("call", [
    "transpose(%a, axes=[0, 0])", "transpose(%a, axes=[0, 2])", "nn.dense(%a, %w)", "sum(%a, axis=[2])",
    "strided_slice(%a, begin=[0, 0], end=[1])", "strided_slice(%a, begin=[0, 0], end=[1, 1], axes=[0, 0])", "take(%a, %i, axis=2)",
    "nn.contrib_dense_pack(%a, %w, units=6)", "nn.contrib_dense_pack(%a, %w, units=1)", "nn.contrib_dense_pack(%a, %w, units=7)",
    "nn.batch_matmul(%w, %w, transpose_b=False)",
])  # fmt: skip
def test_operators_that_are_wrong_are_not_evaluated(call):
    """What a broken pass leaves has not been type-checked: nothing outside of the tensors is read."""
    mod = parse(f"def @main(%a: Tensor[(3, 4), float32], %w: Tensor[(2, 4, 2), float32], %i: Tensor[(2), int64]) {{ {call} }}")
    checker = Checker()
    args, _ = checker.sample([p.type_annotation for p in mod["main"].params], "ordinary", [])
    got = checker.evaluate(mod["main"], args, mod)
    assert got.value is None and got.error and got.fault


def test_products_are_the_same_to_the_bit_wherever_the_weights_lie():
    """PackDense moves weights only: what it gives is what is known already, and nothing behind it is computed again."""
    old = parse("def @main(%x: Tensor[(33, 70), float32], %w: Tensor[(50, 70), float32]) { nn.relu(nn.dense(%x, %w)) }")
    weights = np.random.default_rng(0).standard_normal((50, 70)).astype("float32")
    old = tvm.IRModule.from_expr(relay.Function([old["main"].params[0]], relay.bind(old["main"].body, {old["main"].params[1]: relay.const(weights)})))
    old = relay.transform.InferType()(old)
    with tvm.target.Target("llvm"):
        new = Sequential([relay.transform.PackDense()])(old)
    assert "nn.contrib_dense_pack" in str(new)
    checker = Checker(kinds=["ordinary"])
    assert checker.check(old, new, "PackDense") == (None, [])
    assert int(checker._counts(checker.session)[2]) == 3, "dense, relu, and dense again"


def test_prim_funcs():
    te = tvm.te
    a = te.placeholder((8, 16), name="A")
    b = te.compute((8, 16), lambda i, j: te.exp(a[i, j]) * 2.0 + 1.0, name="B")
    k = te.reduce_axis((0, 16), name="k")
    mod = tvm.IRModule({"main": te.create_prim_func([a, te.compute((8,), lambda i: te.sum(b[i, k], axis=k), name="C")])})
    guard = SemanticGuard()
    names = ["StorageFlatten", "Simplify", "VectorizeLoop", "UnrollLoop", "LowerIntrin", "StorageRewrite"]
    with PassContext(instruments=[guard]):
        tvm.transform.parse_pipeline(",".join("tir." + name for name in names))(mod)
    assert not guard.findings and not guard.not_checked and guard.checked["LowerIntrin"] == 1

    @module_pass(opt_level=0, name="OtherLoops")
    def other(mod, ctx):
        c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")
        return tvm.IRModule({"main": te.create_prim_func([a, c])})

    with pytest.raises(SemanticGuardError, match="`OtherLoops` changed what @main computes"):
        with PassContext(instruments=[SemanticGuard()]):
            other(mod)
    result = tvm.bisect(mod, [other])
    assert result.found and result.pass_name == "OtherLoops" and result.calls is None


@pytest.mark.parametrize("wrong", [{"mode": "loud"}, {"sample": "some"}, {"sample": 0}, {"sample": True}, {"kinds": ["odd"]},
                                   {"passes": "FoldConstant"}, {"skip": [1]}])  # fmt: skip
def test_wrong_options_are_said(wrong):
    with pytest.raises((ValueError, TypeError)):
        SemanticGuard(**wrong)
