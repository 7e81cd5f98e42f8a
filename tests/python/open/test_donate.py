# SPDX-License-Identifier: Apache-2.0
"""Inputs that give their memory to outputs: taken where nothing else refers to them, and no value changes that somebody can see."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import baton

HEAD = '#[version = "0.0.5"]\n'
STEP = HEAD + 'def @main(%x: Tensor[(n, 5), float32], %d: Tensor[(n, 5), float32], output_names=["next"]) { add(multiply(%x, 2f), %d) }'
DENSE = (
    HEAD
    + """def @main(%x: Tensor[({n}, 8), float32], %w: Tensor[(8, 8), float32], %v: Tensor[(8, 8), float32]) {{
  nn.dense(nn.relu(nn.dense(%x, %w)), %v)
}}"""
)
SOFTMAX = "def @main(%x: Tensor[(n, 6), float32]) { nn.softmax(%x) }"


def f32(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


@pytest.fixture(scope="module")
def step():
    return baton.compile(STEP, donate=("x",))


@pytest.fixture(scope="module")
def plain():
    return baton.compile(STEP)


def test_a_given_input_becomes_the_output(step):
    assert step.donated == {"x": "next"}
    a, d = f32(7, 5), f32(7, 5, seed=1)
    x = baton.nd.array(a)
    address = x.data_ptr
    y = step(baton.give(x), d)
    assert y.data_ptr == address
    np.testing.assert_array_equal(y.numpy(), a * 2 + d)
    assert step.memory()["donated"] == a.nbytes
    with pytest.raises(ValueError, match="this NDArray holds nothing"):
        x.numpy()


def test_a_loop_keeps_one_memory(step, plain):
    y, want, addresses = baton.nd.array(f32(9, 5)), f32(9, 5), set()
    for i in range(10):
        d = f32(9, 5, seed=i)
        y, want = step(baton.give(y), d), plain(want, d)
        addresses.add(y.data_ptr)
        np.testing.assert_array_equal(y.numpy(), want.numpy())
    assert len(addresses) == 1


def test_what_the_caller_keeps_stays_as_it_is(step):
    a, d = f32(4, 5), f32(4, 5, seed=1)
    x = baton.nd.array(a)
    y = step(x, d)
    np.testing.assert_array_equal(x.numpy(), a)
    np.testing.assert_array_equal(y.numpy(), a * 2 + d)
    assert y.data_ptr != x.data_ptr and step.memory()["donated"] == 0
    np.testing.assert_array_equal(step(a, d).numpy(), a * 2 + d)  # NumPy's memory is NumPy's


@pytest.mark.parametrize("keep", [
    np.asarray,
    np.from_dlpack,
    lambda x: x.reshape(20),
    lambda x: x[1:3],
    lambda x: baton.convert([x]),
    lambda x: {"in a map": x.reshape(2, 10)},
], ids=["array", "dlpack", "reshape", "slice", "list", "map"])  # fmt: skip
def test_whatever_else_refers_to_it_keeps_its_value(step, keep):
    a, d = f32(4, 5), f32(4, 5, seed=1)
    x = baton.nd.array(a)
    kept = keep(x)

    def seen():
        one = kept["in a map"] if isinstance(kept, dict) else kept
        one = one[0] if type(one).__name__ == "Array" else one
        return np.asarray(one).copy()

    before = seen()
    y = step(baton.give(x), d)
    np.testing.assert_array_equal(y.numpy(), a * 2 + d)
    assert step.memory()["donated"] == 0
    del y
    step(f32(4, 5, seed=7), f32(4, 5, seed=8))
    np.testing.assert_array_equal(seen(), before)


@pytest.mark.parametrize("lend", [lambda a: baton.nd.from_dlpack(a), lambda a: baton.nd.array(a).reshape(4, 5)])
def test_lent_memory_is_not_taken(step, lend):
    a, d = f32(4, 5), f32(4, 5, seed=1)
    want, x = a * 2 + d, lend(a)
    np.testing.assert_array_equal(step(baton.give(x), d).numpy(), want)
    np.testing.assert_array_equal(a, f32(4, 5))
    assert step.memory()["donated"] == 0


def test_results_that_the_caller_keeps(step):
    """An earlier result that is still there is never written over."""
    y = step(baton.nd.array(f32(4, 5)), f32(4, 5, seed=1))
    kept, values = y.reshape(20), y.numpy()
    z = step(baton.give(y), f32(4, 5, seed=2))
    np.testing.assert_array_equal(kept.numpy().reshape(4, 5), values)
    np.testing.assert_array_equal(z.numpy(), values * 2 + f32(4, 5, seed=2))


def test_open_and_static_shapes(step):
    for n in (1, 3, 64, 2, 0, 1000):
        a, d = f32(n, 5), f32(n, 5, seed=1)
        y = step(baton.give(baton.nd.array(a)), d)
        np.testing.assert_array_equal(y.numpy(), a * 2 + d)
        assert step.memory()["donated"] == a.nbytes
    assert step.shapes(x=(3, 5), d=(3, 5)) == ((3, 5),)
    static = step.specialize({"x": (6, 5), "d": (6, 5)})
    a, d = f32(6, 5), f32(6, 5, seed=1)
    x = baton.nd.array(a)
    address = x.data_ptr
    assert static(baton.give(x), d).data_ptr == address and static.donated == {"x": "next"}


@pytest.mark.parametrize("n", ["n", 12])
def test_an_input_that_is_dead_before_the_output_is_written(n):
    m, plain = (baton.compile(DENSE.format(n=n), donate=d) for d in (("x",), ()))
    w, v = f32(8, 8, seed=1), f32(8, 8, seed=2)
    y = baton.nd.array(f32(12, 8))
    want = y.numpy()
    for _ in range(4):
        address = y.data_ptr
        y, want = m(baton.give(y), w, v), plain(want, w, v).numpy()
        assert y.data_ptr == address
        np.testing.assert_array_equal(y.numpy(), want)


def test_large_arrays_on_all_threads():
    text = HEAD + "def @main(%x: Tensor[(n), float32], %y: Tensor[(n), float32]) { add(tanh(%x), multiply(%x, %y)) }"
    m, plain = baton.compile(text, donate="x"), baton.compile(text)
    for n in (1_000_003, 17, 262_144):
        a, b = f32(n), f32(n, seed=1)
        y = m(baton.give(baton.nd.array(a)), b)
        assert m.memory()["donated"] == a.nbytes
        np.testing.assert_array_equal(y.numpy(), plain(a, b).numpy())


def test_another_type_of_as_many_bytes():
    text = HEAD + 'def @main(%x: Tensor[(n, 2), float32]) { reshape(cast(multiply(nn.softmax(nn.softmax(%x)), 9f), dtype="int32"), newshape=[-1]) }'
    m, plain = baton.compile(text, donate="x"), baton.compile(text)
    a = f32(6, 2) * 9
    y = m(baton.give(baton.nd.array(a)))
    assert m.memory()["donated"] == a.nbytes and y.dtype == "int32"
    np.testing.assert_array_equal(y.numpy(), plain(a).numpy())


def test_two_inputs_share_out_the_outputs():
    text = (
        HEAD
        + """def @main(%a: Tensor[(n), float32], %b: Tensor[(n), float32], output_names=["late", "sum"]) {
  let %s = add(%a, %b);
  (nn.relu(%s), %s)
}"""
    )
    m = baton.compile(text, donate=("a", "b"))
    assert sorted(m.donated) == ["a", "b"] and sorted(m.donated.values()) == ["late", "sum"]
    a, b = f32(30), f32(30, seed=1)
    late, s = m(baton.give(baton.nd.array(a)), baton.give(baton.nd.array(b)))
    np.testing.assert_array_equal(s.numpy(), a + b)
    np.testing.assert_array_equal(late.numpy(), np.maximum(a + b, 0))
    assert m.memory()["donated"] == 2 * a.nbytes


def test_an_input_that_is_an_output():
    m = baton.compile(HEAD + 'def @main(%x: Tensor[(n), float32], output_names=["same", "sum"]) { (%x, sum(%x)) }', donate="x")
    a = f32(50)
    same, total = m(baton.give(baton.nd.array(a)))
    np.testing.assert_array_equal(same.numpy(), a)
    np.testing.assert_allclose(total.numpy(), a.sum(), rtol=1e-5)
    assert m.donated == {"x": "same"}


@pytest.mark.parametrize("text, names, why", [
    (STEP, ("z",), "donate: the model has no input `z`; its inputs are x, d"),
    (SOFTMAX, ("x",), "donate: input `x` cannot give its memory to an output; output `output0` is written by the step that reads `x` last .*softmax"),
    ("def @main(%x: Tensor[(n, 6), float32]) { sum(%x) }", ("x",), "`x` cannot give its memory to an output; no output has its bytes; leave it out"),
    (STEP, ("x", "d"), "input `d` cannot give its memory to an output; output `next` takes the memory of `x`; leave it out of donate="),
    (
        'def @main(%x: Tensor[(n, 6), float32], %w: Tensor[(6, 6), float32], output_names=["y", "s"]) { '
        "let %y = nn.dense(%x, %w); (%y, sum(nn.dense(%x, %y))) }".replace("(n, 6)", "(6, 6)"),
        ("x",),
        "output `y` is written .*dense.* before `x` is read for the last time",
    ),
    ("def @main(%x: Tensor[(n, 6), float32], %b: Tensor[(6), float32]) { add(%x, %b) }", ("b",), "`b` cannot give its memory"),
    (
        "def @main(%x: Tensor[(4, 4), float32], %c: bool) { if (%c) { nn.softmax(%x) } else { cumsum(%x, axis=0) } }",
        ("x",),
        "donate: input `x` cannot give its memory to an output: no part of the program reads it last",
    ),
])  # fmt: skip
def test_what_cannot_be_donated(text, names, why):
    with pytest.raises((ValueError, baton.error.CompileError, baton.UnsupportedError), match=why):
        baton.compile(text if text.startswith(HEAD) else HEAD + text, donate=names)


def test_on_other_devices_there_is_none():
    with pytest.raises(baton.UnsupportedError, match="on the CPU alone"):
        baton.compile(STEP, target="opencl", donate="x")


def test_wrong_calls_and_the_next_one(step, plain):
    a, d = f32(4, 5), f32(4, 5, seed=1)
    given = baton.give(baton.nd.array(a))
    step(given, d)
    with pytest.raises(ValueError, match="given to a model before"):
        step(given, d)
    with pytest.raises(ValueError, match="n = 4|n is 3"):
        step(baton.give(baton.nd.array(a)), d[:3])
    with pytest.raises(TypeError, match="input `d` gives its memory to no output: compile the model with donate="):
        step(a, baton.give(baton.nd.array(d)))
    with pytest.raises(TypeError, match="input `x` gives its memory to no output"):
        plain(baton.give(baton.nd.array(a)), d)
    with pytest.raises(TypeError, match="baton.NDArray can be given, not ndarray"):
        baton.give(a)
    x = baton.nd.array(a)
    np.testing.assert_array_equal(step(x, d).numpy(), a * 2 + d)  # nothing of the calls before is taken for this one
    np.testing.assert_array_equal(x.numpy(), a)


def test_by_name(step):
    a, d = f32(4, 5), f32(4, 5, seed=1)
    np.testing.assert_array_equal(step(d=d, x=baton.give(baton.nd.array(a))).numpy(), a * 2 + d)
    assert step.memory()["donated"] == a.nbytes


def test_beside_states():
    text = (
        HEAD
        + """def @main(%x: Tensor[(new, 3), float32], %past: Tensor[(old, 3), float32], output_names=["sum", "twice", "present"]) {
  %0 = concatenate((%past, multiply(%x, 3f)), axis=0);
  (sum(%0, axis=[0]), add(%x, %x), %0)
}"""
    )
    m = baton.compile(text, state={"past": "present"}, donate="x")
    assert m.states == ("past",) and m.donated == {"x": "twice"}
    s, rows = m.session(), f32(9, 3)
    for begin, end in [(0, 4), (4, 5), (5, 9)]:
        total, twice = s(baton.give(baton.nd.array(rows[begin:end])))
        np.testing.assert_array_equal(twice.numpy(), 2 * rows[begin:end])
        np.testing.assert_allclose(total.numpy(), 3 * rows[:end].sum(0), rtol=1e-5)
        assert s.memory()["donated"] == rows[begin:end].nbytes
    with pytest.raises(baton.error.CompileError, match="input `past` is a state, which stays with its session"):
        baton.compile(text, state={"past": "present"}, donate="past")


def test_saved_and_run_by_the_runtime_alone(step, tmp_path):
    path = tmp_path / "step.so"
    step.save(path)
    assert "libbaton_vm" in baton.load(path).describe()["needs"]
    code = textwrap.dedent(f"""
        import numpy as np, baton
        m = baton.load({str(path)!r})
        a = np.arange(10, dtype="float32").reshape(2, 5)
        x = baton.nd.array(a)
        address = x.data_ptr
        y = m(baton.give(x), a)
        assert y.data_ptr == address and m.donated == {{"x": "next"}} and m.memory()["donated"] == a.nbytes
        assert (y.numpy() == a * 3).all()
        maps = open("/proc/self/maps").read()
        assert "libbaton.so" not in maps and "libLLVM" not in maps
        print("alone")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "alone", done.stderr


def test_on_the_command_line(tmp_path):
    (tmp_path / "step.relay").write_text(STEP)
    command = [sys.executable, "-m", "baton", "compile", str(tmp_path / "step.relay"), "-o", str(tmp_path / "step.so"), "-q", "--donate"]
    assert subprocess.run([*command, "x"], timeout=120).returncode == 0
    assert baton.load(tmp_path / "step.so").donated == {"x": "next"}
    wrong = subprocess.run([*command, "z"], capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 2 and "--donate: the model has no input `z`; its inputs are x, d" in wrong.stderr


def test_the_executor_takes_what_it_alone_holds(step, tmp_path):
    """As C has it: an input that is set, whose array the caller lets go."""
    path = tmp_path / "step.so"
    step.save(path)
    executor = baton.runtime.load_module(str(path))["default"](baton.cpu())
    a, d = f32(4, 5), f32(4, 5, seed=1)
    x = baton.nd.array(a)
    address = x.data_ptr
    executor["set_input_zero_copy"]("x", x)
    executor["set_input"]("d", d)
    executor["run"]()  # x is still referred to
    np.testing.assert_array_equal(x.numpy(), a)
    np.testing.assert_array_equal(executor["get_output"](0).numpy(), a * 2 + d)
    del x
    executor["run"]()
    assert executor["get_output"](0).data_ptr == address
    np.testing.assert_array_equal(executor["get_output"](0).numpy(), a * 2 + d)
    with pytest.raises(ValueError, match="input 0 `x`: an output took its memory; set it again"):
        executor["run"]()
    executor["set_input"]("x", a)
    executor["run"]()
    np.testing.assert_array_equal(executor["get_output"](0).numpy(), a * 2 + d)


BINARY, UNARY = ("add", "multiply", "maximum", "subtract"), ("tanh", "nn.relu", "exp", "negative", "sigmoid")


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_the_bits_without_donation(seed):
    """Elementwise operators, sums, products over inputs that are all given, where the compiler lets them."""
    rng = np.random.default_rng(seed)
    lines, values = [], ["%x", "%y"]
    for i in range(int(rng.integers(2, 9))):
        a, b = (values[int(rng.integers(len(values)))] for _ in range(2))
        kind = int(rng.integers(4))
        text = [f"{rng.choice(BINARY)}({a}, {b})", f"{rng.choice(UNARY)}({a})", f"nn.softmax({a})", f"nn.dense({a}, %w)"][kind]
        lines.append(f"  let %v{i} = {text};")
        values.append(f"%v{i}")
    results = ", ".join(values[-int(rng.integers(1, 3)) :])
    params = ", ".join(f"%{name}: Tensor[({n}, 8), float32]" for name, n in (("x", "n"), ("y", "n"), ("w", 8)))
    text = HEAD + f"def @main({params}) {{\n" + "\n".join(lines) + f"\n  ({results}{',' if ',' not in results else ''})\n}}"
    plain = baton.compile(text)
    tried = [("x", "y"), ("x",), ("y",)]
    for names in tried:
        try:
            m = baton.compile(text, donate=names)
        except baton.error.CompileError:
            continue
        for n in (3, 40):
            arrays = {"x": f32(n, 8), "y": f32(n, 8, seed=1), "w": f32(8, 8, seed=2) / 8}
            want = plain(**arrays)
            got = m(**{k: baton.give(baton.nd.array(v)) if k in names else v for k, v in arrays.items()})
            assert m.memory()["donated"] == len(names) * arrays["x"].nbytes
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g.numpy(), w.numpy())


BRANCH = (
    HEAD
    + """def @main(%x: Tensor[(n, 4), float32], %d: Tensor[(n, 4), float32], output_names=["next"]) {
  let %s = sum(%d);
  let %y = if (greater(%s, 0f)) { add(%x, %d) } else { multiply(%x, 2f) };
  tanh(%y)
}"""
)


def branch_of(a, d):
    return np.tanh(a + d if d.sum() > 0 else a * np.float32(2))


@pytest.fixture(scope="module")
def program():
    return baton.compile(BRANCH, donate=("x",))


def test_programs_of_several_regions(program, tmp_path):
    assert program.donated == {"x": "next"}
    program.save(tmp_path / "m.so")
    loaded = baton.load(tmp_path / "m.so")
    for m in (program, loaded):
        for n, sign in ((6, 1), (6, -1), (1, 1), (300, -1), (0, 1)):
            a, d = f32(n, 4), np.abs(f32(n, 4, seed=1)) * sign
            x = baton.nd.array(a)
            address = x.data_ptr
            y = m(baton.give(x), d)
            assert y.data_ptr == address or n == 0
            assert m.memory()["donated"] == a.nbytes
            np.testing.assert_allclose(y.numpy(), branch_of(a, d), rtol=1e-5, atol=1e-6)
            with pytest.raises(ValueError, match="this NDArray holds nothing"):
                x.numpy()


def test_programs_keep_what_the_caller_keeps(program):
    a, d = f32(4, 4), np.abs(f32(4, 4, seed=1))
    x = baton.nd.array(a)
    y = program(x, d)
    np.testing.assert_array_equal(x.numpy(), a)
    assert program.memory()["donated"] == 0 and y.data_ptr != x.data_ptr
    kept = x.reshape(16)
    y = program(baton.give(x), d)
    np.testing.assert_array_equal(kept.numpy(), a.reshape(16))
    assert program.memory()["donated"] == 0
    kept, values = y.reshape(16), y.numpy()
    z = program(baton.give(y), d)
    np.testing.assert_array_equal(kept.numpy().reshape(4, 4), values)
    np.testing.assert_allclose(z.numpy(), branch_of(values, d), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(program(a, d).numpy(), branch_of(a, d), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="input `d` has shape"):
        program(baton.give(baton.nd.array(a)), f32(4, 3))
    np.testing.assert_allclose(program(a, d).numpy(), branch_of(a, d), rtol=1e-5, atol=1e-6)


def test_a_loop_of_the_program_keeps_one_memory():
    source = (
        HEAD
        + """def @round(%i: int32, %x: Tensor[(5, 8), float32]) -> Tensor[(5, 8), float32] {
  if (less_equal(%i, 0)) { %x } else { @round(subtract(%i, 1), add(multiply(%x, 0.5f), 1f)) }
}
def @main(%x: Tensor[(5, 8), float32], %i: int32, output_names=["last"]) -> Tensor[(5, 8), float32] { @round(%i, %x) }"""
    )
    m, plain = baton.compile(source, donate="x"), baton.compile(source)
    for rounds in (3, 0, 40):
        a = f32(5, 8)
        x = baton.nd.array(a)
        address, i = x.data_ptr, np.array(rounds, "int32")
        y = m(baton.give(x), i)
        np.testing.assert_array_equal(y.numpy(), plain(a, i).numpy())
        assert y.data_ptr == address


def test_an_input_that_no_region_writes_over():
    with pytest.raises(baton.error.CompileError, match="donate: input `d` cannot give its memory to an output: no part of the program reads it last"):
        baton.compile(BRANCH.replace("add(%x, %d)", "nn.softmax(%d)"), donate="d")


def test_an_argument_is_not_changed_by_a_program_that_borrows_it():
    """Programs read the caller's NumPy arrays where they lie, and give back none of that memory."""
    m = baton.compile(BRANCH.replace("tanh(%y)", "(reshape(%x, newshape=[-1]), %y, %d)").replace(', output_names=["next"]', ""))
    a, d = f32(64, 4), np.abs(f32(64, 4, seed=1))
    keep = a.copy()
    flat, y, same = m(a, d)
    a[:] = 0
    np.testing.assert_array_equal(flat.numpy(), keep.ravel())
    np.testing.assert_array_equal(y.numpy(), keep + d)
    d[:] = 0
    assert same.numpy().any()


# ---- Calls that fail take nothing

OF_THREE = (
    HEAD
    + """def @main(%x: Tensor[(n, 5), float32], %d: Tensor[(n, 5), float32], %s: Tensor[(n), float32]) {
  add(add(multiply(%x, 2f), %d), expand_dims(%s, axis=1))
}"""
)
BRANCH_OF_THREE = (
    HEAD
    + """def @main(%x: Tensor[(n, 5), float32], %d: Tensor[(n, 5), float32], %s: Tensor[(n), float32]) {
  if (greater(sum(%s), 0f)) { add(multiply(%x, 2f), %d) } else { %x }
}"""
)
WRONG = {
    "shape": lambda x, d, s: (x, d[:2], s),
    "a broken guard": lambda x, d, s: (x, f32(9, 5), s),
    "dtype": lambda x, d, s: (x, d.astype("int32"), s),
    "a text": lambda x, d, s: (x, "d", s),
    "nothing": lambda x, d, s: (x, None, s),
    "the last": lambda x, d, s: (x, d, f32(3, 3)),
    "too few": lambda x, d, s: (x, d),
    "too many": lambda x, d, s: (x, d, s, s),
    "given where none is taken": lambda x, d, s: (x, baton.give(baton.nd.array(d)), s[:1]),
    "twice": lambda x, d, s: (x, x, s),
}


@pytest.fixture(scope="module", params=[OF_THREE, OF_THREE.replace("(n", "(4"), BRANCH_OF_THREE], ids=["open", "static", "with a branch"])
def taking(request):
    return baton.compile(request.param, donate=("x",))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("by_name", [False, True], ids=["by place", "by name"])
def test_a_call_that_fails_takes_nothing(taking, wrong, by_name):
    a, d, s = f32(4, 5), f32(4, 5, seed=1), f32(4)
    x = baton.nd.array(a)
    arguments = WRONG[wrong](baton.give(x), d, s)
    with pytest.raises((TypeError, ValueError, baton.Error)):
        if by_name:
            taking(dict(zip(["x", "d", "s", "t"], arguments, strict=False)))
        else:
            taking(*arguments)
    np.testing.assert_array_equal(x.numpy(), a)
    s = np.abs(s)
    want = taking(a, d, s).numpy()
    np.testing.assert_array_equal(taking(baton.give(x), d, s).numpy(), want)
    with pytest.raises(ValueError, match="holds nothing"):
        x.numpy()


def test_a_model_that_takes_nothing_gives_back(plain):
    a = f32(4, 5)
    x = baton.nd.array(a)
    with pytest.raises(TypeError, match="donate="):
        plain(baton.give(x), f32(4, 5, seed=1))
    np.testing.assert_array_equal(x.numpy(), a)
