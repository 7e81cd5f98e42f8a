# SPDX-License-Identifier: Apache-2.0
"""NDArray, NumPy and DLPack (PF-010)."""

import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import baton

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.int4,
    ml_dtypes.uint4,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 4)], ids=str)
def test_numpy_round_trip(dtype, shape):
    want = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    a = baton.nd.array(want)
    assert a.shape == shape and a.dtype == want.dtype.name and a.device == baton.cpu() and a.size == want.size
    got = a.numpy()
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()
    assert (np.asarray(a) == want).all()


def test_numpy_is_a_copy_and_asarray_is_not():
    a = baton.nd.array(np.zeros(4, np.float32))
    a.numpy()[:] = 1
    assert a.numpy().sum() == 0
    shared = np.asarray(a)
    shared[:] = 2
    assert a.numpy().sum() == 8
    address = a.data_ptr
    assert shared.ctypes.data == address and np.from_dlpack(a).ctypes.data == address
    del a
    assert shared.sum() == 8, "the view keeps the array"


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[::2, ::-1],
        lambda x: x.T,
        lambda x: x[1:, 1:3],
        lambda x: np.asfortranarray(x),
        lambda x: x[:, :0],
        lambda x: np.broadcast_to(x[0], (5, 6)),
        lambda x: x[..., None, None, None, None, None, None, None, None],
    ],
)
def test_strided_arrays(make):
    x = make(np.arange(24, dtype=np.int32).reshape(4, 6))
    assert (baton.nd.array(x).numpy() == x).all()


def test_unaligned_and_swapped():
    raw = np.zeros(9, np.uint8)
    odd = raw[1:].view(np.float32)
    odd[:] = [1, 2]
    assert baton.nd.array(odd).numpy().tolist() == [1, 2]
    packed = np.zeros(3, [("a", np.uint8), ("b", np.float32)])
    packed["b"] = [1, 2, 3]
    assert baton.nd.array(packed["b"]).numpy().tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="byte order is swapped"):
        baton.nd.array(np.zeros(2, ">f4"))


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([{}]), np.zeros(2, [("a", int)]), np.zeros(2, "datetime64[s]")])
def test_arrays_without_counterpart(bad):
    with pytest.raises(TypeError):
        baton.nd.array(bad)


def test_lists_and_numbers():
    assert baton.nd.array([[1, 2], [3, 4]]).shape == (2, 2)
    assert baton.nd.array(3.5).shape == () and float(baton.nd.array(3.5)) == 3.5
    assert baton.nd.array([1]).item() == 1 and bool(baton.nd.array([0])) is False and len(baton.nd.array([1, 2])) == 2
    with pytest.raises(ValueError, match="more than one"):
        bool(baton.nd.array([1, 2]))
    assert baton.nd.array([1, 2]).tolist() == [1, 2] and np.arange(5)[baton.nd.array(2)] == 2


def test_empty_and_copy():
    a = baton.nd.empty((2, 3), "int32")
    a.copyfrom(np.arange(6).reshape(2, 3))
    assert a.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    b = a.copyto(baton.cpu(0))
    assert not b.same_as(a) and (b.numpy() == a.numpy()).all()
    c = baton.nd.empty((2, 3), "int32")
    assert a.copyto(c).same_as(c) and c[1, 2] == 5
    c[0] = 9
    c[1, 0] = a[0, 1]
    assert c.numpy().tolist() == [[9, 9, 9], [1, 4, 5]]
    assert a.reshape(3, 2).shape == a.reshape((3, 2)).shape == a.reshape(-1, 2).shape == (3, 2)
    with pytest.raises(ValueError):
        a.copyfrom(np.zeros((3, 2), np.int32))
    with pytest.raises(ValueError):
        baton.nd.empty((-1,))
    with pytest.raises((ValueError, MemoryError)):
        baton.nd.empty((2**40, 2**40))


def test_dlpack_in_shares():
    x = np.arange(4.0)
    a = baton.from_dlpack(x)
    x[0] = 5
    assert a.numpy()[0] == 5
    fixed = np.arange(3)
    fixed.flags.writeable = False
    b = baton.from_dlpack(fixed)
    assert b.read_only and np.asarray(b).flags.writeable is False
    with pytest.raises(ValueError, match="read-only"):
        b[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        b.copyfrom(np.arange(3))


def test_dlpack_arguments():
    a = baton.nd.array(np.arange(3))
    assert a.__dlpack_device__() == (1, 0)
    capsule = a.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    again = baton.from_dlpack(capsule)
    assert again.data_ptr == a.data_ptr
    with pytest.raises(TypeError, match="used already"):
        baton.from_dlpack(capsule)
    assert baton.from_dlpack(a.__dlpack__()).data_ptr == a.data_ptr
    assert baton.from_dlpack(a.__dlpack__(copy=True)).data_ptr != a.data_ptr
    before = a._use_count()
    unused = a.__dlpack__(max_version=(1, 0))
    assert a._use_count() == before + 1
    del unused
    assert a._use_count() == before


class Exporter:
    """Speaks DLPack by an inner array; the oldest form has no keywords."""

    def __init__(self, inner, old):
        self.inner, self.old = inner, old

    def __dlpack__(self, **kwargs):
        if self.old and kwargs:
            raise TypeError("no keywords")
        return self.inner.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


@pytest.mark.parametrize("old", [False, True])
def test_dlpack_exporters_as_arguments(old):
    summary = baton.get_global_func("runtime.NDArrayShape")
    inner = np.zeros((2, 5))
    call = baton.get_global_func("testing.call")
    assert call(lambda t: t.shape, Exporter(inner, old)) == [2, 5]
    assert baton.nd.array(Exporter(inner, old)).shape == (2, 5)
    assert summary(baton.from_dlpack(Exporter(inner, old))) == [2, 5]


def test_exporter_that_lies():
    class Liar:
        def __dlpack__(self, **_):
            return 3

    with pytest.raises(TypeError, match="no DLPack capsule"):
        baton.from_dlpack(Liar())


def test_pickle_and_text():
    a = baton.nd.array(np.arange(3, dtype=np.float32))
    assert (pickle.loads(pickle.dumps(a)).numpy() == a.numpy()).all()
    assert "cpu(0)" in repr(a) and str(a) == "[0. 1. 2.]"


def test_numpy_array_in_containers_is_copied():
    x = np.zeros(2)
    a = baton.convert([x])
    x[0] = 1
    assert a[0].numpy().tolist() == [0, 0]


def test_a_second_device_is_there_from_the_start():
    """In a process that has done nothing else: its library is loaded when the device is asked for."""
    code = "import baton; a = baton.nd.empty((4,), 'int32', baton.device('ext_dev')); a[:] = 3; print(a.numpy().sum(), a.device)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("12 ext_dev(0)", "")
