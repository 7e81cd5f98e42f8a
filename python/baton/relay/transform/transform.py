# SPDX-License-Identifier: Apache-2.0
"""Passes of Relay, and how to write one in Python."""

from ... import error as errors
from ..._ffi import get_global_func
from ...ir.transform import (
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    make_pass_decorator,
    module_pass,
    pass_functions,
    sequential,
)
from . import _ffi_api

_PREFIX = "relay._transform."


class FunctionPass(Pass, key="relay.FunctionPass"):
    """A pass over the functions of a module, one at a time; made by `function_pass`."""

    __slots__ = ()


function_pass = make_pass_decorator(lambda body, info: _ffi_api.MakeFunctionPass(body, info), FunctionPass, "transform_function")
function_pass.__name__ = function_pass.__qualname__ = "function_pass"
function_pass.__doc__ = """Makes a pass over functions of a function `(func, mod, ctx) -> func` or of a class with
`transform_function(self, func, mod, ctx)`.

    @relay.transform.function_pass(opt_level=1)
    class Replace:
        def __init__(self, new_func):
            self.new_func = new_func

        def transform_function(self, func, mod, ctx):
            return self.new_func

    new_mod = Replace(f1)(mod)

It cannot add or delete functions; those annotated SkipOptimization are left alone.
"""


def build_config(opt_level=2, required_pass=None, disabled_pass=None, trace=None, instruments=None, config=None):
    """The same as `PassContext(...)`, under the name of older programs."""
    return PassContext(opt_level, required_pass, disabled_pass, instruments, config, trace)


class LayoutConfig:
    """`with LayoutConfig(skip_layers=[0]):` ConvertLayout leaves these `nn.conv2d` as they are, counted from 0."""

    current = None

    def __init__(self, skip_layers=None):
        self.skip_layers = list(skip_layers or [])
        self._before = None

    def __enter__(self):
        self._before = (LayoutConfig.current, get_global_func("relay.LayoutConfigSkip")(self.skip_layers))
        LayoutConfig.current = self
        return self

    def __exit__(self, *_):
        LayoutConfig.current, layers = self._before
        get_global_func("relay.LayoutConfigSkip")(layers)


def MergeComposite(pattern_table=()):
    """Wraps each match of a table's patterns in a function with the pattern's name as its attribute `Composite`.

    pattern_table: tuples (name, pattern) or (name, pattern, check), where `check(expr)` false leaves a match alone; or the name
    of a table that `relay.op.contrib.register_pattern_table` knows. Earlier patterns of the table win."""
    if isinstance(pattern_table, str):
        from ..op.contrib import get_pattern_table

        name, pattern_table = pattern_table, get_pattern_table(pattern_table)
        if pattern_table is None:
            raise errors.ValueError(f"there is no pattern table `{name}`; register_pattern_table makes one")
    names, patterns, checks = [], [], []
    for row in pattern_table:
        if len(row) not in (2, 3):
            raise errors.ValueError(f"a row of a pattern table is (name, pattern) or (name, pattern, check), got {len(row)} values")
        names.append(row[0])
        patterns.append(row[1])
        checks.append(row[2] if len(row) == 3 else lambda extract: True)
    return _ffi_api.MergeComposite(names, patterns, checks)


def InlineCompilerFunctionsBoundTo(global_vars):
    """Calls of these functions, which PartitionGraph made, become their bodies."""
    return _ffi_api.InlineCompilerFunctions([v if isinstance(v, str) else v.name_hint for v in global_vars])


def InferTypeLocal(expr):
    """The type of an expression, without a module."""
    return _ffi_api.InferTypeLocal(expr)


def FoldConstantExpr(expr, mod=None):
    """An expression with its constant parts evaluated."""
    from ...ir import IRModule

    return _ffi_api.FoldConstantExpr(expr, mod if mod is not None else IRModule())


def gradient(expr, mod=None, mode="higher_order"):
    """A function that takes what a function takes and gives `(its result, (the gradient by each parameter))`. The adjoint
    of each element of the result is 1, so a gradient is that of the sum of the result.

    `expr` is a function, or the name of one of `mod`. mode "first_order" takes dataflow alone and gives dataflow, as long
    as the program and its operators' rules; "higher_order" takes all of Relay (closures, references, recursion, data
    types), gives closures and references, and can be applied again; functions of `mod` that are called get forms that go
    back, which are added to `mod`. Parameters that are not floating have zeros for a gradient. Operators say theirs by
    `relay.op.register_gradient`; one without is an error that names it.

        x = relay.var("x", shape=(3,))
        grad = relay.transform.gradient(relay.Function([x], x * x), mode="first_order")
        relay.create_executor("graph").evaluate(grad)([1.0, 2.0, 3.0])  # [[1, 4, 9], [[2, 4, 6]]]
    """
    from ...ir import IRModule

    own = IRModule() if mod is None else mod
    if mode == "first_order":
        return get_global_func(_PREFIX + "first_order_gradient")(expr, own)
    if mode != "higher_order":
        raise errors.ValueError(f"mode is {mode!r}; it is \"higher_order\" or \"first_order\"")
    made, grown = get_global_func(_PREFIX + "higher_order_gradient")(expr, own)
    if mod is not None and len(grown) > len(mod):
        mod.update(grown)
    return made


def _with_module(name, func, mod):
    """Calls a function that returns (function, module with its callees), and updates the module."""
    from ...ir import IRModule

    own = IRModule() if mod is None else mod
    made, grown = get_global_func(_PREFIX + name)(func, own)
    if len(grown) > len(own):
        own.update(grown)
    return made


def to_cps(func, mod=None):
    """A function in continuation-passing style: it gets one more parameter `k`, a function that it calls with what it would have
    returned, and one more type parameter, the answer, which is what `k` gives. Its calls, branches and matches pass their results
    on to continuations too, function values take one more argument; operators, tuples and references are bound by lets.

    Global functions that it calls get such forms (`@f_cps`), which are added to `mod`. Types are inferred as needed. A data type with a
    field whose type names a function is an error; functions in place of its parameters (`List[fn (int32) -> int32]`) are not.

        x = relay.var("x", shape=(), dtype="int32")
        cps = relay.transform.to_cps(relay.Function([x], x + x))
        # fn [Answer](%x: int32, %k: fn (int32) -> Answer) -> Answer { let %x1 = add(%x, %x); %k(%x1) }
    """
    return _with_module("to_cps", func, mod)


def un_cps(func, mod=None):
    """A function without the continuation that `to_cps` gave it: the answer is the result itself, and the continuation gives back what it
    gets. Functions among its parameters and in its result stay in continuation-passing style. `mod` has the types of what it calls where
    they are not inferred yet."""
    from ...ir import IRModule

    return get_global_func(_PREFIX + "un_cps")(func, IRModule() if mod is None else mod)


def Defunctionalization(func=None, mod=None):
    """`func` as a first-order program: functions as values become data.

    Each type of functions becomes a data type, each function expression a constructor of it with what it captures, and a call of a value
    a call of the data type's function `@apply_Fn`. Functions of `mod` that take or give functions, and those that call them, are cloned
    for the types that they are called at; all that is made is added to `mod`. `func` is returned as it is where it needs nothing of that.

    `func` has no type parameters, and no functions in the types of its parameters and its result. A function with type parameters must be
    bound by a let or be global, and be used where its type is known. Without arguments, the pass that does so to @main.

        mod = relay.fromtext('#[version = "0.0.5"]\\ndef @main(%x: int32) { let %f = fn (%y: int32) { add(%x, %y) }; %f(%f(1)) }')
        mod["main"] = relay.transform.Defunctionalization(mod["main"], mod)
    """
    if func is None:
        return get_global_func(_PREFIX + "Defunctionalization")()
    return _with_module("defunctionalized", func, mod)


def _device_number(device):
    """The DLPack number of a device, its name or itself."""
    from ..op.sugar import _device_type

    return _device_type(device)


__getattr__, pass_names = pass_functions(
    _PREFIX,
    __name__,
    CombineParallelDense={"aliases": {"to_batch": "to_batch_matmul"}},  # Relay's name in Python, and in C++
    PlanDevices={"convert": {"default_device": _device_number}},
    SimplifyExpr={"defaults": {"fp": "relay"}},
)


def __dir__():
    return sorted({*globals(), *pass_names()})


__all__ = [
    "FoldConstantExpr",
    "FunctionPass",
    "InferTypeLocal",
    "InlineCompilerFunctionsBoundTo",
    "LayoutConfig",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "build_config",
    "function_pass",
    "gradient",
    "module_pass",
    "sequential",
    "to_cps",
    "un_cps",
]
