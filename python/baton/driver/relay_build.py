# SPDX-License-Identifier: Apache-2.0
"""Building and evaluating Relay programs."""

from .. import error as errors
from .._ffi import get_global_func
from ..ir import IRModule, TensorType
from ..relay.expr import Constant
from ..relay.function import Function
from ..runtime import NDArray
from ..runtime import ndarray as nd
from ..runtime.values import fitted
from .executors import AotExecutor, Executor, GraphExecutor, Interpreter, VMExecutor
from .external import compiled_outside
from .options import capsule
from .outside import import_all, made_outside
from .targets import target_of, targets_of


def _module(mod):
    if isinstance(mod, IRModule):
        return mod
    if isinstance(mod, Function):
        return IRModule.of_main(mod)
    raise errors.TypeError(f"a program is an IRModule or a Function of Relay, not {type(mod).__name__}")


def _bind(mod, params):
    types = {p.name_hint: p.type_annotation for p in mod["main"].params}
    values = {k: _param(k, v, types[k]) for k, v in (params or {}).items() if k in types}
    return get_global_func("driver.BindParams")(mod, values) if values else mod


def _param(name, value, kind):
    """A value for a parameter of a type, as an array."""
    array = value.data if isinstance(value, Constant) else value
    array = array if isinstance(array, NDArray) else nd.array(array)
    return fitted(array, kind.dtype, name) if isinstance(kind, TensorType) else array


def build(
    ir_mod, target=None, target_host=None, executor=None, runtime=None, workspace_memory_pools=None, constant_memory_pools=None, params=None, mod_name="default"
):
    """Compiles a module of Relay to a module of code, under the current PassContext.

        with baton.transform.PassContext(opt_level=3):
            lib = relay.build(mod, target="llvm", params=params)
        model = graph_executor.GraphModule(lib["default"](baton.cpu()))

    params: arrays by the name of `main`'s parameters; they become part of the code. target: as "llvm -mcpu=skylake";
    without one the current target, else this machine; "opencl" puts the whole program on an OpenCL device. A dict gives a
    target for each device, {"cpu": "llvm", "opencl": "opencl"}, a list the same for the devices of its targets; such a
    program is planned by `relay.transform.PlanDevices`, and runs on `lib["default"](baton.cpu(), baton.opencl(0))`.
    `executor`, `runtime` and `target_host` are accepted for old programs: there is one engine, and the host is cpu. By position the order
    of 0.8 is taken, too: `build(mod, target, target_host, params, mod_name)`.
    """
    if isinstance(executor, dict):  # the order of 0.8: ir_mod, target, target_host, params, mod_name
        params, mod_name = executor, runtime or mod_name
        executor = runtime = None
    mod, modules = made_outside(_bind(_module(ir_mod), params))
    targets = targets_of(target)
    with capsule():
        if targets:
            made = get_global_func("driver.CompileForDevices")(mod, targets)
        else:
            made = get_global_func("driver.Compile")(mod, target_of(target))
    import_all(made, modules)
    made.ir_mod, made.target, made.libmod_name = mod, targets or target_of(target), mod_name
    made.function_metadata, made.executor = {}, executor
    return made


def optimize(mod, target=None, params=None):
    """The module after the built-in passes, and the parameters that were not made part of it."""
    mod = _bind(_module(mod), params)
    return get_global_func("driver.Optimize")(mod, target_of(target)), {}


class BuildModule:
    """The steps of `build`, one by one; parameters are kept between them."""

    def __init__(self):
        self.params, self._made = {}, None

    def set_params(self, params):
        """Binds arrays to parameters of `main` by name, in what is compiled from here on."""
        self.params = {**self.params, **params}

    def get_params(self):
        """The parameters as `build` made them: constants of the graph by name. Empty before it."""
        return {} if self._made is None else self._made.get_params()

    def optimize(self, mod, target=None, target_host=None, params=None):
        """(the module after the built-in passes, the parameters that were not made part of it)."""
        return optimize(mod, target, {**self.params, **(params or {})})

    def build(self, mod, target=None, target_host=None, params=None, executor="graph", mod_name="default"):
        """Compiles a module; (graph JSON, the module of code, its parameters)."""
        self._made = build(mod, target, params={**self.params, **(params or {})}, mod_name=mod_name)
        return tuple(self._made)

    def get_module(self):
        """The module of code. Raises ValueError before `build`."""
        if self._made is None:
            raise errors.ValueError("nothing was compiled yet")
        return self._made

    def get_json(self):
        """The graph JSON of what was compiled."""
        return self.get_module().get_graph_json()

    get_graph_json = get_json


def bind_params_by_name(func, params):
    """The function with parameters of these names replaced by constants."""
    return _bind(IRModule.of_main(func), params)["main"]


def create_executor(kind="debug", mod=None, device=None, target="llvm", params=None):
    """Something that evaluates programs: `create_executor("graph", mod).evaluate()(x, y)`.

    kind: "debug" interprets operator by operator; "graph" and "aot" compile a program with fixed shapes; "vm" compiles any.
    """
    kinds = {"debug": Interpreter, "graph": GraphExecutor, "aot": AotExecutor, "vm": VMExecutor}
    if kind not in kinds:
        raise errors.ValueError(f"no executor is called `{kind}`; there are {', '.join(kinds)}")
    mod = IRModule() if mod is None else _module(mod)
    if params:
        mod = _bind(mod, params)
    mod = compiled_outside(mod)
    return kinds[kind](mod, device or nd.cpu(), target)


def evaluator(func):
    """Returns a function that computes a program's function from arrays: an array, or a list of them."""
    return create_executor("vm", IRModule.of_main(func)).evaluate()


__all__ = ["BuildModule", "Executor", "bind_params_by_name", "build", "create_executor", "evaluator", "optimize"]
