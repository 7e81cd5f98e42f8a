# SPDX-License-Identifier: Apache-2.0
"""Saved models: loaded, asked for their inputs and outputs, run."""

import os
from collections.abc import Mapping
from ctypes import byref, c_void_p
from typing import NamedTuple

import numpy as np

from .library import WRAPPERS, Function, Object, check, lib
from .tensor import NDArray, dtype_name


class Module(Object):
    """Compiled code. `module["name"]` gives a function; "default", called with devices or without, gives an executor."""

    __slots__ = ()

    def get_function(self, name, query_imports=False):
        """The function of a name; with `query_imports` also those of modules that this one calls. AttributeError if there is none."""
        out = c_void_p()
        check(lib.BatonModuleGetFunction(self.handle, name.encode(), query_imports, byref(out)))
        if not out.value:
            raise AttributeError(f"the module has no function `{name}`")
        return Function(out.value)

    __getitem__ = get_function


WRAPPERS.update({key: Module for key in ("runtime.Module",)})


def load_module(path):
    """The module in a file that Baton wrote."""
    out = c_void_p()
    check(lib.BatonModuleLoad(os.fsencode(path), byref(out)))
    return Module(out.value)


class TensorInfo(NamedTuple):
    """An input or output; an extent that is open is None."""

    name: str
    dtype: str
    shape: tuple

    def __str__(self):
        return f"{self.name} {self.dtype}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"


def _infos(executor, side):
    info = executor[f"get_{side}_info"]
    rows = [info(i) for i in range(executor[f"get_num_{side}s"]())]
    return tuple(TensorInfo(name, dtype_name(dtype), tuple(d if d >= 0 else None for d in shape)) for name, shape, dtype in rows)


class Model:
    """A model that is called with its inputs, in order or by name.

        model = baton_runtime.load("model.so")
        y = model(x).numpy()

    Inputs are NumPy arrays or anything with DLPack, of the dtype and shape that `inputs` says. The result is one NDArray, or where the
    model gives a tuple a tuple. It can be called from several threads at once.
    """

    def __init__(self, module, device=None):
        devices = [] if device is None else device if isinstance(device, (list, tuple)) else [device]
        try:
            make = module["default"]
        except AttributeError:
            raise ValueError("the module holds no model that can be run") from None
        self.module = module
        self._make = lambda: make(*devices)
        executor = self._make()
        self.inputs, self.outputs = _infos(executor, "input"), _infos(executor, "output")
        self._idle = [executor["call"]]  # an executor runs one call at a time

    def __call__(self, *args, **kwargs):
        values = self._bind(args, kwargs)
        try:
            run = self._idle.pop()
        except IndexError:
            run = self._make()["call"]
        try:
            return run(*values)
        except Exception as error:
            self._explain(values, error)
            raise
        finally:
            self._idle.append(run)

    def _bind(self, args, kwargs):
        names = [info.name for info in self.inputs]
        if len(args) == 1 and isinstance(args[0], Mapping):
            args, kwargs = (), {**args[0], **kwargs}
        if len(args) > len(names):
            raise TypeError(f"the model takes {len(names)} inputs ({', '.join(names)}), {len(args)} were given")
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name in values:
                raise TypeError(f"input `{name}` is given twice, by place and by name")
            if name not in names:
                raise TypeError(f"the model has no input `{name}`; its inputs are {', '.join(names) or 'none'}")
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise TypeError(f"input `{missing[0]}` is missing; the inputs are {', '.join(map(str, self.inputs))}")
        return [v if isinstance(v, NDArray) or hasattr(v, "__dlpack__") else np.asarray(v) for v in (values[name] for name in names)]

    def _explain(self, values, error):
        """Raises a better error where an argument does not fit."""
        for info, value in zip(self.inputs, values, strict=True):
            dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
            if dtype != info.dtype:
                raise TypeError(f"input `{info.name}` is {info.dtype}, {dtype} was given") from error
            if len(shape) != len(info.shape) or any(w not in (None, n) for n, w in zip(shape, info.shape, strict=True)):
                raise ValueError(f"input `{info.name}` has shape {info.shape}, {shape} was given") from error

    def __repr__(self):
        sides = (", ".join(map(str, infos)) for infos in (self.inputs, self.outputs))
        return f"<baton_runtime.Model {' -> '.join(sides)}>"


def load(path, device=None):
    """The model in a file that `baton compile`, `Executable.save` or `export_library` wrote. `device`: where it runs, or a list of
    devices."""
    return Model(load_module(path), device)


class GraphModule:
    """The graph executor's interface: `GraphModule(load_module(path)["default"](cpu()))`, then `set_input`, `run`, `get_output`."""

    def __init__(self, module):
        self.module = module
        self._set_input, self._run, self._get_output = module["set_input"], module["run"], module["get_output"]

    def set_input(self, key=None, value=None, **params):
        """Copies a value to an input, by name or number; and those of `params`, by name."""
        for name, array in {**({} if key is None else {key: value}), **params}.items():
            self._set_input(name, array if isinstance(array, NDArray) or hasattr(array, "__dlpack__") else np.asarray(array))

    def run(self, **inputs):
        """Runs the model, on inputs by name if they are given."""
        self.set_input(**inputs)
        self._run()

    def get_num_inputs(self):
        """Number of inputs."""
        return self.module["get_num_inputs"]()

    def get_num_outputs(self):
        """Number of outputs."""
        return self.module["get_num_outputs"]()

    def get_output(self, index):
        """An output of the last run, by number."""
        return self._get_output(index)
