# SPDX-License-Identifier: Apache-2.0
"""Modules: compiled code, loaded from a file or made in memory."""

import collections
import functools
import os
import re
import tempfile

from .._core import Object, PackedFunc
from .._ffi import get_global_func, register_object
from .._ffi.base import load_vm
from .._ffi.hook import Hook
from . import archive
from .object_file import write_object
from .runner import Runner

# The graph of what `relay.build` gave, as JSON, and its constants by name; None where it has none.
_graph_of = Hook("runtime.graph_of")
_read_archive = Hook("runtime.read_archive")
_rpc_function = Hook("runtime.rpc_function")  # name -> the function of the library of remote sessions, which it loads

# Functions of modules run code of any length, so they do not hold Python's lock.


@register_object("runtime.Module")
class Module(Object):
    """Compiled code. `mod["name"]` and `mod.get_function("name")` give its functions. The module of `relay.build` tells `ir_mod`, the program,
    `target` and `libmod_name`."""

    def get_function(self, name, query_imports=False):
        """The function of this name. Raises AttributeError if there is none."""
        func = get_global_func("runtime.ModuleGetFunction")(self, name, bool(query_imports))
        if func is None:
            func = self._of_factory(name)
        if func is None:
            raise AttributeError(f"the module has no function `{name}`")
        if isinstance(func, PackedFunc):
            func.release_gil = True
        return func

    def _of_factory(self, name):
        """The other named functions of modules of Relay's graph executor."""
        if name == "get_graph_json" and self.implements_function("default"):
            return self.get_graph_json
        if name == "remove_params" and self.implements_function("default"):
            return self.get_lib
        if name == "debug_create" and self.implements_function("default"):
            return self._debug_create
        return self.get_function("default") if name == getattr(self, "libmod_name", "default") != "default" else None

    _graph = None

    def _debug_create(self, name, *devices):
        made = self["default"](*devices)
        made._made_by = self
        return made

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise ValueError("a module is indexed by the name of a function")
        return self.get_function(name)

    @property
    def entry_func(self):
        """The function "main", or the only one."""
        return self.get_function(self.entry_name, True)

    @property
    def entry_name(self):
        """Name of what calling the module calls."""
        return "main" if self.implements_function("main", True) else _ENTRIES.get(self.handle, "main")

    def __call__(self, *args):
        return self.entry_func(*args)

    @property
    def type_key(self):
        """Kind of the module, as "library" or "llvm"."""
        return str(get_global_func("runtime.ModuleGetTypeKey")(self))

    type_key_of_module = type_key

    @property
    def num_lookups(self):
        """How often compiled code of this module has looked up a function by name: once a place that calls one."""
        return get_global_func("runtime.ModuleNumLookups")(self)

    def implements_function(self, name, query_imports=False):
        """Whether the module has a function of this name."""
        return get_global_func("runtime.ModuleGetFunction")(self, name, bool(query_imports)) is not None

    def get_source(self, fmt=""):
        """Source or text of the code in a format, as "ll" or "asm"; LLVM without one."""
        return get_global_func("runtime.ModuleGetSource")(self, fmt)

    @property
    def imported_modules(self):
        """Modules that this one calls."""
        return list(get_global_func("runtime.ModuleImports")(self))

    def import_module(self, module):
        """Lets this module's code call another's."""
        get_global_func("runtime.ModuleImport")(self, module)

    def save(self, file_name, fmt=""):
        """Writes the module to a file, whole or not at all: a library, or with the format or the ending ".o", ".ll" or ".s" its object code,
        LLVM or assembly; of target "c", with the ending ".c", its source. `contrib.cc.create_shared` links objects of functions to a library that `load_module` reads."""
        path = os.fsdecode(file_name)
        save, ending = get_global_func("runtime.ModuleSaveToFile"), path.rpartition(".")[2]
        fmt = fmt or (ending if ending in ("o", "obj", "ll", "s", "asm", "c") else "")
        if fmt in ("o", "obj") and self.type_key == "llvm":
            write_object(path, lambda to: save(self, to, "o"), lambda to: save(self, to, ""))
        else:
            save(self, path, fmt)

    def export_library(self, file_name, fcompile=None, addons=None, workspace_dir=None, *, fmt="", **_):
        """Writes a shared library that the runtime alone can load; by the ending `.tar` what such a library is linked of, which `load_module`
        links where the compiler is: code as an object file (of target "c" as source), constants and imports. `fcompile`, `addons` and `workspace_dir` are accepted for older programs:
        the library is linked without a compiler; but what `rpc.with_minrpc(..., runtime="micro")` gave writes a program."""
        if hasattr(fcompile, "export_model"):
            fcompile.export_model(self, file_name)
            return
        path = os.fsdecode(file_name)
        if fmt == "tar" or (not fmt and path.endswith(".tar")):
            archive.write(self, path)
        elif not fmt and path.endswith((".o", ".c")):
            self.save(path)
        else:
            get_global_func("runtime.ModuleSaveToFile")(self, path, fmt)

    @property
    def format(self):
        """Format that it is saved in: "so"."""
        return "so"

    @property
    def is_dso_exportable(self):
        """Whether it is code that a library holds."""
        return self.type_key in ("llvm", "aot", "library")

    def get_lib(self):
        """The module itself: code, weights and graph are one."""
        return self

    lib = module = property(get_lib, doc="The module itself: code, weights and graph are one.")

    def get_params(self):
        """Constants of the graph after the built-in passes, by the names of their nodes in `get_graph_json()`: what `relay.build` made of the
        parameters. They are part of the code, and an executor does without them. Empty for a module that was loaded."""
        return dict(self._made_graph()[1])

    params = property(get_params, doc="See `get_params`.")

    def _made_graph(self):
        """(graph JSON or None, constants by name) of what `relay.build` gave."""
        if self._graph is None and hasattr(self, "ir_mod"):
            self._graph = _graph_of(self)
        return self._graph or (None, {})

    def get_graph_json(self):
        """Inputs, operators after fusion and outputs, as JSON of a graph executor. For programs that look for names, shapes, dtypes and
        storage; `graph_executor.create` takes it and does not read it. For a module that was loaded, and for a program that is more than a
        graph, the whole is one operator."""
        import json

        from .devices import cpu

        graph, _ = self._made_graph()
        if graph is not None:
            return graph

        model = self["default"](cpu())
        rows, results = Runner(model).rows("input"), model["get_num_outputs"]()
        nodes = [{"op": "null", "name": row[0], "inputs": []} for row in rows]
        nodes.append(
            {
                "op": "tvm_op",
                "name": "main",
                "inputs": [[i, 0, 0] for i in range(len(rows))],
                "attrs": {"func_name": "main", "num_inputs": str(len(rows)), "num_outputs": str(results), "flatten_data": "0"},
            }
        )
        return json.dumps(
            {
                "nodes": nodes,
                "arg_nodes": list(range(len(rows))),
                "heads": [[len(rows), i, 0] for i in range(results)],
                "attrs": {"shape": ["list_shape", [list(r[1]) for r in rows]], "dltype": ["list_str", [r[2] for r in rows]]},
                "node_row_ptr": [*range(len(rows) + 1), len(rows) + results],
            }
        )

    def get_executor_config(self):
        """Returns the configuration of the executor, a JSON text: the same as `get_graph_json()`."""
        return self.get_graph_json()

    graph_json = property(get_graph_json, doc="See `get_graph_json`.")

    def __iter__(self):
        """(graph JSON, module, parameters), as programs of old unpack what `relay.build` gives."""
        return iter((self.get_graph_json(), self, self.get_params()))

    def time_evaluator(self, func_name, dev=None, number=10, repeat=1, min_repeat_ms=0, cooldown_interval_ms=0, repeats_to_cooldown=1, f_preproc=""):
        """A function that times `func_name` on its arguments: seconds a call, averaged over `number` calls, `repeat` times.
        With `min_repeat_ms`, `number` grows until a round takes that long. Before each round the registered function `f_preproc` is called:
        "cache_flush_cpu_non_first_arg" empties the caches of all arguments but the first. A function of a remote module is timed there, without the
        network."""
        from .devices import cpu

        func = self.get_function(func_name)
        if self.type_key == "rpc":
            remote = get_global_func("rpc.TimeEvaluator")(
                func, dev or cpu(), number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown, f_preproc
            )
            remote.release_gil = True
            return lambda *args: BenchmarkResult(float(seconds) for seconds in remote(*args))
        prepare = _prepares(f_preproc)
        model = self if func_name == "run" and self.implements_function("get_input_info") else None

        def wait():  # devices with their own queue go on when a call is over
            if dev is not None and dev.device_type != 1:
                get_global_func("runtime.DeviceSync")(dev)

        def evaluate(*args):
            call = functools.partial(func, *args)
            _run_once(model, call) if model is not None else call()  # the first call pays for what is made once
            wait()
            before = functools.partial(prepare, *args) if prepare else None
            return timed(call, number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown, before=before, wait=wait)

        return evaluate


def _prepares(name):
    """The function that timing calls before each round, or None."""
    found = get_global_func(name, allow_missing=True) if name else None
    if name == "cache_flush_cpu_non_first_arg" and found is None:
        _rpc_function("RuntimeDir")
        found = get_global_func(name, allow_missing=True)
    if name and found is None:
        raise ValueError(f"f_preproc: there is no function `{name}`")
    return found


def _run_once(model, run):
    """Runs a model; inputs that have no value yet are set to zeros, so that it can be timed."""
    import numpy as np

    from .ndarray import array

    while True:
        try:
            return run()
        except ValueError as e:
            unset = re.match(r"input (\d+) .*has not been set", str(e))
            if not unset:
                raise
            i = int(unset[1])
            _, shape, dtype, *_ = model["get_input_info"](i)
            model["set_input"](i, array(np.zeros([int(d) for d in shape], str(dtype))))


class BenchmarkResult:
    """Times of a benchmark, in seconds."""

    def __init__(self, results):
        self.results = tuple(results)
        ordered = sorted(self.results)
        n = len(ordered)
        self.mean = sum(ordered) / n
        self.median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
        self.min, self.max = ordered[0], ordered[-1]
        self.std = (sum((x - self.mean) ** 2 for x in ordered) / n) ** 0.5

    def __repr__(self):
        return (
            f"BenchmarkResult(min={self.min * 1e3:.4f} ms, median={self.median * 1e3:.4f} ms, mean={self.mean * 1e3:.4f} ms, "
            f"max={self.max * 1e3:.4f} ms, std={self.std * 1e3:.4f} ms)"
        )

    __str__ = __repr__

    def _repr_html_(self):
        """How the times are spread, for notebooks."""
        from . import html

        return html.times([s * 1e3 for s in self.results], "BenchmarkResult")


def timed(call, number=10, repeat=1, min_repeat_ms=0, cooldown_interval_ms=0, repeats_to_cooldown=1, most_growths=100, before=None, wait=None):
    """Returns the times of a function without arguments, in seconds a call: `repeat` times the mean of `number` calls. `number` grows, at most
    `most_growths` times, until a round takes `min_repeat_ms`. `before` is called before each round, `wait` at its end. After each
    `repeats_to_cooldown` rounds there is a pause of `cooldown_interval_ms`."""
    import time

    def spent():
        begin = time.perf_counter()
        for _ in range(number):
            call()
        if wait:
            wait()
        return time.perf_counter() - begin

    while min_repeat_ms and most_growths > 0:
        took = spent() * 1e3
        if took >= min_repeat_ms:
            break
        number, most_growths = max(number + 1, int(number * min(10, 1.2 * min_repeat_ms / max(took, 1e-3)))), most_growths - 1
    results = []
    for i in range(repeat):
        if i and cooldown_interval_ms and i % max(repeats_to_cooldown, 1) == 0:
            time.sleep(cooldown_interval_ms / 1e3)
        if before:
            before()
        results.append(spent() / number)
    return BenchmarkResult(results)


ProfileResult = collections.namedtuple("ProfileResult", ["mean", "results"])


def load_module(path, fmt=""):
    """Loads what `export_library` wrote: a library; or, by the compiler, a `.tar`, an object file of functions (`.o`), or their C source
    (`.c`). For a module of kernels, the file.cl (OpenCL) or file.ptx (CUDA) that `save` wrote."""
    path = os.fsdecode(path)
    if path.endswith((".tar", ".o", ".c")) or fmt in ("tar", "o", "c"):
        return _read_archive(path, fmt)
    if path.endswith(".cl") or fmt in ("cl", "opencl"):
        from .devices import exists, opencl

        exists(opencl(0))  # loads the library that knows such modules
        return get_global_func("opencl.LoadModule")(path)
    if path.endswith(".ptx") or fmt == "ptx":
        from .devices import cuda, exists

        exists(cuda(0))
        return get_global_func("cuda.LoadModule")(path)
    module = get_global_func("runtime.ModuleLoadFromFile")(path)
    if not module.implements_function("main"):
        with open(path, "rb") as f:
            names = set(re.findall(rb"\0baton_spec_([^\0]+)(?=\0)", f.read()))
        if len(names) == 1:
            _ENTRIES[module.handle] = names.pop().decode()
    return module


def linked_archive(path):
    """The bytes of the library that an archive is linked to, by the compiler; None for any other file."""
    if not archive.is_archive(path):
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "library.so")
        load_module(path, fmt="tar").export_library(library)
        with open(library, "rb") as made:
            return made.read()


_ENTRIES = {}  # handle of a loaded library -> name of its only function


def system_lib(symbol_prefix=""):
    """The module of the compiled functions that are linked into the program, or into a library that was loaded with
    `ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)`. symbol_prefix: what their names begin with; they are called by what follows it."""
    load_vm()
    return get_global_func("vm.SystemLib")(symbol_prefix)


def enabled(target):
    """Whether code for a target can be run here, as "llvm", "cpu", "cuda"."""
    from .devices import exists

    name = str(target).split(" ", 1)[0]
    if name == "llvm":
        import os

        from .._ffi import base

        return os.path.exists(os.path.join(base._LIB, "libbaton.so"))
    try:
        from .._core import Device

        return exists(Device(name, 0))
    except ValueError:
        return False
