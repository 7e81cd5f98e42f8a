# SPDX-License-Identifier: Apache-2.0
"""Passes of Relay, and how to write one in Python."""

from ..._ffi import get_global_func, list_global_func_names
from ...ir.transform import (
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    make_pass_decorator,
    module_pass,
    pass_doc,
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


def _doc(name):
    return pass_doc("relay._transform.", name)


def build_config(opt_level=2, required_pass=None, disabled_pass=None, trace=None, instruments=None, config=None):
    """The same as `PassContext(...)`, under the name of older programs."""
    return PassContext(opt_level, required_pass, disabled_pass, instruments, config, trace)


def FuseOps(fuse_opt_level=-1):
    """Groups operators that become one kernel. `fuse_opt_level` -1 takes the context's level; 0 fuses nothing."""
    return _ffi_api.FuseOps(fuse_opt_level)


def EliminateCommonSubexpr(fskip=None):
    """Computes equal expressions once, but those that `fskip(expr)` says to leave."""
    return _ffi_api.EliminateCommonSubexpr(fskip)


def DeadCodeElimination(inline_once=False, ignore_impurity=False):
    """Drops bindings that are not used and have no effect, with `ignore_impurity` those with effects too; with `inline_once`,
    puts values that are used once in their place, unless they read or write state."""
    return _ffi_api.DeadCodeElimination(inline_once, ignore_impurity)


def SimplifyExpr(fp=None):
    """Replaces expressions by simpler equal ones, by tables of local identities. fp: what may change in floating values:
    "strict" nothing, "contract" NaN and the sign of zero, "fast" rounding too; without one as the option `fp` of the
    context says, else strict."""
    return _ffi_api.SimplifyExpr() if fp is None else _ffi_api.SimplifyExpr(fp)


def RemoveUnusedFunctions(entry_functions=None):
    """Drops functions that cannot be reached from `entry_functions` (main). One that the module does not have is a ValueError."""
    return _ffi_api.RemoveUnusedFunctions(list(entry_functions or ["main"]))


def EtaExpand(expand_constructor=False, expand_global_var=False):
    """Constructors or global functions that are not called become functions that call them."""
    return _ffi_api.EtaExpand(expand_constructor, expand_global_var)


def PlanDevices(default_device=None):
    """Decides on which device each expression runs and writes it down; what no annotation decides goes to
    `default_device` (a device, its name or its DLPack number), without one to that of the option
    `relay.fallback_device_type`, else to the CPU."""
    from ..op.sugar import _device_type
    return _ffi_api.PlanDevices() if default_device is None else _ffi_api.PlanDevices(_device_type(default_device))


def CombineParallelConv2D(min_num_branches=3):
    """One `nn.conv2d` for at least `min_num_branches` on the same data that differ in their weights alone, together with
    the elementwise operators behind them; each branch takes its channels of the result.

        x ── conv2d(w1) ── relu          x ── conv2d(concatenate(w1, w2)) ── relu ─┬─ strided_slice
          └─ conv2d(w2) ── relu     =>                                             └─ strided_slice
    """
    return _ffi_api.CombineParallelConv2D(min_num_branches)


def CombineParallelDense(min_num_branches=3, to_batch=True, to_batch_matmul=None):
    """One product for at least `min_num_branches` `nn.dense` of the same data, together with the elementwise operators
    behind them: a `nn.batch_matmul` of weights of one shape, or, with `to_batch=False`, a `nn.dense` with the units of all,
    whose numbers may differ. `to_batch_matmul` is another name of `to_batch`."""
    return _ffi_api.CombineParallelDense(min_num_branches, to_batch if to_batch_matmul is None else to_batch_matmul)


def CombineParallelBatchMatmul(min_num_branches=3):
    """One `nn.batch_matmul` for at least `min_num_branches` with the same first factor, together with the elementwise
    operators behind them."""
    return _ffi_api.CombineParallelBatchMatmul(min_num_branches)


def Legalize(legalize_map_attr_name="FTVMLegalize"):
    """Replaces calls by what `relay.op.op.register_legalize` registered for their operator:
    `f(attrs, inputs, types)` gets the types of the arguments and, last, of the result, and gives an expression or None."""
    return _ffi_api.Legalize(legalize_map_attr_name)


def SplitArgs(max_function_args=255):
    """Concatenations of more than `max_function_args` parts become several, so that no kernel has more arguments."""
    return _ffi_api.SplitArgs(max_function_args)


def ConvertLayout(desired_layouts=None):
    """Runs operators in other orders of dimensions: `{"nn.conv2d": ["NHWC", "default"]}` has the layouts of data and weight,
    "default" for the usual one. What lies between such operators follows, so that transforms stand at the ends alone.
    Blocks of channels (NCHW16c) are AlterOpLayout's."""
    return _ffi_api.ConvertLayout({k: list(v) for k, v in (desired_layouts or {}).items()})


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


def ToMixedPrecision(mixed_precision_type="float16", missing_op_mode=1):
    """Computes convolutions and products of matrices in float16 or bfloat16, with sums in float32, and what follows on them where
    nothing is lost; everything else stays in float32, parameters and results too. `missing_op_mode`: what becomes of operators that
    nobody knows; 0: they are errors, 1 and 2: they stay as they are. `relay.op.register_mixed_precision_conversion` says it of one."""
    return _ffi_api.ToMixedPrecision(mixed_precision_type, missing_op_mode)


def MergeComposite(pattern_table=()):
    """Puts what the patterns of a table match into functions that carry the pattern's name as `Composite`.

    pattern_table: tuples (name, pattern) or (name, pattern, check), where `check(expr)` false leaves a match alone; or the name
    of a table that `relay.op.contrib.register_pattern_table` knows. Earlier patterns of the table win."""
    if isinstance(pattern_table, str):
        from ..op.contrib import get_pattern_table
        name, pattern_table = pattern_table, get_pattern_table(pattern_table)
        if pattern_table is None:
            raise ValueError(f"there is no pattern table `{name}`; register_pattern_table makes one")
    names, patterns, checks = [], [], []
    for row in pattern_table:
        if len(row) not in (2, 3):
            raise ValueError(f"a row of a pattern table is (name, pattern) or (name, pattern, check), got {len(row)} values")
        names.append(row[0])
        patterns.append(row[1])
        checks.append(row[2] if len(row) == 3 else lambda extract: True)
    return _ffi_api.MergeComposite(names, patterns, checks)


def FoldConstant(fold_qnn=False):
    """Evaluates what is constant; operators on quantized tensors (qnn.*), which passes look for, with `fold_qnn` alone."""
    return _ffi_api.FoldConstant(fold_qnn)


def AnnotateTarget(targets=(), include_non_call_ops=True):
    """Marks what other compilers take, by name (one, or a list in the order of preference): calls of operators whose attribute
    `target.NAME`, `f(call) -> bool`, says so, and calls of composites called `NAME.x`; with `include_non_call_ops`, tuples of what
    one of them computes too."""
    return _ffi_api.AnnotateTarget([targets] if isinstance(targets, str) else list(targets), include_non_call_ops)


def PartitionGraph(mod_name="default", bind_constants=True):
    """A global function for each region that is marked for a compiler, `@tvmgen_default_NAME_main_0`. With `bind_constants`, constants
    stand in these functions; else they are arguments.

    A program compiles and runs with such functions: they are computed by Baton, as if they had not been made."""
    return _ffi_api.PartitionGraph(mod_name, bind_constants)


def InlineCompilerFunctionsBoundTo(global_vars):
    """Calls of these functions, which PartitionGraph made, become their bodies."""
    return _ffi_api.InlineCompilerFunctions([v if isinstance(v, str) else v.name_hint for v in global_vars])


def InferTypeLocal(expr):
    """The type of an expression, without a module."""
    return _ffi_api.InferTypeLocal(expr)


def FakeQuantizationToInteger(hard_fail=False, use_qat=False):
    """What stands between `qnn.dequantize` and `qnn.quantize` is computed in integers, by a rule for each operator; regions with an operator
    that has none stay as they are. Convolutions, products, arithmetic, pools, functions of one tensor and what moves values have rules; a
    program gives its operators' by `relay.op.register_fake_quantization_to_integer`. Integer results differ from the others by rounding.

    hard_fail: errors of a program's rules are raised; without it they leave the region as it is. use_qat is not there: put a
    `qnn.quantize` behind what is to become integers.
    """
    return _ffi_api.FakeQuantizationToInteger(hard_fail, use_qat)


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
        raise ValueError(f"mode is {mode!r}; it is \"higher_order\" or \"first_order\"")
    made, grown = get_global_func(_PREFIX + "higher_order_gradient")(expr, own)
    if mod is not None and len(grown) > len(mod):
        mod.update(grown)
    return made


def _with_module(name, func, mod):
    """Calls a form that gives (the function, the module with what it calls), and lets the module grow."""
    from ...ir import IRModule
    own = IRModule() if mod is None else mod
    made, grown = get_global_func(_PREFIX + name)(func, own)
    if len(grown) > len(own):
        own.update(grown)
    return made


def to_cps(func, mod=None):
    """A function in continuation-passing style: it gets one more parameter `k`, a function that it calls with what it would have
    returned, and one more type parameter, the answer, which is what `k` gives. What it calls, branches and matches pass their results
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


def __getattr__(name):
    """A pass of C++ without parameters worth naming: a function that passes its arguments on."""
    if name.startswith("_") or get_global_func(_PREFIX + name, allow_missing=True) is None:
        raise AttributeError(f"there is no pass `{name}`")

    def make(*args):
        return get_global_func(_PREFIX + name)(*args)

    make.__name__ = make.__qualname__ = name
    make.__doc__, make.__module__ = _doc(name), "baton.relay.transform"
    globals()[name] = make
    return make


def __dir__():
    found = (n[len(_PREFIX):] for n in list_global_func_names() if n.startswith(_PREFIX))
    return sorted({*globals(), *(n for n in found if "." not in n)})


__all__ = ["AnnotateTarget", "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense", "ConvertLayout", "DeadCodeElimination", "Defunctionalization", "EliminateCommonSubexpr", "EtaExpand", "FakeQuantizationToInteger", "FoldConstant", "FoldConstantExpr", "FunctionPass", "FuseOps", "InferTypeLocal", "InlineCompilerFunctionsBoundTo", "LayoutConfig", "Legalize",
           "ModulePass", "Pass", "PassContext", "PartitionGraph", "PassInfo", "PlanDevices", "PrintIR", "RemoveUnusedFunctions", "Sequential", "SimplifyExpr", "SplitArgs", "ToMixedPrecision",
           "build_config", "function_pass", "gradient", "module_pass", "sequential", "to_cps", "un_cps"]
