# SPDX-License-Identifier: Apache-2.0
"""Helpers of baton.contrib: downloads, archives, folders, compilers, BLAS, values that are kept, sparse arrays."""

import os

import numpy as np
import pytest

import baton as tvm
import baton.testing
from baton import relay, te, topi
from baton.contrib import utils


def run(expr_or_func, *args, kind="graph"):
    func = expr_or_func if isinstance(expr_or_func, relay.Function) else relay.Function(relay.analysis.free_vars(expr_or_func), expr_or_func)
    return relay.create_executor(kind, target="llvm").evaluate(func)(*args)


def test_sparse_operators():
    dense = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]], "float32")
    sparse, x = tvm.contrib.sparse.array(dense), np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(sparse.numpy(), dense)
    parts = (sparse.data.numpy(), sparse.indices.numpy(), sparse.indptr.numpy())
    a = relay.var("a", shape=(2, 3))
    np.testing.assert_allclose(run(relay.nn.sparse_dense(a, parts), x).numpy(), x @ dense.T)
    np.testing.assert_allclose(run(relay.nn.sparse_dense(a, parts, sparse_lhs=True), x).numpy(), dense @ x.T)
    b = relay.var("b", shape=(3, 3))
    np.testing.assert_allclose(run(relay.nn.sparse_add(b, parts), np.ones((3, 3), "float32")).numpy(), 1 + dense)
    data, indices, indptr = run(relay.Function([], relay.nn.sparse_transpose(parts).astuple()))
    again = tvm.contrib.sparse.array((data, indices, indptr), shape=(3, 3))
    np.testing.assert_array_equal(again.numpy(), dense.T)
    A, B = tvm.contrib.sparse.placeholder((3, 3), 3, "float32", name="A"), te.placeholder((3, 2), name="B")
    f = tvm.build([A.data, A.indices, A.indptr, B, topi.sparse.csrmm(A, B)], target="llvm")
    out = tvm.nd.empty((3, 2), "float32")
    f(sparse.data, sparse.indices, sparse.indptr, tvm.nd.array(x.T.copy()), out)
    np.testing.assert_allclose(out.numpy(), dense @ x.T)


def test_downloads(tmp_path, monkeypatch):
    from baton.contrib.download import download, download_testdata

    source = tmp_path / "source.txt"
    source.write_text("text")
    download(source.as_uri(), tmp_path / "a" / "copy.txt")
    assert (tmp_path / "a" / "copy.txt").read_text() == "text"
    monkeypatch.setenv("TEST_DATA_ROOT_PATH", str(tmp_path / "data"))
    path = download_testdata(source.as_uri(), "t.txt", module=["x", "y"])
    assert path == str(tmp_path / "data" / "x" / "y" / "t.txt") and os.path.exists(path)
    source.write_text("other")
    download_testdata(source.as_uri(), "t.txt", module=["x", "y"])
    assert (tmp_path / "data" / "x" / "y" / "t.txt").read_text() == "text"
    with pytest.raises(OSError):
        download((tmp_path / "none").as_uri(), tmp_path / "b", retries=0)


def test_compilers_of_the_system(tmp_path, monkeypatch):
    from baton.contrib import clang, ndk

    if not clang.find_clang(required=False):
        with pytest.raises(RuntimeError, match="clang was not found"):
            clang.create_llvm("int f() { return 1; }")
    else:
        assert "define" in clang.create_llvm('extern "C" int f() { return 1; }')
    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    with pytest.raises(RuntimeError, match="TVM_NDK_CC"):
        ndk.create_shared(str(tmp_path / "a.so"), [])


def test_blas_by_name():
    from baton.contrib import cblas, mkl

    A, B = te.placeholder((2, 3), name="A"), te.placeholder((4, 3), name="B")
    f = tvm.build([A, B, cblas.matmul(A, B, transb=True)], target="llvm")
    x, y = np.ones((2, 3), "float32"), np.full((4, 3), 2, "float32")
    out = tvm.nd.empty((2, 4), "float32")
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y.T)
    assert mkl is cblas


def test_executors_that_are_not_there():
    from baton.contrib import pipeline_executor
    from baton.contrib.cuda_graph import cuda_graph_executor

    assert not pipeline_executor.pipeline_executor_enabled()
    with pytest.raises(tvm.error.UnsupportedError, match="pipeline"):
        pipeline_executor.build({})
    lib = relay.build(tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,)))), "llvm")
    with pytest.raises(tvm.error.UnsupportedError, match="NVIDIA"):
        cuda_graph_executor.create("", lib, tvm.cuda())
    model = cuda_graph_executor.GraphModuleCudaGraph(lib["default"](tvm.cpu()))
    model.set_input("x", np.zeros(2, "float32"))
    model.run_cuda_graph()
    assert model.get_output(0).numpy().tolist() == [1, 1]


def test_facts_of_the_build():
    info = tvm.support.libinfo()
    assert info["USE_LLVM"] == "ON" and info["USE_CUDA"] == "OFF" and info["LLVM_VERSION"].count(".") == 2
    module = tvm.support.FrontendTestModule("run")
    module.add_function("run", lambda x: x + 1)
    assert module["run"](2) == 3 and module(2) == 3


def test_archives(tmp_path):
    from baton.contrib.tar import tar, untar

    (tmp_path / "one").write_text("1")
    tar(str(tmp_path / "all.tar"), [str(tmp_path / "one")])
    untar(str(tmp_path / "all.tar"), str(tmp_path / "out"))
    assert (tmp_path / "out" / "one").read_text() == "1"
    import tarfile

    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        archive.add(tmp_path / "one", arcname="../two")
    with pytest.raises((ValueError, tarfile.TarError)):
        untar(str(tmp_path / "evil.tar"), str(tmp_path / "out"))
    assert not (tmp_path / "two").exists()


CALLS = []


def test_values_that_are_computed_once():
    from baton.contrib.pickle_memoize import memoize

    CALLS.clear()

    @memoize("test_values")
    def add(a, b=1):
        CALLS.append(a)
        return a + b

    assert [add(1), add(1), add(1, b=2), add(2)] == [2, 2, 3, 3] and CALLS == [1, 1, 2]


def test_files_and_programs(tmp_path):
    from baton.contrib import cc, utils

    with utils.filelock(str(tmp_path / "lock")) as lock:
        assert lock is not None
    assert utils.is_source_path("a.cc") and not utils.is_source_path("a.o") and utils.which("no-such-program-at-all") is None
    assert (cc.create_shared.get_target_triple() or "-").count("-") >= 1
    if cc.get_cc():
        (tmp_path / "a.cc").write_text('extern "C" int one() { return 1; }')
        cc.create_shared(str(tmp_path / "a.so"), str(tmp_path / "a.cc"))
        assert (tmp_path / "a.so").exists()


def test_temporary_folders():
    folder = utils.tempdir()
    path = folder.temp_dir
    assert path in utils.TempDirectory.TEMPDIRS and folder.relpath("a").startswith(path)
    folder.remove()
    assert path not in utils.TempDirectory.TEMPDIRS
    with utils.TempDirectory.set_keep_for_debug():
        kept = utils.tempdir()
        gone = utils.TempDirectory(keep_for_debug=False)
    kept.remove(), gone.remove()
    assert kept.temp_dir in utils.TempDirectory.TEMPDIRS and gone.temp_dir not in utils.TempDirectory.TEMPDIRS
    utils.TempDirectory.remove_tempdirs()
    assert not utils.TempDirectory.TEMPDIRS and tvm.contrib.utils is utils


def test_contrib():
    from baton.contrib.pickle_memoize import memoize

    @memoize('p6.mem', save_at_exit=False)
    def f(a):
        return a + 1

    assert f(1) == 2
    from baton.contrib import tar, utils

    d = utils.tempdir()
    open(d.relpath('a'), 'w').write('x')
    assert d.listdir() == ['a']
    assert os.path.isdir(d.temp_dir)
    tar.tar(d.relpath('t.tar'), [d.relpath('a')])
    tar.untar(d.relpath('t.tar'), d.relpath('out'))
    found = utils.filelock(d.relpath('lk'))
    with found:
        pass
    d.remove()
    from baton.contrib.popen_pool import PopenWorker

    w = PopenWorker()
    w.send(abs, [-3])
    assert w.recv() == 3
    w.kill()


def test_sparse_nd():
    from baton.contrib import sparse as s

    a = s.array(np.array([[0, 1.0], [2, 0]], 'float32'), tvm.cpu())
    assert a.shape == (2, 2)
    assert (a.asnumpy() == [[0, 1], [2, 0]]).all()
    assert a.dtype == 'float32'
    p = s.placeholder((te.var('m'), te.var('n')), nonzeros=te.var('nz'), name='A')
    assert p.stype == 'csr'
    assert p.data is not None
