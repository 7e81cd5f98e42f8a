# SPDX-License-Identifier: Apache-2.0
"""Functions by name, callbacks, and errors through any number of crossings."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import baton

call = baton.get_global_func("testing.call")
rethrow = baton.get_global_func("testing.rethrow")
raise_error = baton.get_global_func("testing.raise")


def test_registry(request):  # PF-026, PF-027
    name = "test." + request.node.name

    @baton.register_func(name)
    def add(a, b):
        return a + b

    assert add(1, 2) == 3, "the decorator gives the function back"
    assert baton.get_global_func(name)(1, 2) == 3
    assert name in baton.list_global_func_names()
    with pytest.raises(ValueError, match="registered already"):
        baton.register_func(name, add)
    baton.register_func(name, lambda a, b: a * b, override=True)
    assert baton.get_global_func(name)(3, 4) == 12
    baton._ffi.remove_global_func(name)
    assert baton.get_global_func(name, allow_missing=True) is None
    with pytest.raises(ValueError, match=f"no global function is called `{name}`"):
        baton.get_global_func(name)


def test_missing_function_names_the_nearest():
    with pytest.raises(baton.Error, match="testing.echo"):
        baton.get_global_func("testing.echoo")


def test_registered_function_is_seen_by_cpp():
    @baton.register_func("test.seen_by_cpp", override=True)
    def f(x):
        return x + "!"

    assert call(baton.get_global_func("test.seen_by_cpp"), "hello world") == "hello world!"


def test_callback():  # PF-011, PF-012, PF-013, PF-014
    seen = []
    assert call(baton.convert(seen.append), "hello world") is None and seen == ["hello world"]
    assert call(lambda f: f(2), lambda x: x + 1) == 3, "functions as arguments, both ways"
    assert isinstance(baton.convert(print), baton.PackedFunc)
    assert isinstance(baton.PackedFunc(len), baton.PackedFunc) and baton.PackedFunc(len)([1, 2]) == 2
    assert call(lambda: {"a": [1, None, "x"]}) == {"a": [1, None, "x"]}
    with pytest.raises(TypeError, match="takes a callable"):
        baton.PackedFunc(3)


def test_exception_comes_back_as_the_same_object():  # PF-014
    class Mine(Exception):
        pass

    first = Mine("oh")

    def inner():
        raise first

    def outer():
        return rethrow(inner)

    for crossing in (lambda: call(inner), lambda: rethrow(inner), lambda: call(outer), lambda: call(lambda: call(lambda: rethrow(outer)))):
        first.__traceback__ = None
        with pytest.raises(Mine) as caught:
            crossing()
        assert caught.value is first
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert "inner" in names and names.index("inner") == len(names) - 1, "the traceback goes down to where it was raised"


def test_exception_caught_on_the_way_can_be_chained():
    def outer():
        try:
            call(lambda: 1 / 0)
        except ZeroDivisionError as cause:
            raise LookupError("no") from cause

    with pytest.raises(LookupError) as caught:
        rethrow(outer)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_base_exceptions_pass(kind):
    def stop():
        raise kind("now")

    with pytest.raises(kind) as caught:
        call(lambda: rethrow(stop))
    assert caught.value.args == ("now",)


def test_cpp_sees_kind_and_text():
    def bad():
        raise KeyError("k")

    assert baton.get_global_func("testing.catch")(bad) == ["KeyError", "'k'"]
    assert baton.get_global_func("testing.catch")(lambda: raise_error("CompileError", "line 3")) == ["CompileError", "line 3"]
    assert baton.get_global_func("testing.catch")(lambda: None) == []


@pytest.mark.parametrize("kind, also", [
    ("TypeError", TypeError), ("ValueError", ValueError), ("KeyError", KeyError), ("IndexError", IndexError),
    ("AttributeError", AttributeError), ("MemoryError", MemoryError), ("RuntimeError", RuntimeError), ("ParseError", SyntaxError),
    ("TypeInferenceError", TypeError), ("ShapeError", ValueError), ("UnsupportedError", NotImplementedError),
    ("InternalError", RuntimeError), ("CompileError", baton.Error), ("OSError", OSError), ("FileNotFoundError", FileNotFoundError),
    ("RPCError", ConnectionError), ("NobodyKnowsThisKind", baton.Error)])
def test_kinds(kind, also):
    text = "`x` is 3, must be at most 2"
    with pytest.raises(also) as caught:
        raise_error(kind, text)
    error = caught.value
    assert isinstance(error, baton.Error) and str(error) == text and error.kind == kind
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.kind == kind and str(again) == text


def test_error_of_cpp_is_one_object_through_crossings():
    seen = []

    def catches():
        try:
            raise_error("CompileError", "x")
        except baton.CompileError as e:
            seen.append(e)
            raise

    with pytest.raises(baton.CompileError) as caught:
        rethrow(lambda: call(catches))
    assert caught.value is seen[0]


def test_unsupported_names_the_operators():
    with pytest.raises(baton.UnsupportedError) as caught:
        raise_error("UnsupportedError", "two operators", baton.convert(["Foo", "Bar"]))
    assert caught.value.ops == ["Foo", "Bar"]
    assert baton.UnsupportedError("x").ops == []


def test_register_error():
    @baton.error.register_error
    class MyError(baton.Error):
        pass

    with pytest.raises(MyError, match="mine"):
        raise_error("MyError", "mine")


def test_text_that_is_not_utf8():
    assert baton.get_global_func("testing.catch")(lambda: raise_error("ValueError", b"\xff"))[1] == "\ufffd"
    with pytest.raises(ValueError):
        raise_error("ValueError", b"\xff")


def test_callback_lives_as_long_as_cpp_holds_it():  # PF-015
    class Call:
        def __call__(self):
            return 7

    f = Call()
    alive = weakref.ref(f)
    keep = baton.get_global_func("testing.keep")
    keep(f)
    del f
    gc.collect()
    assert baton.get_global_func("testing.kept")()() == 7
    drop = baton.get_global_func("testing.drop_on_thread")
    drop.release_gil = True
    drop()
    baton._core.flush_dropped()
    assert alive() is None


def _resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_calls_leak_nothing():  # PF-015
    echo = baton.get_global_func("testing.echo")
    times = baton.get_global_func("testing.call_times")

    def fails():
        raise ValueError("x")

    def work(n):
        times(lambda i: i, n)
        for _ in range(n // 20):
            echo([1, "two", 3.0])
            echo({"a": b"xyz"})
            call(lambda x: x, (1, 2))
            try:
                rethrow(fails)
            except ValueError:
                pass

    work(20_000)
    gc.collect()
    before = _resident()
    work(1_000_000)
    gc.collect()
    assert _resident() - before < 4 << 20


def test_callbacks_from_many_threads():
    on_thread = baton.get_global_func("testing.call_on_thread")
    on_thread.release_gil = True
    assert on_thread(lambda: threading.get_ident()) != threading.get_ident()

    def fails():
        raise LookupError("there")

    with pytest.raises(LookupError, match="there"):
        on_thread(fails)

    results = []

    def work(k):
        results.append(sum(on_thread(lambda i=i: i * k) for i in range(50)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [1225 * k for k in range(8)]


def test_release_gil_flag():
    f = baton.get_global_func("testing.nop")
    assert f.release_gil is False
    f.release_gil = True
    assert f.release_gil is True and f() is None


def test_tensor_lent_to_a_callback():
    fill = baton.get_global_func("testing.fill")
    a = np.zeros((2, 3), np.float32)
    kept = []

    def writes(t):
        kept.append(t)
        t[:] = 5
        t[1, 2] = 7

    fill(writes, a)
    assert a.tolist() == [[5, 5, 5], [5, 5, 7]]
    del a
    assert kept[0].numpy()[1, 2] == 7, "what Python keeps stays valid"


def _python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_exit_with_live_callbacks():
    done = _python("""
import baton, threading, time
baton.get_global_func("testing.keep")(lambda: 1)
baton.register_func("test.live", lambda: 2)
forever = baton.get_global_func("testing.call_for_ever")
forever.release_gil = True
for _ in range(3): forever(lambda: time.sleep(0.001))
time.sleep(0.05)
print("bye")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_fork():
    done = _python("""
import baton, os
call = baton.get_global_func("testing.call")
pid = os.fork()
assert call(lambda x: x + 1, 1) == 2
if pid == 0: os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("ok")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_import_loads_neither_numpy_nor_the_compiler():
    done = _python("""
import sys, baton
maps = open("/proc/self/maps").read()
assert "numpy" not in sys.modules and "libbaton_runtime" in maps and "libbaton.so" not in maps and "LLVM" not in maps
""")
    assert (done.returncode, done.stderr) == (0, "")
