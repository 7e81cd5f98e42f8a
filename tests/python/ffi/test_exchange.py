# SPDX-License-Identifier: Apache-2.0
"""PF-010: tensors exchanged with NumPy and PyTorch without a copy: DLPack's protocol and its table of C functions."""

import gc
import weakref

import numpy as np
import pytest

import baton

echo = baton.get_global_func("testing.echo")
kind_of = baton.get_global_func("testing.kind_of")


def test_numpy_shares_memory_both_ways():  # PF-010
    ours = baton.nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    theirs = np.from_dlpack(ours)
    theirs[0, 1] = 9
    assert ours.numpy()[0, 1] == 9
    source = np.zeros((2, 2), "int64")
    back = baton.from_dlpack(source)
    source[1, 1] = 5
    assert back.numpy()[1, 1] == 5
    assert ours.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        ours.__dlpack__(dl_device=(2, 0), copy=False)


def test_arguments_are_lent_and_results_are_owned():  # PF-010
    a = np.arange(4, dtype="int32")
    assert kind_of(a) == "DLTensor"
    kept = echo(a)
    a[:] = 0
    assert kept.numpy().tolist() == [0, 1, 2, 3], "what is kept is a copy"


@pytest.mark.parametrize(
    "make", [lambda: np.ones((2, 0)), lambda: np.array(3.5), lambda: np.arange(12).reshape(3, 4).T, lambda: np.arange(10)[::2], lambda: np.ones((2,) * 9)]
)
def test_every_layout_of_numpy(make):  # PF-010
    a = make()
    assert echo(a).numpy().tolist() == a.tolist()


def test_table_of_c_functions_is_lent():  # PF-010
    import ctypes

    capsule = type(baton.nd.array([1])).__dlpack_c_exchange_api__
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    assert name(capsule) == b"dlpack_exchange_api"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    words = (ctypes.c_uint64 * 7).from_address(pointer(capsule, b"dlpack_exchange_api"))
    assert words[0] & 0xFFFFFFFF == 1, "major version"
    assert all(words[2:]), "every function is there"
    # The view of an array, straight from the table.
    a = baton.nd.array(np.arange(3, dtype="float32"))
    view = (ctypes.c_uint64 * 6)()
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(words[5])
    assert call(a, ctypes.addressof(view)) == 0
    assert view[0] == a.data_ptr


class TestTorch:
    """PF-010 with PyTorch."""

    @pytest.fixture(autouse=True)
    def torch(self):
        self.torch = pytest.importorskip("torch")

    def test_lent_and_given_back(self):
        t = self.torch.arange(6, dtype=self.torch.float32).reshape(2, 3)
        assert kind_of(t) == "DLTensor"
        assert echo(t).numpy().tolist() == t.tolist()
        assert echo(t.t()).numpy().tolist() == t.t().tolist()
        assert kind_of(self.torch.nn.Parameter(t)) == "DLTensor"

    def test_written_by_a_callback(self):
        t = self.torch.zeros(3)

        def writes(x):
            x[:] = 5

        baton.get_global_func("testing.fill")(writes, t)
        assert t.tolist() == [5, 5, 5]

    def test_no_copy_either_way(self):
        t = self.torch.zeros(4)
        ours = baton.from_dlpack(t)
        assert ours.data_ptr == t.data_ptr()
        back = self.torch.from_dlpack(ours)
        assert back.data_ptr() == t.data_ptr()
        back[2] = 7
        assert ours.numpy()[2] == 7

    def test_memory_lives_as_long_as_it_is_seen(self):
        t = self.torch.ones(1000)
        alive = weakref.ref(t)
        ours = baton.from_dlpack(t)
        del t
        gc.collect()
        assert ours.numpy().sum() == 1000
        del ours
        gc.collect()
        assert alive() is None

    def test_types_and_empty_ones(self):
        for dtype in (self.torch.bfloat16, self.torch.float16, self.torch.int8, self.torch.bool):
            t = self.torch.zeros((2, 0, 3), dtype=dtype)
            assert echo(t).shape == (2, 0, 3)

    def test_what_cannot_be_lent_is_an_error(self):
        with pytest.raises(Exception, match="."):
            echo(self.torch.zeros(2).to_sparse())
