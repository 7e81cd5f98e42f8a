# SPDX-License-Identifier: Apache-2.0
"""Facts about programs."""

import enum
import math

from .._ffi import get_global_func
from ..ir import IRModule, Op, RelayExpr, TensorType, structural_hash
from ..ir.transform import PassContext
from .call_graph import CallGraph  # noqa: F401
from .expr import Call, Var
from .expr_functor import _METHODS
from .function import Function
from .op.sugar import _device_type
from .type_functor import TypeVisitor


class Feature(enum.IntEnum):
    """Features of the language that a program may use. `fGraph` and `fLetRec` are names alone: `detect_feature` does not tell of them."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


def _api(name):
    return get_global_func("relay.analysis." + name)


def post_order_visit(expr, fvisit):
    """Calls `fvisit` on each node, inputs first, once a node."""
    _api("post_order_visit")(expr, fvisit)


def free_vars(expr):
    """Free variables in order of first use."""
    return list(_api("free_vars")(expr))


def bound_vars(expr):
    """Variables that the expression binds."""
    return list(_api("bound_vars")(expr))


def all_vars(expr):
    """All variables, in order of first use."""
    return list(_api("all_vars")(expr))


def bind(expr, binds):
    """The expression with free variables replaced."""
    return _api("bind")(expr, dict(binds))


def _types(expr):
    found, bound = {}, {}

    class Collect(TypeVisitor):
        def visit_type_var(self, tv):
            found[tv.handle] = tv

        def visit_func_type(self, ft):
            for var in ft.type_params:
                bound[var.handle] = var
            super().visit_func_type(ft)

    collect = Collect()

    def visit(e):
        field = "type_annotation" if isinstance(e, Var) else "ret_type" if isinstance(e, Function) else None
        written = e._field(field) if field else None
        if written is not None:
            collect.visit(written)
        for var in getattr(e, "type_params", None) or ():
            found[var.handle] = bound[var.handle] = var
        for t in e._field("type_args") if isinstance(e, Call) else ():
            collect.visit(t)

    if isinstance(expr, RelayExpr):
        post_order_visit(expr, visit)
    else:
        collect.visit(expr)
    return found, bound


def all_type_vars(expr, mod=None):
    """All type variables of an expression or type."""
    return list(_types(expr)[0].values())


def bound_type_vars(expr, mod=None):
    """Type variables that an expression or type binds."""
    return list(_types(expr)[1].values())


def free_type_vars(expr, mod=None):
    """Type variables that an expression or type does not bind."""
    found, bound = _types(expr)
    return [v for k, v in found.items() if k not in bound]


def all_dtypes(expr):
    """The set of the element types in a typed expression."""
    return {str(dtype) for dtype in _api("all_dtypes")(expr)}


def well_formed(expr) -> bool:
    """Whether every variable is bound once and used in its scope."""
    return bool(_api("well_formed")(expr))


def check_kind(t, mod=None):
    """The kind of a type; an error if the type is not well formed."""
    return _api("check_kind")(t, mod if mod is not None else IRModule())


def check_constant(expr):
    """Whether the expression is a constant, or made of constants alone."""
    return bool(_api("check_constant")(expr))


def check_basic_block_normal_form(expr):
    """True if each value that several blocks (bodies, branches, clauses) use is bound by a let in the block around them; an error
    else."""
    return bool(_api("check_basic_block_normal_form")(expr))


def unmatched_cases(match, mod=None):
    """Patterns that no clause of a match covers."""
    return list(_api("unmatched_cases")(match, mod if mod is not None else IRModule()))


def explain_placement(mod, default_device="cpu"):
    """Where PlanDevices puts each expression, and what it copies: {"places": [...], "copies": [...]}. Each place has
    `function`, `expression`, `place` (in the text), `device_type` and `because`; each copy `src_dev_type`,
    `dst_dev_type`, `bytes` (-1: not known before it runs), `formula` ("12 * ? + 16": the bytes, with `?` for what is open; ""
    for data of any length) and `because`."""
    found = _api("Placement")(mod, _device_type(default_device))
    return {kind: [dict(row.items()) for row in found[kind]] for kind in ("places", "copies")}


def detect_feature(a, b=None):
    """The features of the language that an expression, or a module's functions, use: a set of Feature."""
    names = {
        "visit_" + words: feature
        for words, feature in {
            "var": Feature.fVar,
            "global_var": Feature.fGlobalVar,
            "constant": Feature.fConstant,
            "tuple": Feature.fTuple,
            "tuple_getitem": Feature.fTupleGetItem,
            "function": Feature.fFunction,
            "op": Feature.fOp,
            "call": Feature.fCall,
            "let": Feature.fLet,
            "if": Feature.fIf,
            "ref_create": Feature.fRefCreate,
            "ref_read": Feature.fRefRead,
            "ref_write": Feature.fRefWrite,
            "constructor": Feature.fConstructor,
            "match": Feature.fMatch,
        }.items()
    }
    found = set()
    for x in (a, b):
        for expr in x.functions.values() if isinstance(x, IRModule) else [] if x is None else [x]:
            post_order_visit(expr, lambda e: found.update(names[_METHODS[c]] for c in type(e).__mro__ if c in _METHODS))
    return found


def list_op_freqs(mod):
    """How often each operator is called, by name."""
    counts = {}

    def visit(e):
        if isinstance(e, Call) and isinstance(e.op, Op):
            counts[e.op.name] = counts.get(e.op.name, 0) + 1

    for func in mod.functions.values() if isinstance(mod, IRModule) else [mod]:
        post_order_visit(func, visit)
    return counts


def list_op_types(mod):
    """Names of the operators that are called, each once."""
    return list(list_op_freqs(mod))


def get_total_mac_number(expr):
    """Multiplications of convolutions and matrix products; types must be inferred."""
    total = 0

    def visit(e):
        nonlocal total
        if not (isinstance(e, Call) and isinstance(e.op, Op) and isinstance(e.checked_type, TensorType)):
            return
        out = math.prod(e.checked_type.concrete_shape)
        weight = e.args[1].checked_type.concrete_shape if len(e.args) > 1 else ()
        if e.op.name.startswith("nn.conv") and "transpose" in e.op.name:
            # As Relay counts: a whole kernel for each element of the result, also where a stride leaves some of it out.
            data, layout = e.args[0].checked_type.concrete_shape, e.attrs.data_layout
            kernel = [weight[k] for k, letter in enumerate(e.attrs.kernel_layout) if letter in "DHW"]
            total += out * math.prod(kernel) * data[layout.index("C")] // e.attrs.groups
        elif e.op.name.startswith("nn.conv"):
            kernel = e.attrs.kernel_layout.index("O")
            total += out * math.prod(weight) // weight[kernel]
        elif e.op.name in ("nn.dense", "nn.batch_matmul", "nn.matmul"):
            total += out * e.args[0].checked_type.concrete_shape[-1]

    post_order_visit(expr, visit)
    return total


def count_layers(expr, valid_ops):
    """The longest chain of calls of these operators, in an expression or in the `main` of a module."""
    expr, depth = expr["main"] if isinstance(expr, IRModule) else expr, {}

    def visit(e):
        inputs = []
        for field in ("args", "fields"):
            inputs += list(getattr(e, field, None) or ())
        for field in ("tuple", "body", "value", "op"):
            x = getattr(e, field, None)
            if isinstance(x, RelayExpr):
                inputs.append(x)
        own = int(isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in valid_ops)
        depth[e.handle] = own + max((depth.get(x.handle, 0) for x in inputs), default=0)

    post_order_visit(expr, visit)
    return depth.get(expr.handle, 0)


def search_fc_transpose(expr):
    """Names of the parameters whose transpose is the weight of an `nn.dense`, in order of first use."""
    names = {}

    def visit(e):
        if isinstance(e, Call) and isinstance(e.op, Op) and e.op.name == "nn.dense":
            weight = e.args[1]
            if isinstance(weight, Call) and weight.op == Op.get("transpose") and isinstance(weight.args[0], Var):
                axes = weight.attrs.axes
                if axes is None or [int(a) for a in axes] == [1, 0]:
                    names[weight.args[0].name_hint] = True

    post_order_visit(expr, visit)
    return list(names)


def extract_fused_functions(mod):
    """Structural hash -> function, of the primitive functions that fusion at level 3 makes of a module."""
    from .transform import FuseOps, InferType, SimplifyInference  # made from the registry, when asked for

    with PassContext(opt_level=3):
        for make in (InferType, SimplifyInference, InferType, FuseOps, InferType):
            mod = make()(mod)
    found = {}

    def look(node):
        if isinstance(node, Function) and node.attrs is not None and "Primitive" in node.attrs and node.attrs["Primitive"]:
            found[structural_hash(node)] = node

    for func in mod.functions.values():
        if isinstance(func, Function):
            post_order_visit(func, look)
    return found


def __getattr__(name):
    func = None if name.startswith("_") else get_global_func("relay.analysis." + name, allow_missing=True)
    if func is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return func
