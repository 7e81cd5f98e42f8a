# SPDX-License-Identifier: Apache-2.0
"""Modules: functions by name."""

from .._core import Object
from .._ffi.hook import Hook
from . import _ffi_api
from .attrs import make_node, plain_value
from .base import astext
from .expr import GlobalVar, RelayExpr
from .function import BaseFunc
from .type import GlobalTypeVar

# An expression as a function of its free variables, and the standard library: both are Relay's.
_function_of = Hook("ir.function_of")
_import_std = Hook("ir.import_std")
_enter = Hook("ir.enter")  # what the standard library has under a name unknown to the module: whether something was added


def _global_var(name):
    return GlobalVar(name) if isinstance(name, str) else name


class IRModule(Object, key="IRModule"):
    """Functions by global variable, and data types by name.

    mod = baton.IRModule({"main": func})      # or baton.IRModule.from_expr(func)
    mod["main"], mod["abs"] = mod["main"], other
    """

    __slots__ = ()

    def __init__(self, functions=None, type_definitions=None):
        functions = {_global_var(k): v for k, v in (functions or {}).items()}
        types = {GlobalTypeVar(k) if isinstance(k, str) else k: v for k, v in (type_definitions or {}).items()}
        self.__init_handle_by_constructor__(_ffi_api.IRModule, functions, types)

    def __setitem__(self, var, func):
        """Adds a function, replacing one of the same name."""
        self._add(var, func, True)

    def _add(self, var, val, update=True):
        if isinstance(val, RelayExpr):
            if isinstance(var, str):
                var = _ffi_api.Module_GetGlobalVar(self, var) if _ffi_api.Module_ContainGlobalVar(self, var) else GlobalVar(var)
            if not isinstance(val, BaseFunc):
                val = _function_of(val)
            _ffi_api.Module_Add(self, var, val, update)
        else:
            _ffi_api.Module_AddDef(self, GlobalTypeVar(var) if isinstance(var, str) else var, val, update)

    def __getitem__(self, var):
        """A function by name or global variable; a data type by its variable."""
        if isinstance(var, str):
            return _ffi_api.Module_Lookup_str(self, self._entered(var))
        if isinstance(var, GlobalVar):
            return _ffi_api.Module_Lookup(self, var)
        return _ffi_api.Module_LookupDef(self, var)

    def _entered(self, name):
        """The name of a function, which is added where it belongs to the tensors of the prelude and is asked for."""
        if name.startswith("tensor_") and not _ffi_api.Module_ContainGlobalVar(self, name):
            _enter(self, name)
        return name

    def __contains__(self, var):
        return bool(_ffi_api.Module_ContainGlobalVar(self, var if isinstance(var, str) else var.name_hint))

    def __delitem__(self, var):
        _ffi_api.Module_Remove(self, self.get_global_var(var) if isinstance(var, str) else var)

    def __len__(self):
        return len(self.functions)

    def __iter__(self):
        return iter(self.get_global_vars())

    def __bool__(self):
        return True

    def functions_items(self):
        """(global variable, function) in order of insertion."""
        return self.functions.items()

    def update(self, other):
        """Adds all functions and data types of another module or dict, replacing those of equal name."""
        if isinstance(other, dict):
            other = IRModule(other)
        _ffi_api.Module_Update(self, other)

    def update_func(self, var, func):
        """Replaces a function."""
        _ffi_api.Module_Add(self, var, func, True)

    def get_global_var(self, name) -> "GlobalVar":
        """The global variable of a name. Raises ValueError that lists those there are."""
        return _ffi_api.Module_GetGlobalVar(self, self._entered(name))

    def get_global_vars(self):
        """All global variables, in order of insertion."""
        return list(_ffi_api.Module_GetGlobalVars(self))

    def get_global_type_var(self, name):
        """The variable of a data type's name."""
        if name.startswith("tensor_") and all(var.name_hint != name for var in self.type_definitions):
            _enter(self, name)
        return _ffi_api.Module_GetGlobalTypeVar(self, name)

    def get_global_type_vars(self):
        """The variables of all data types' names."""
        return list(self.type_definitions)

    def get_constructor(self, tag):
        """The constructor of this tag, which `constructor.tag` tells. Raises ValueError where no data type has it."""
        for definition in self.type_definitions.values():
            for constructor in definition.constructors:
                if constructor.tag == tag:
                    return constructor
        raise ValueError(f"no data type of the module has a constructor with the tag {tag}")

    def get_type(self, name):
        """(variable, *constructors) of a data type."""
        var = self.get_global_type_var(name)
        return (var, *_ffi_api.Module_LookupDef(self, var).constructors)

    def get_attr(self, attr_key, default=None):
        """Value of an attribute of the module, or the default."""
        return default if self.attrs is None else self.attrs.get(attr_key, default)

    def with_attr(self, attr_key, attr_value):
        """A copy with an attribute more."""
        attrs = {**(dict(self.attrs.items()) if self.attrs is not None else {}), attr_key: plain_value(attr_value)}
        return make_node("IRModule", functions=self.functions, type_definitions=self.type_definitions, attrs=make_node("DictAttrs", dict=attrs))

    def shallow_copy(self):
        """Another module of the same functions."""
        return _ffi_api.Module_Copy(self)

    __copy__ = shallow_copy

    @staticmethod
    def from_expr(expr, functions=None, type_defs=None) -> "IRModule":
        """A module whose `main` is the expression, as a function of its free variables if it is not one. A function with the attribute
        "global_symbol" has that name."""
        functions = {_global_var(k): v for k, v in (functions or {}).items()}
        symbol = expr.attrs["global_symbol"] if isinstance(expr, BaseFunc) and expr.attrs and "global_symbol" in expr.attrs else None
        mod = IRModule({symbol: expr, **functions}) if symbol else _ffi_api.Module_FromExpr(expr, functions)
        for var, data in (type_defs or {}).items():
            mod._add(var, data)
        return mod

    @staticmethod
    def of_main(expr) -> "IRModule":
        """A module whose `main` is the expression, whatever name a function has."""
        return _ffi_api.Module_FromExpr(expr, {})

    def import_from_std(self, file_to_import="prelude.rly"):
        """Adds a file of the standard library: the prelude."""
        _import_std(self, file_to_import)

    def astext(self, show_meta_data=True, annotate=None, show_types=True):
        """The text form, which `baton.relay.parse` reads. `annotate(call)` gives a comment for each call; without it, comments say the types
        of calls and constants that are known, and the names of nodes of imported models, unless `show_types` is False."""
        return astext(self, show_meta_data, annotate, show_types)

    def __repr__(self):
        """The text form; of a module that has loops, what is to be read, not what can be parsed."""
        return astext(self, all(func.type_key != "tir.PrimFunc" for func in self.functions.values()))

    __str__ = __repr__

    def _repr_html_(self):
        """The text for notebooks, coloured."""
        from ..runtime import html

        return html.program(self.script(), f"IRModule of {', '.join(sorted('@' + v.name_hint for v in self.get_global_vars())[:8])}")

    def script(self):
        """The text form without bulky constants."""
        return astext(self, False)

    def show(self):
        """Prints the text form."""
        print(self.script())
