# SPDX-License-Identifier: Apache-2.0
"""Modules that are not there. Programs import them, and often use no more of them than a `with` that chooses tuned kernels: that does
nothing and says so once. Any other use is an UnsupportedError that says what to use instead."""

import copy
import types
import warnings

from ..error import UnsupportedError
from . import instead_of

_said = set()


def _say(path, what):
    if path not in _said:
        _said.add(path)
        warnings.warn(f"{path} {what}: {instead_of(path)}", stacklevel=3)


def _raise(path):
    raise UnsupportedError(f"{path} is not there: {instead_of(path)}")


def _is_decorated(args, kwargs):
    return len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)) and not isinstance(args[0], _Absent)


class _Absent(type):
    """The class of what a module that is not there has: each is a class, so that programs may name it as a base or in `isinstance`."""

    def __call__(cls, *args, **kwargs):
        path = cls._path
        if _is_decorated(args, kwargs):
            if cls.__name__.startswith("register"):
                _say(path, "does nothing")
                return args[0]
            return make(f"{path}:{args[0].__name__}", path)
        return _raise(path)

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return child(cls._path, name)

    def _use(cls, *args):
        return _raise(cls._path)

    __enter__ = __exit__ = __iter__ = __len__ = __getitem__ = __add__ = __mul__ = __float__ = __int__ = __index__ = _use

    def __bool__(cls):
        return True


def make(name, path):
    """In place of a name of a module that is not there."""
    last = name.replace(":", ".").rpartition(".")[2]
    base = UnsupportedError if last.endswith(("Error", "Exception")) else object
    return _Absent(last, (base,), {"__module__": path.rpartition(".")[0], "_path": path, "__doc__": f"Not there: {instead_of(path)}."})


class _Nothing:
    """A `with` that does nothing, or an object whose methods are not called."""

    _path = ""

    def __init__(self, *args, **kwargs):
        _say(self._path, "does nothing")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def load(self, *args, **kwargs):
        """Does nothing."""

    update = load


def _context(path):
    return type(path.rpartition(".")[2], (_Nothing,), {"_path": path})


def _decorator(path):
    def decorator(*args, **kwargs):
        _say(path, "does nothing")
        return args[0] if _is_decorated(args, kwargs) else lambda f: f

    return decorator


def _gives(value):
    def made(path):
        def call(*args, **kwargs):
            _say(path, f"gives {value}")
            return copy.deepcopy(value)

        return call

    return made


def _scope(path):
    return types.SimpleNamespace(silent=True, in_tuning=False, deprecated_cuda_target_arch=None, tuning=False)


class _Current:
    current = None


# Ends of paths -> what programs use of them without harm.
_HARMLESS = {
    "autotvm": {
        "apply_history_best": _context,
        "ApplyHistoryBest": _context,
        "ApplyGraphBest": _context,
        "ApplyConfig": _context,
        "FallbackContext": _context,
        "tophub.context": _context,
        "tophub.check_backend": _gives(None),
        "GLOBAL_SCOPE": _scope,
        "DispatchContext": lambda path: _Current,
        "register_topi_compute": _decorator,
        "register_topi_schedule": _decorator,
        "template": _decorator,
        "register_customized_task": _decorator,
        "extract_from_program": _gives([]),
        "extract_from_multiple_program": _gives([]),
        "measure_option": _gives(None),
        "LocalBuilder": _context,
        "LocalRunner": _context,
        "RPCRunner": _context,
    },
    "auto_scheduler": {
        "ApplyHistoryBest": _context,
        "ApplyHistoryBestOrSample": _context,
        "register_workload": _decorator,
        "register_task_input_check_func": _decorator,
        "is_auto_scheduler_enabled": _gives(False),
        "extract_tasks": _gives(([], [])),
    },
    "relay": {
        name: _gives(False) for name in ("ethosn_available", "is_arm_compute_runtime_enabled", "is_tensorrt_runtime_enabled", "is_ethosu_runtime_enabled")
    },
    "contrib": {name: _gives(False) for name in ("can_use_thrust", "can_use_rocthrust")},
    "meta_schedule": {"ApplyHistoryBest": _context},
    "micro": {},
    "script": {},
}
_made = {}


def child(path, name):
    """Returns the substitute of a name in a module that is not there, or in part of it."""
    full = f"{path}.{name}"
    if full not in _made:
        words = full.split(".")
        table = _HARMLESS.get(words[1], {})
        harmless = table.get(name) or table.get(".".join(words[-2:]))
        _made[full] = harmless(full) if harmless else make(full, full)
    return _made[full]


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return child(self.__name__, name)

    def __dir__(self):
        return []


def create_module(spec):
    """The module of a path that is not there."""
    module = _Module(spec.name, f"Not there: {instead_of(spec.name)}.")
    module.__all__ = []
    return module


def exec_module(module):
    """Nothing is left to run."""
