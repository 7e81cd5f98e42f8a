# SPDX-License-Identifier: Apache-2.0
"""A model with open dimensions is one program for all shapes: values, errors, memory, artifacts."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import baton

MLP = """#[version = "0.0.5"]
def @main(%x: Tensor[(n, 24), float32], %w: Tensor[(16, 24), float32], %b: Tensor[(16), float32]) {
  %0 = nn.dense(%x, %w, units=None);
  %1 = nn.bias_add(%0, %b, axis=-1);
  %2 = nn.softmax(%1);
  %3 = add(%2, nn.relu(%1));
  (%3, sum(%3, axis=[1]))
}
"""


def mlp(x, w, b):
    y = x @ w.T + b
    s = np.exp(y - y.max(1, keepdims=True, initial=-np.inf))
    z = s / s.sum(1, keepdims=True) + np.maximum(y, 0)
    return z, z.sum(1)


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    return rng.standard_normal((16, 24)).astype("float32"), rng.standard_normal(16).astype("float32")


@pytest.fixture(scope="module")
def model():
    return baton.compile(MLP)


def rows(n):
    return np.random.default_rng(n).standard_normal((n, 24)).astype("float32")


@pytest.mark.parametrize("n", [1, 2, 7, 13, 64, 509, 0, 3])
def test_values(model, weights, n):
    for got, want in zip(model(rows(n), *weights), mlp(rows(n), *weights), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_signature(model):
    assert model.dynamic
    assert model.dims == (baton.Dim("n"),)
    assert model.inputs[0].shape == ("n", 24) and model.outputs[1].shape == ("n",)
    assert model.shapes((5, 24), (16, 24), (16,)) == ((5, 16), (5,))
    assert model.shapes(x=(0, 24), w=(16, 24), b=(16,)) == ((0, 16), (0,))
    assert "n, 24" in repr(model)


def test_a_result_that_is_held_keeps_its_value(model, weights):
    first, _ = model(rows(4), *weights)
    before = first.numpy().copy()
    model(rows(9), *weights)
    model(rows(4) + 1, *weights)
    np.testing.assert_array_equal(first.numpy(), before)


def test_saved_and_run_by_the_runtime_alone(model, weights, tmp_path):
    path = tmp_path / "mlp.so"
    model.save(path)
    loaded = baton.load(path)
    assert loaded.dims == model.dims and loaded.inputs == model.inputs
    code = textwrap.dedent(f"""
        import numpy as np, baton, re
        m = baton.load({str(path)!r})
        w, b = np.ones((16, 24), "float32"), np.zeros(16, "float32")
        def executable():
            return [line for line in open("/proc/self/maps") if " r-xp " in line]
        m(np.ones((3, 24), "float32"), w, b)
        mapped = len(executable())
        for n in range(1, 300):
            z, s = m(np.ones((n, 24), "float32"), w, b)
            assert z.shape == (n, 16) and abs(float(s.numpy()[0]) - 385) < 1e-3
        maps = open("/proc/self/maps").read()
        assert "libbaton.so" not in maps and "libLLVM" not in maps
        assert len(executable()) == mapped
        print("alone")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "alone", done.stderr


def test_bounds():
    m = baton.compile(MLP, shape={"x": (baton.Dim("n", 2, 100, multiple=2), None)})
    w, b = np.ones((16, 24), "float32"), np.ones(16, "float32")
    m(rows(100), w, b)
    for n, what in [(102, "n is 2 to 100"), (0, "n is 2 to 100"), (7, "n is a multiple of 2")]:
        with pytest.raises(ValueError, match=f"input `x` has shape \\({n}, 24\\): {what}"):
            m(rows(n), w, b)
        m(rows(4), w, b)


def test_dims_that_contradict_each_other():
    m = baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(n, 3), float32], %mask: Tensor[(n), float32]) { (%x, nn.relu(%mask)) }')
    with pytest.raises(ValueError, match=r"input `mask` has shape \(7,\): n is 7, input `x` has n = 12"):
        m(np.ones((12, 3), "float32"), np.ones(7, "float32"))
    assert m(np.ones((2, 3), "float32"), np.ones(2, "float32"))[1].shape == (2,)


@pytest.mark.parametrize("shape, why", [
    ({"x": (baton.Dim("n", 5, 4), 24)}, "no length"),
    ({"x": (baton.Dim("n", multiple=0), 24)}, "no length"),
    ({"x": (baton.Dim("n o", 5, 4), 24)}, "identifier"),
    ({"x": ("n",)}, "does not take"),
    ({"x": ("n", "k")}, "does not take|in the model"),
    ({"y": ("n", 24)}, "no input `y`"),
    ({"x": (-1, 24)}, "does not take"),
])  # fmt: skip
def test_wrong_dims(shape, why):
    with pytest.raises((ValueError, TypeError), match=why):
        baton.compile(MLP, shape=shape)


def test_numbers_make_it_static(weights):
    m = baton.compile(MLP, shape={"x": (5, 24)})
    assert not m.dynamic and m.dims == ()
    np.testing.assert_allclose(m(rows(5), *weights)[0].numpy(), mlp(rows(5), *weights)[0], rtol=1e-5, atol=1e-6)


def test_specialize_gives_the_same_bits(model, weights):
    static = model.specialize({"x": (6, 24), "w": (16, 24), "b": (16,)})
    assert not static.dynamic
    for got, want in zip(model(rows(6), *weights), static(rows(6), *weights), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_memory_follows_reserve_and_trim():
    source = """#[version = "0.0.5"]
    def @main(%x: Tensor[(n, 64), float32]) { sum(nn.softmax(transpose(nn.softmax(%x), axes=[1, 0])), axis=[0]) }
    """
    m = baton.compile(source)
    m.reserve(n=1000)
    held = m.memory()
    assert held["workspace"] >= 1000 * 64 * 4 and held["plans"] == 1
    for n in (1, 10, 1000, 999):
        m(np.ones((n, 64), "float32"))
    assert m.memory()["workspace"] == held["workspace"] and m.memory()["plans"] == 1
    m.trim()
    assert m.memory()["workspace"] == 0
    assert m(np.ones((3, 64), "float32")).shape == (3,)
    with pytest.raises(ValueError, match="no open dimension `k`; it has n"):
        m.reserve(k=4)


def test_unknown_dims_get_names():
    m = baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 3), float32]) { nn.relu(%x) }')
    assert m.inputs[0].shape == ("x_0", 3)
    assert m(np.ones((4, 3), "float32")).shape == (4, 3)


def test_sizes_that_overflow_are_refused(model, weights):
    huge = np.broadcast_to(np.float32(1), (2**31 + 1, 24))
    with pytest.raises(ValueError, match="n is 0 to"):
        model.shapes(huge.shape, (16, 24), (16,))
    m = baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(a, b), float32]) { concatenate((%x, %x), axis=0) }')
    with pytest.raises(ValueError, match="more memory than there is"):
        m.shapes((2**31, 2**31))
    assert m(np.ones((2, 2), "float32")).shape == (4, 2)


def test_from_several_threads(model, weights):
    from concurrent.futures import ThreadPoolExecutor

    def one(n):
        return n, model(rows(n), *weights)[1].numpy()

    with ThreadPoolExecutor(4) as pool:
        for n, got in pool.map(one, [*range(1, 40)] * 3):
            np.testing.assert_allclose(got, mlp(rows(n), *weights)[1], rtol=1e-5)


CNN = """#[version = "0.0.5"]
def @main(%x: Tensor[(batch, 3, h, w), float32], %w0: Tensor[(16, 3, 3, 3), float32], %w1: Tensor[(32, 16, 3, 3), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w0, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]));
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  %2 = nn.relu(nn.conv2d(%1, %w1, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3]));
  nn.global_avg_pool2d(add(%2, %2))
}
"""


def test_images_of_any_size_and_number():
    """Layouts of blocks are chosen for open images too: the bits are those of code for the shape alone."""
    from baton import relay

    rng = np.random.default_rng(3)
    weights = {"w0": rng.standard_normal((16, 3, 3, 3)).astype("float32"), "w1": rng.standard_normal((32, 16, 3, 3)).astype("float32")}
    mod = baton.relay.build_module.bind_params_by_name(relay.parse(CNN)["main"], weights)
    model = baton.compile(mod)
    assert [d.name for d in model.dims] == ["batch", "h", "w"]
    for shape in [(1, 3, 8, 8), (2, 3, 33, 17), (5, 3, 20, 64), (1, 3, 2, 2)]:
        x = rng.standard_normal(shape).astype("float32")
        got = model(x).numpy()
        assert got.shape == (shape[0], 32, 1, 1)
        np.testing.assert_array_equal(got, model.specialize({"x": shape})(x).numpy())


ATTENTION = """#[version = "0.0.5"]
def @main(%q: Tensor[(b, 4, s, 8), float32], %k: Tensor[(b, 4, t, 8), float32], %mask: Tensor[(m, 1, 1, t), float32]) {
  %0 = nn.batch_matmul(reshape(%q, newshape=[-3, s, 8]), reshape(%k, newshape=[-3, t, 8]));
  %1 = add(reshape(%0, newshape=[b, 4, s, t]), %mask);
  %2 = nn.softmax(%1);
  %3 = nn.batch_matmul(reshape(%2, newshape=[-3, s, t]), reshape(%k, newshape=[-3, t, 8]), transpose_b=False);
  transpose(reshape(%3, newshape=[b, 4, s, 8]), axes=[0, 2, 1, 3])
}
"""


def attention(q, k, mask):
    y = q @ k.transpose(0, 1, 3, 2) + mask
    y = np.exp(y - y.max(-1, keepdims=True))
    return ((y / y.sum(-1, keepdims=True)) @ k).transpose(0, 2, 1, 3)


def test_extents_that_broadcast_when_they_run():
    """A dimension that is 1 in one call and the batch in another: broadcasting is decided by the shapes that come."""
    model = baton.compile(ATTENTION)
    rng = np.random.default_rng(4)
    for b, s, t, m in [(1, 1, 1, 1), (3, 5, 7, 1), (3, 5, 7, 3), (2, 17, 33, 2), (4, 1, 64, 1)]:
        args = [rng.standard_normal(x).astype("float32") for x in [(b, 4, s, 8), (b, 4, t, 8), (m, 1, 1, t)]]
        np.testing.assert_allclose(model(*args).numpy(), attention(*args), rtol=1e-4, atol=1e-5)
    wrong = [np.ones(x, "float32") for x in [(3, 4, 5, 8), (3, 4, 7, 8), (2, 1, 1, 7)]]
    with pytest.raises(ValueError, match="do not broadcast.*b = 3.*m = 2"):
        model(*wrong)


def test_a_model_of_many_steps():
    """Long entries are cut into several functions, which all read the sizes."""
    from baton import relay

    n = baton.tir.Var("n", "int64")
    x = relay.var("x", shape=(n, 3))
    y = x
    for _ in range(700):
        y = relay.annotation.stop_fusion(relay.nn.relu(y) - relay.const(np.float32(0.001)))
    model = baton.compile(relay.Function([x], y))
    for rows in (1, 5, 2):
        a = np.full((rows, 3), 10, "float32")
        np.testing.assert_allclose(model(a).numpy(), a - 0.7, rtol=1e-4)
    assert len(model.profile(np.ones((2, 3), "float32"), rounds=1)["steps"]) >= 700


def test_operators_that_need_lengths_are_compiled_when_they_come():
    from baton import relay

    n = baton.tir.Var("n", "int64")
    grad, data = relay.var("g", shape=(n, 3, 4, 4)), relay.var("x", shape=(n, 3, 8, 8))
    model = baton.compile(relay.Function([grad, data], relay.nn.avg_pool2d_grad(grad, data, pool_size=(2, 2), strides=(2, 2))))
    assert model.dynamic
    for rows in (1, 2):
        got = model(np.ones((rows, 3, 4, 4), "float32"), np.ones((rows, 3, 8, 8), "float32"))
        np.testing.assert_allclose(got.numpy(), np.full((rows, 3, 8, 8), 0.25, "float32"))


def test_guards_say_what_must_hold(tmp_path):
    m = baton.compile("def @main(%x: Tensor[(n, 2), float32], %y: Tensor[(m, 2), float32]) { (add(%x, %y), concatenate((%x, %y), axis=1)) }\n")
    assert m.guards and any("extents m and n must be equal" in guard or "extents n and m must be equal" in guard for guard in m.guards)
    m.save(tmp_path / "m.so")
    loaded = baton.load(tmp_path / "m.so")
    assert loaded.guards == m.guards and loaded.describe()["guards"] == list(m.guards)
    assert [dim["name"] for dim in loaded.describe()["dims"]] == ["n", "m"]
    with pytest.raises(ValueError, match="must be equal"):
        loaded(np.zeros((1, 2), "float32"), np.zeros((3, 2), "float32"))
    assert baton.compile("def @main(%x: Tensor[(n, 2), float32]) { nn.relu(%x) }\n").guards == ()


def test_reserve_takes_the_pages():
    """Or the first call would meet each page for the first time."""
    model = baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(n, 1024), float32]) { sum(nn.softmax(nn.softmax(%x))) }')

    def resident():
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10

    before = resident()
    model.reserve(n=16_000)
    workspace = model.memory()["workspace"]
    assert workspace > 60 << 20
    assert resident() - before > 0.9 * workspace
