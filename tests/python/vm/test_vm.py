# SPDX-License-Identifier: Apache-2.0
"""Programs on the virtual machine against the interpreter, which runs operator by operator."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import baton
from baton import relay
from baton.runtime.container import ADT
from baton.runtime.vm import Executable, VirtualMachine

HEAD = '#[version = "0.0.5"]\n'
LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
N, X = np.int64(6), np.array([1.5, -2.0], "float32")

# name: (program, arguments of main)
PROGRAMS = {
    "if": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  if (less(%n, 3i64)) { add(%x, 1f) } else { multiply(%x, 2f) }
}""",
        [(np.int64(1), X), (np.int64(5), X)],
    ),
    "nested if shares a value": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  %0 = exp(%x);
  %1 = if (less(%n, 3i64)) { if (less(%n, 1i64)) { %0 } else { add(%0, 1f) } } else { multiply(%0, %x) };
  add(%1, %0)
}""",
        [(np.int64(0), X), (np.int64(2), X), (np.int64(5), X)],
    ),
    "loop": (
        """
def @loop(%n: Tensor[(), int64], %a: Tensor[(2), float32], %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  if (equal(%n, 0i64)) { %a } else { @loop(subtract(%n, 1i64), add(%a, %x), %x) }
}
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) { @loop(%n, zeros_like(%x), %x) }""",
        [(N, X)],
    ),
    "mutual recursion": (
        """
def @even(%n: Tensor[(), int64]) -> Tensor[(), bool] { if (equal(%n, 0i64)) { True } else { @odd(subtract(%n, 1i64)) } }
def @odd(%n: Tensor[(), int64]) -> Tensor[(), bool] { if (equal(%n, 0i64)) { False } else { @even(subtract(%n, 1i64)) } }
def @main(%n: Tensor[(), int64]) { (@even(%n), @odd(%n)) }""",
        [(N,), (np.int64(7),)],
    ),
    "recursion that is no loop": (
        """
def @fact(%n: Tensor[(), int64]) -> Tensor[(), int64] {
  if (less(%n, 2i64)) { 1i64 } else { multiply(%n, @fact(subtract(%n, 1i64))) }
}
def @main(%n: Tensor[(), int64]) { @fact(%n) }""",
        [(N,)],
    ),
    "closures capture": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %y = exp(%x);
  let %f = fn (%a: Tensor[(2), float32]) { add(add(%a, %y), %x) };
  let %g = fn (%h: fn (Tensor[(2), float32]) -> Tensor[(2), float32], %b: Tensor[(2), float32]) { %h(%h(%b)) };
  %g(%f, %y)
}""",
        [(N, X)],
    ),
    "a closure names a value that it does not read": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %r = ref(%x);
  let %v = ref_read(%r);
  %2 = if (less(%n, 3i64)) { %v } else { exp(%x) };
  let %q = ref(%2);
  let %go = fn (%i: Tensor[(), int64], %a: Tensor[(2), float32]) -> Tensor[(2), float32] {
    let %w = %2;
    let %inner = fn (%b: Tensor[(2), float32]) { let %u = %2; multiply(%b, 2f) };
    if (equal(%i, 0i64)) { %a } else { %go(subtract(%i, 1i64), %inner(%a)) }
  };
  add(%go(%n, %x), ref_read(%q))
}""",
        [(N, X), (np.int64(1), X)],
    ),
    "a closure calls itself": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %step = multiply(%x, 0.5f);
  let %go = fn (%i: Tensor[(), int64], %a: Tensor[(2), float32]) -> Tensor[(2), float32] {
    if (equal(%i, 0i64)) { %a } else { %go(subtract(%i, 1i64), add(%a, %step)) }
  };
  %go(%n, %x)
}""",
        [(N, X)],
    ),
    "a closure in a closure": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %add = fn (%a: Tensor[(2), float32]) {
    fn (%b: Tensor[(2), float32]) { add(add(%a, %b), %x) }
  };
  let %plus = %add(exp(%x));
  (%plus(%x), %plus(%plus(%x)))
}""",
        [(N, X)],
    ),
    "a closure has another name for a value around it, and does not read it": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %v = maximum(%x, 1f);
  %0 = fn (%p: Tensor[(2), float32]) -> Tensor[(2), float32] { let %w = %v; negative(%p) };
  %1 = fn (%p: Tensor[(2), float32]) -> Tensor[(2), float32] { let %w = { let %u = exp(%p); %v }; negative(%p) };
  let %go = fn (%i: Tensor[(), int64]) -> Tensor[(2), float32] {
    let %again = %go;
    let %in = fn (%p: Tensor[(2), float32]) -> Tensor[(2), float32] { let %w = %v; exp(%p) };
    if (equal(%i, 0i64)) { %in(%x) } else { %go(subtract(%i, 1i64)) }
  };
  maximum(%0(%x), maximum(%1(%x), %go(%n)))
}""",
        [(N, X)],
    ),
    "what is done before a value, within an annotation": (
        LIST
        + """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  %0 = Cons(%x, Nil);
  %1 = fn (%i: Tensor[(), int64], %s: List[Tensor[(2), float32]]) -> List[Tensor[(2), float32]] {
    %2 = ref(%0);
    let %w = on_device({ let %v = on_device(ref_read(%2), device_type=1, is_fixed=True); %s }, device_type=1, is_fixed=True);
    %w
  };
  match (%1(%n, %0)) { Cons(%h, _) => { add(%h, 1f) }, Nil => { %x } }
}""",
        [(N, X)],
    ),
    "a function is chosen": (
        """
def @f(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { add(%x, 1f) }
def @g(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { multiply(%x, 3f) }
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %h = if (less(%n, 3i64)) { @f } else { @g };
  %h(%x)
}""",
        [(np.int64(1), X), (np.int64(5), X)],
    ),
    "tuples": (
        """
def @main(%t: (Tensor[(2), float32], (Tensor[(2), float32], Tensor[(2), float32]))) {
  let %p = (%t.1, exp(%t.0));
  let %q = %p.0;
  let %s = split(concatenate((%q.0, %q.1, %p.1)), indices_or_sections=3);
  (%s.1, (%p.1, add(%s.0, %s.2)), ())
}""",
        [((X, (X + 1, X * 2)),)],
    ),
    "references": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2), float32]) {
  let %r = ref(%x);
  let %go = fn (%i: Tensor[(), int64]) -> () {
    if (equal(%i, 0i64)) { () } else {
      let %_ = ref_write(%r, add(ref_read(%r), 1f));
      %go(subtract(%i, 1i64))
    }
  };
  let %before = ref_read(%r);
  let %_ = %go(%n);
  (%before, ref_read(%r))
}""",
        [(N, X)],
    ),
    "lists": (
        LIST
        + """
def @sum(%l: List[Tensor[(), int64]]) -> Tensor[(), int64] {
  match (%l) { Cons(%h, %t) => { add(%h, @sum(%t)) }, Nil => { 0i64 } }
}
def @upto(%n: Tensor[(), int64]) -> List[Tensor[(), int64]] {
  if (equal(%n, 0i64)) { Nil() } else { Cons(%n, @upto(subtract(%n, 1i64))) }
}
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil() } }
}
def @main(%n: Tensor[(), int64]) { @sum(@map(fn (%a: Tensor[(), int64]) { multiply(%a, %a) }, @upto(%n))) }""",
        [(N,)],
    ),
    "nested patterns": (
        LIST
        + """
def @second(%p: (List[Tensor[(), int64]], Tensor[(), int64])) -> Tensor[(), int64] {
  match (%p) {
    (Cons(_, Cons(%b, _)), _) => { %b },
    (Cons(%a, Nil), %n) => { add(%a, %n) },
    (_, %n) => { %n }
  }
}
def @main(%n: Tensor[(), int64]) {
  (@second((Cons(1i64, Cons(2i64, Nil())), %n)), @second((Cons(1i64, Nil()), %n)), @second((Nil(), %n)))
}""",
        [(N,)],
    ),
    "a constructor as a function": (
        LIST
        + """
def @apply[A, B](%f: fn (A, List[A]) -> List[A], %a: A, %b: B) -> List[A] { %f(%a, Nil()) }
def @main(%n: Tensor[(), int64]) {
  match (@apply(fn (%h: Tensor[(), int64], %t: List[Tensor[(), int64]]) { Cons(%h, %t) }, %n, %n)) { Cons(%h, _) => { add(%h, 1i64) }, Nil => { %n } }
}""",
        [(N,)],
    ),
    "dynamic shapes": (
        """
def @main(%a: Tensor[(?, 3), float32], %n: Tensor[(), int64]) {
  let %b = tanh(add(%a, 1f));
  let %c = if (less(%n, 3i64)) { %b } else { concatenate((%b, %b)) };
  (nn.softmax(%c), sum(%c, axis=[0]))
}""",
        [(np.ones((2, 3), "float32"), np.int64(1)), (np.arange(12, dtype="float32").reshape(4, 3), np.int64(5)), (np.zeros((0, 3), "float32"), np.int64(5))],
    ),
    "shapes that depend on values": (
        """
def @main(%a: Tensor[(?), float32]) {
  let %i = argwhere(greater(%a, 0f));
  (%i, shape_of(%i))
}""",
        [(np.array([1, -1, 2], "float32"),), (np.array([-1.0], "float32"),)],
    ),
    "a view between kernels": (
        """
def @main(%n: Tensor[(), int64], %x: Tensor[(2, 6), float32]) {
  %0 = reshape(%x, newshape=[3, 4]);
  if (less(%n, 3i64)) { %0 } else { reshape(exp(%0), newshape=[3, 4]) }
}""",
        [(np.int64(1), np.ones((2, 6), "float32")), (np.int64(5), np.ones((2, 6), "float32"))],
    ),
}


def parse(text):
    return baton.parser.fromtext(HEAD + text)


def plain(value):
    if isinstance(value, baton.nd.NDArray):
        return value.numpy()
    return tuple(plain(v) for v in value)


def same(got, want):
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    else:
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def compiled():
    cache = {}

    def get(name):
        if name not in cache:
            cache[name] = relay.vm.compile(parse(PROGRAMS[name][0]), target="llvm")
        return cache[name]

    return get


CASES = [pytest.param(name, args, id=f"{name} {i}") for name, (_, runs) in PROGRAMS.items() for i, args in enumerate(runs)]


@pytest.mark.parametrize("name, args", CASES)
def test_gives_what_the_interpreter_gives(name, args, compiled, tmp_path):
    mod = parse(PROGRAMS[name][0])
    want = plain(relay.create_executor("debug", mod).evaluate()(*args))
    machine = VirtualMachine(compiled(name), baton.cpu())
    same(plain(machine.invoke("main", *args)), want)
    same(plain(machine.invoke("main", *args)), want)
    same(plain(relay.create_executor("vm", mod).evaluate()(*args)), want)
    compiled(name).export_library(str(tmp_path / "program.so"))
    loaded = VirtualMachine(Executable.load_exec(str(tmp_path / "program.so")), baton.cpu())
    same(plain(loaded.invoke("main", *args)), want)


def test_a_call_in_tail_position_takes_no_memory(compiled):
    machine = VirtualMachine(compiled("loop"), baton.cpu())
    out = machine.invoke("main", np.int64(300_000), X)
    np.testing.assert_allclose(out.numpy(), X * 300_000, rtol=1e-5)


def test_a_million_levels_deep(compiled):
    # Builds a list of a million elements and sums it, both by recursion that is no loop.
    machine = VirtualMachine(compiled("lists"), baton.cpu())
    n = 1_000_000
    assert machine.invoke("sum", machine.invoke("upto", np.int64(n))).item() == n * (n + 1) // 2


def test_recursion_without_a_base_case():
    mod = parse("""
def @f(%n: Tensor[(), int64]) -> Tensor[(), int64] { add(1i64, @f(add(%n, 1i64))) }
def @main(%n: Tensor[(), int64]) { if (less(%n, 0i64)) { %n } else { @f(%n) } }""")
    machine = VirtualMachine(relay.vm.compile(mod, target="llvm"), baton.cpu())
    with pytest.raises(baton.Error, match="`f` is called .* levels deep.*base case"):
        machine.invoke("main", np.int64(0))
    assert machine.invoke("main", np.int64(-4)).item() == -4, "the machine is usable after it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("def @f(%n: int32) -> int32 { add(1, @f(add(%n, 1))) }\ndef @main(%n: int32) { if (less(%n, 0)) { %n } else { @f(%n) } }", "f"),
        ("def @main(%n: int32) { let %g = fn (%m: int32) -> int32 { add(1, %g(add(%m, 1))) }; if (less(%n, 0)) { %n } else { %g(%n) } }", "%g"),
    ],
    ids=["global", "closure"],
)
def test_the_interpreter_names_a_recursion_without_a_base_case(body, name):
    executor = relay.create_executor("debug", parse("\n" + body)).evaluate()
    with pytest.raises(baton.Error, match=f"`{name}` is called .* levels deep.*base case"):
        executor(np.int32(0))
    assert executor(np.int32(-4)).item() == -4, "it is usable after it"


@pytest.mark.slow
def test_the_interpreter_takes_a_million_levels():
    mod = parse("\ndef @main(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { add(1, @main(subtract(%n, 1))) } }")
    assert relay.create_executor("debug", mod).evaluate()(np.int32(1_000_000)).item() == 1_000_000


def test_data_goes_in_and_out(compiled):
    machine = VirtualMachine(compiled("lists"), baton.cpu())
    mod = parse(PROGRAMS["lists"][0])
    cons, nil = (c.tag for c in mod.type_definitions[mod.get_global_type_var("List")].constructors)
    value = ADT(cons, [baton.nd.array(np.int64(5)), ADT(cons, [baton.nd.array(np.int64(7)), ADT(nil)])])
    assert machine.invoke("sum", value).item() == 12
    out = machine.invoke("upto", np.int64(2))
    assert isinstance(out, ADT) and out.tag == cons and len(out) == 2 and out[0].item() == 2
    assert out[1][1].tag == nil and len(out[1][1]) == 0 and "ADT(...)" in repr(out)
    with pytest.raises(IndexError):
        out[2]


def test_errors_say_what_to_mend(compiled):
    machine = VirtualMachine(compiled("if"), baton.cpu())
    with pytest.raises(AttributeError, match="no function `mainn`.*did you mean `main`"):
        machine.invoke("mainn", N, X)
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        machine.invoke("main", N)
    with pytest.raises(ValueError, match=r"input 1 `x`: expected float32\[2\], got float32\[3\]"):
        machine.invoke("main", N, np.zeros(3, "float32"))
    with pytest.raises(TypeError, match="no parameter `y`"):
        machine.invoke("main", N, y=X)
    lists = VirtualMachine(compiled("lists"), baton.cpu())
    with pytest.raises(baton.Error, match="no value of a data type"):
        lists.invoke("sum", baton.nd.array(X))
    mod = parse(PROGRAMS["lists"][0])
    cons, nil = (c.tag for c in mod.type_definitions[mod.get_global_type_var("List")].constructors)
    wrong = ADT(cons, [baton.nd.array(X), ADT(nil)])
    with pytest.raises(baton.Error, match=r"given float32\[2\] where int64\[\] is expected|given runtime.ADT"):
        lists.invoke("sum", wrong)


def test_no_clause_fits():
    mod = parse(
        LIST
        + """
def @main(%n: Tensor[(), int64]) {
  let %l = if (less(%n, 3i64)) { Nil() } else { Cons(%n, Nil()) };
  match? (%l) { Cons(%h, _) => { %h } }
}"""
    )
    machine = VirtualMachine(relay.vm.compile(mod, target="llvm"), baton.cpu())
    assert machine.invoke("main", np.int64(5)).item() == 5
    with pytest.raises(baton.Error, match="no clause of the match fits"):
        machine.invoke("main", np.int64(1))


def test_one_executable_serves_many_threads(compiled):
    exe = compiled("recursion that is no loop")
    wrong = []

    def work():
        machine = VirtualMachine(exe, baton.cpu())
        for n in range(1, 12):
            want = 1
            for i in range(2, n + 1):
                want *= i
            if machine.invoke("main", np.int64(n)).item() != want:
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_program_of_known_shapes_runs_without_the_compiler(compiled, tmp_path):
    path = tmp_path / "loop.so"
    compiled("loop").export_library(str(path))
    code = f"""
import numpy as np
import baton
from baton.runtime.vm import Executable, VirtualMachine
machine = VirtualMachine(Executable.load_exec({str(path)!r}), baton.cpu())
x = baton.nd.array(np.array([1.5, -2.0], "float32"))
out = machine._call("main", baton.nd.array(np.int64(4)), x).numpy()
assert (out == [6, -8]).all(), out
maps = open("/proc/self/maps").read()
assert "libbaton_vm" in maps and "libbaton.so" not in maps and "libLLVM" not in maps
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_cut_and_changed_files_are_refused(compiled, tmp_path):
    path = tmp_path / "program.so"
    compiled("lists").export_library(str(path))
    data = path.read_bytes()
    for cut in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(baton.Error, match="cannot load"):
            Executable.load_exec(str(path))


def test_bytecode_reads_well(compiled):
    text = compiled("loop").bytecode
    assert "loop: 3 parameters" in text and "tail_call @loop" in text and "jump_if_false" in text


def test_equal_stretches_are_compiled_once():
    """Of functions that differ in names alone; not of those that differ in a constant, a shape or a dtype."""
    body = "if (%c) {{ multiply(%x, {k}) }} else {{ %x }}"
    functions = [
        ("a", "(2), float32", "0.5f"),
        ("b", "(2), float32", "0.5f"),
        ("c", "(2), float32", "0.25f"),
        ("d", "(3), float32", "0.5f"),
        ("e", "(2), float64", "0.5f64"),
    ]
    text = "".join(f"def @{name}(%c: bool, %x: Tensor[{t}]) {{ {body.format(k=k)} }}\n" for name, t, k in functions)
    exe = relay.vm.compile(relay.fromtext(HEAD + text), target="llvm")
    assert {f"baton_region_{i}" for i in range(5) if f"baton_region_{i} " in exe.bytecode} == {f"baton_region_{i}" for i in range(4)}
    machine = VirtualMachine(exe, baton.cpu())
    for name, _, k in functions:
        x = np.ones(3 if name == "d" else 2, "float64" if name == "e" else "float32")
        np.testing.assert_array_equal(machine.invoke(name, np.bool_(True), x).numpy(), x * float(k[:-1].removesuffix("f6")))


def test_graph_executor_functions(compiled):
    from baton.contrib import graph_executor

    model = graph_executor.GraphModule(compiled("if").mod["default"](baton.cpu()))
    model.set_input("n", np.int64(1))
    model.set_input("x", X)
    model.run()
    np.testing.assert_allclose(model.get_output(0).numpy(), X + 1)
    assert model.get_num_inputs() == 2 and model.get_num_outputs() == 1


def test_functions_that_bind_the_same_variable():
    """As LambdaLift makes them of a value that a function and a closure in it share."""
    x, v = relay.var("x", shape=(2,)), relay.var("v", shape=(2,))
    y = relay.var("y", shape=(2,))
    mod = baton.IRModule()
    mod["f"] = relay.Function([y], relay.Let(v, relay.exp(y), relay.add(v, v)))
    mod["main"] = relay.Function([x], relay.Let(v, relay.negative(x), relay.If(relay.less(relay.sum(v), relay.const(0.0)), v, mod.get_global_var("f")(v))))
    machine = VirtualMachine(relay.vm.compile(mod, target="llvm"), baton.cpu())
    np.testing.assert_allclose(machine.invoke("main", X * X).numpy(), -X * X)
    np.testing.assert_allclose(machine.invoke("main", -X * X).numpy(), 2 * np.exp(X * X), rtol=1e-6)


@pytest.mark.parametrize(
    "body, want",
    [
        ("let %f = fn (%p: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] { exp(%p) }; let %y = %f(%x); %f(%y)", lambda x: np.exp(np.exp(x))),
        ("let %f = fn (%p: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] { let %z = exp(%p); add(%z, %z) }; %f(%x)", lambda x: 2 * np.exp(x)),
        ("let %f = fn (%p: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] { exp(%p) }; @twice(%f, %f(%x))", lambda x: np.exp(np.exp(np.exp(x)))),
        ("@twice(fn (%p: Tensor[(3), float32], Primitive=1) -> Tensor[(3), float32] { negative(%p) }, %x)", lambda x: x),
    ],
)
def test_fused_groups_may_be_named_and_given(body, want):
    mod = relay.fromtext(f"""#[version = "0.0.5"]
        def @twice[A](%f: fn (A) -> A, %x: A) -> A {{ %f(%f(%x)) }}
        def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] {{ {body} }}""")
    x = np.array([0.5, -1, 0.25], "float32")
    for kind in ("debug", "vm"):
        np.testing.assert_allclose(relay.create_executor(kind, mod).evaluate()(x).numpy(), want(x), rtol=1e-5)


def test_operators_beside_bare_constructors_are_fused():
    """Type inference writes type arguments into `N`; what stands beside it keeps its types, constants too."""
    mod = relay.fromtext("""#[version = "0.0.5"]
        type L[A] { C(A), N, }
        def @main(%n: int64, %c: bool) { if (%c) { N } else { C(subtract(%n, 1i64)) } }""")
    assert "Primitive=1" in relay.transform.FuseOps()(relay.transform.InferType()(mod)).astext()
    assert relay.create_executor("vm", mod).evaluate()(np.int64(3), False)[0].item() == 2


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("%x", "x"),
        ("(%x,)", ["x"]),
        ("(exp(%x),)", ["x"]),
        ("(%x, %x)", ["x", "x"]),
        ("((%x,),)", [["x"]]),
        ("((%x, exp(%x)), %x)", [["x", "x"], "x"]),
        ("let %t = (%x,); %t", ["x"]),
    ],
)
@pytest.mark.parametrize("executor", ["vm", "debug", None])
def test_results_keep_their_tuples(body, shape, executor):
    """Of programs without control flow, too: a row of one is no array."""
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { ' + body + " }")
    x = np.ones(2, "float32")
    if executor:
        value = relay.create_executor(executor, mod, target="llvm").evaluate()(x)
    else:
        value = VirtualMachine(relay.vm.compile(mod, target="llvm"), baton.cpu()).invoke("main", x)

    def shape_of(v):
        return "x" if isinstance(v, baton.nd.NDArray) else [shape_of(f) for f in v]

    assert shape_of(value) == shape


def test_results_are_not_memory_of_the_caller():
    """Inputs are read where they are; what a result has of them is a copy."""
    text = """
def @main(%c: Tensor[(), bool], %x: Tensor[(6), float32]) {
  if (%c) { (reshape(%x, newshape=[2, 3]), %x) } else { (reshape(nn.relu(%x), newshape=[2, 3]), %x) }
}"""
    model = baton.compile(HEAD + text)
    x = np.arange(6, dtype="float32")
    shaped, same = model(np.array(True), x)
    x[:] = -1
    np.testing.assert_array_equal(shaped.numpy(), np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(same.numpy(), np.arange(6))


def test_inputs_of_a_call_are_forgotten_after_it(compiled):
    """They are the caller's; a run without arguments needs inputs that were set."""
    from baton.contrib import graph_executor

    module = compiled("if").mod["default"](baton.cpu())
    model = graph_executor.GraphModule(module)
    module["call"](baton.nd.array(np.int64(1)), X)
    with pytest.raises(ValueError, match="it has not been set"):
        model.run()


@pytest.mark.parametrize("end_to_end", [False, True])
def test_benchmark_takes_what_the_graph_executor_takes(end_to_end):
    x = relay.var("x", shape=(4,))
    machine = baton.runtime.vm.VirtualMachine(relay.vm.compile(baton.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm"), baton.cpu())
    given = baton.nd.array(np.ones(4, "float32"))
    times = machine.benchmark(baton.cpu(), given, func_name="main", repeat=3, number=2, min_repeat_ms=1, end_to_end=end_to_end)
    assert len(times.results) == 3 and times.mean > 0
