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

ADDRESS_SANITIZER = "libasan" in os.environ.get("LD_PRELOAD", "")
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


@pytest.mark.parametrize(
    "kind, also",
    [
        ("TypeError", TypeError),
        ("ValueError", ValueError),
        ("KeyError", KeyError),
        ("IndexError", IndexError),
        ("AttributeError", AttributeError),
        ("MemoryError", MemoryError),
        ("RuntimeError", RuntimeError),
        ("ParseError", SyntaxError),
        ("TypeInferenceError", TypeError),
        ("ShapeError", ValueError),
        ("UnsupportedError", NotImplementedError),
        ("InternalError", RuntimeError),
        ("CompileError", baton.Error),
        ("OSError", OSError),
        ("FileNotFoundError", FileNotFoundError),
        ("RPCError", ConnectionError),
        ("NobodyKnowsThisKind", baton.Error),
    ],
)
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


@pytest.mark.skipif(ADDRESS_SANITIZER, reason="it keeps freed memory for a while")
def test_a_million_calls_leak_nothing():  # PF-015
    echo = baton.get_global_func("testing.echo")
    times = baton.get_global_func("testing.call_times")

    def fails():
        raise ValueError("x")

    def work(n):
        raised = 0
        times(lambda i: i, n)
        for _ in range(n // 20):
            echo([1, "two", 3.0])
            echo({"a": b"xyz"})
            call(lambda x: x, (1, 2))
            try:
                rethrow(fails)
            except ValueError:
                raised += 1
        return raised

    assert work(20_000) == 1000
    gc.collect()
    before = _resident()
    assert work(1_000_000) == 50_000
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


@pytest.mark.skipif(ADDRESS_SANITIZER, reason="it takes the stack of a thread that Python unwound for overrun")
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


def test_signature_of_a_typed_function():
    """PF-024: a typed function tells its name and signature; others say that they take anything."""
    add = baton.get_global_func("testing.add")
    assert (add.name, add.signature) == ("testing.add", "(int, int) -> int")
    assert repr(add) == "<baton.runtime.PackedFunc testing.add(int, int) -> int>"
    assert baton.get_global_func("testing.echo").signature is None
    assert baton.convert(len).signature is None


def test_wrong_arity_names_the_signature():
    """PF-023: function, number wanted, number given, signature."""
    add = baton.get_global_func("testing.add")
    with pytest.raises(TypeError, match=r"`testing\.add` takes 2 arguments, got 3: its signature is \(int, int\) -> int"):
        add(1, 2, 3)
    with pytest.raises(TypeError, match="argument 1 of `testing.add`: expected int, got float"):
        add(1, 2.5)


def test_traceback_shows_both_sides():
    """PF-014: Python's frames and the functions of C++ between them, in the order that the error took."""

    def inner():
        raise KeyError("deep")

    def outer():
        return rethrow(inner)

    with pytest.raises(KeyError) as caught:
        rethrow(outer)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_traceback_shows_both_sides", "testing.rethrow", "outer", "testing.rethrow", "inner"]
    with pytest.raises(TypeError) as caught:
        call(3)
    # A function that takes anything is named too.
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "testing.call"
    with pytest.raises(TypeError) as caught:
        baton.get_global_func("testing.add")("x", 1)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert (frames[-1].filename, frames[-1].name) == ("<C++>", "testing.add")


def test_a_function_holds_what_it_holds():
    """PF-015: a running call relies on its function; nothing can take it away."""
    f = baton.convert(lambda: 1)
    with pytest.raises(TypeError, match="holds a function already"):
        f.__init__(lambda: 2)
    for change in (f._move, lambda: f.__init_handle_by_constructor__(baton.convert, [1]), lambda: f.__setstate__("{}")):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert f() == 1
    empty = baton.PackedFunc.__new__(baton.PackedFunc)
    with pytest.raises(ValueError, match="holds no function"):
        empty()


def test_function_that_replaces_itself_while_it_runs():
    """PF-026 PF-027: registration changed from inside a call; the caller's function stays."""

    def replaces():
        baton.register_func("test.replaces", lambda: "new", override=True)
        gc.collect()
        return "old"

    baton.register_func("test.replaces", replaces, override=True)
    f = baton.get_global_func("test.replaces")
    assert f() == "old"
    assert f() == "old"
    assert baton.get_global_func("test.replaces")() == "new"
    baton._ffi.remove_global_func("test.replaces")
    assert baton.get_global_func("test.replaces", allow_missing=True) is None
    assert f() == "old"
    baton._ffi.remove_global_func("test.replaces")


def test_functions_that_were_replaced_are_freed():
    """PF-015: the registry releases what it no longer gives out (a little later: a caller may have just asked for it)."""

    class Call:
        def __call__(self):
            return 1

    f = Call()
    alive = weakref.ref(f)
    baton.register_func("test.replaced", f, override=True)
    del f
    for _ in range(300):
        baton.register_func("test.replaced", lambda: 2, override=True)
    gc.collect()
    assert alive() is None
    baton._ffi.remove_global_func("test.replaced")


@pytest.mark.parametrize("name", ["", " ", "a.b..c", "\N{SNOWMAN}", "new\nline", "%s%n", "x" * 10_000])
def test_names_with_odd_characters(name):
    """PF-026: any text is a name."""
    baton.register_func(name, lambda: name, override=True)
    assert baton.get_global_func(name)() == name
    assert name in baton.list_global_func_names()
    with pytest.raises(ValueError, match="registered already"):
        baton.register_func(name, lambda: None)
    baton._ffi.remove_global_func(name)


def test_override_is_asked_for():
    """PF-026: a taken name is an error, and the first function stays."""
    baton.register_func("test.taken", lambda: 1, override=True)
    with pytest.raises(ValueError, match="`test.taken` is registered already; ask for overriding"):
        baton.register_func("test.taken", lambda: 2)
    assert baton.get_global_func("test.taken")() == 1
    baton._ffi.remove_global_func("test.taken")


def test_registry_changed_from_many_threads():
    """PF-026: registered, looked up, called and removed at the same time."""
    failures = []

    def work(k):
        try:
            for i in range(200):
                name = f"test.race.{(k + i) % 5}"
                baton.register_func(name, lambda i=i: i, override=True)
                f = baton.get_global_func(name, allow_missing=True)
                assert f is None or isinstance(f(), int)
                baton._ffi.remove_global_func(name)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_callback_that_raises_on_another_thread():
    """PF-014: the error reaches the thread that waits, as the same object; the next call is not touched by it."""
    on_thread = baton.get_global_func("testing.call_on_thread")
    on_thread.release_gil = True
    raised = ZeroDivisionError("there")

    def fails():
        raise raised

    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            on_thread(fails)
        assert caught.value is raised
        assert on_thread(lambda: 5) == 5


def test_threads_of_python_call_at_the_same_time():
    """PF-014 PF-015: nested callbacks from eight threads."""

    def nest(n):
        return n if n == 0 else call(nest, n - 1) + 1

    results = []
    threads = [threading.Thread(target=lambda: results.append(nest(40))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [40] * 8


def test_fork_with_callbacks_and_threads():
    """Reliability: a child that forks while others call goes on calling, and ends."""
    done = _python("""
import baton, os, threading
call = baton.get_global_func("testing.call")
stop = False
def busy():
    while not stop: call(lambda x: x, 1)
threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads: t.start()
pids = []
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        assert call(lambda x: x + 1, 1) == 2
        try: call(lambda: 1 // 0)
        except ZeroDivisionError: os._exit(7)
        os._exit(1)
    pids.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids]
stop = True
for t in threads: t.join()
assert codes == [7] * 5, codes
print("ok")
""")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_exit_while_python_threads_call():
    """Reliability: daemon threads in the middle of calls and callbacks when the interpreter goes."""
    done = _python("""
import baton, threading, time
call = baton.get_global_func("testing.call")
on_thread = baton.get_global_func("testing.call_on_thread")
on_thread.release_gil = True
def busy():
    while True:
        call(lambda x: x, [1, "a"])
        on_thread(lambda: 1)
for _ in range(3): threading.Thread(target=busy, daemon=True).start()
time.sleep(0.05)
print("bye")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_classes_of_objects_are_plain():
    """A class that adds nothing is not watched by the collector; one that adds something, or a __del__, works as any class."""

    class Plain(baton.runtime.Array):
        __slots__ = ()

    class Full(baton.Object):
        pass

    x = Full.__new__(Full)
    x.anything = 3
    assert x.anything == 3
    deleted = []

    class Watched(baton.Object):
        __slots__ = ()

        def __del__(self):
            deleted.append(1)

    for _ in range(3):
        Watched.__new__(Watched)
    gc.collect()
    assert deleted == [1, 1, 1]
    a = Plain([1, 2])
    assert list(a) == [1, 2]


def test_iterating_an_array_keeps_its_elements():
    """The elements that were iterated stay the same Python objects; no cycle is made through them."""
    echo = baton.get_global_func("testing.echo")
    a = echo([[1], [2]])
    first = list(a)
    assert [x is y for x, y in zip(first, a, strict=False)] == [True, True]
    assert a[0] is first[0]
    assert a[-1] is first[-1]

    assert hash(a) == hash(echo([[1], [2]]))
    assert a == [[1], [2]]
