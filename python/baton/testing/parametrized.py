# SPDX-License-Identifier: Apache-2.0
"""Tests that run for several values or targets, fixtures, and marks for what a test needs.

Targets that a test does not name itself, and values that belong together, are the work of the plug-in `baton.testing.plugin`.
"""

import copy
import functools
import importlib.util
import inspect
import os
import pickle
import weakref
from collections.abc import Collection

from .._ffi import base

DEFAULT_TEST_TARGETS = [
    "llvm",
    "llvm -device=arm_cpu",
    "cuda",
    "nvptx",
    "vulkan -from_device=0",
    "opencl",
    "opencl -device=mali,aocl_sw_emu",
    "opencl -device=intel_graphics",
    "metal",
    "rocm",
    "hexagon",
]
_GPUS = ("cuda", "opencl", "metal", "rocm", "vulkan", "nvptx")
# Set by the plug-in. Without it, a fixture has to bring its own parameters, and marks have no names.
plugin_is_active = False


def kind_of(target):
    """First word of a target: "llvm" of "llvm -mcpu=skylake"."""
    if isinstance(target, dict):
        return target["kind"]
    return str(target).split(" ", 1)[0]


def device_enabled(target):
    """Whether code for a target can be made and run here."""
    from .. import runtime

    return runtime.enabled(kind_of(target))


def chosen_targets():
    """Targets that tests are to run for: those of the environment variable TVM_TEST_TARGETS, separated by `;`, or what there is."""
    named = [t.strip() for t in os.environ.get("TVM_TEST_TARGETS", "").split(";") if t.strip()]
    return list(dict.fromkeys(named)) or ["llvm"]


def enabled_targets():
    """(target, device) of what there is to test on."""
    from ..runtime import device

    return [(t, device(kind_of(t))) for t in chosen_targets() if device_enabled(t)]


# ---- Marks


class _Marks(list):
    """Marks of pytest, as a list for `pytest.param(marks=...)`; called with a test, it marks the test."""

    def __call__(self, f):
        for mark in reversed(self):
            f = mark(f)
        return f

    def __getattr__(self, name):
        return getattr(self[0], name)


def _requires(what, there, *marks):
    def requires(*args):
        import pytest

        found = _Marks([pytest.mark.skipif(not there(), reason=f"needs {what}")])
        if plugin_is_active:
            found += [getattr(pytest.mark, mark) for mark in marks]
        return found(args[0]) if args else found

    requires.__doc__ = f"Skips a test where there is no {what}."
    return requires


def _requires_target(kind, *marks):
    return _requires(kind, lambda: device_enabled(kind), *marks, kind)


requires_llvm = _requires_target("llvm")
requires_cuda = _requires_target("cuda", "gpu")
requires_opencl = _requires_target("opencl", "gpu")
requires_vulkan = _requires_target("vulkan", "gpu")
requires_metal = _requires_target("metal", "gpu")
requires_rocm = _requires_target("rocm", "gpu")
requires_nvptx = _requires("nvptx", lambda: device_enabled("nvptx"), "gpu")
requires_hexagon = _requires("hexagon", lambda: device_enabled("hexagon"))
requires_gpu = _requires("GPU", lambda: any(map(device_enabled, _GPUS)), "gpu")
requires_rpc = _requires("rpc", lambda: os.path.exists(os.path.join(base._LIB, "libbaton_rpc.so")))
requires_cudagraph = requires_cublas = requires_cudnn = requires_cuda
requires_tensorcore = _requires("tensor cores", lambda: False, "gpu")


def _requires_never(what):
    return _requires(what, lambda: False)


requires_micro = _requires_never("micro")
requires_ethosn = _requires_never("ethosn")
requires_ethosu = _requires_never("ethosu")
requires_corstone300 = _requires_never("corstone300")
requires_cmsisnn = _requires_never("cmsisnn")
requires_libtorch = _requires_never("libtorch")
requires_vitis_ai = _requires_never("vitis_ai")


def requires_package(*packages):
    """Skips a test where a package of Python is missing."""
    missing = [p for p in packages if importlib.util.find_spec(p.split(".")[0]) is None]
    return _requires(f"package {', '.join(missing or packages)}", lambda: not missing)()


def uses_gpu(*args):
    """Marks a test that uses a GPU where there is one."""
    import pytest

    marks = _Marks([pytest.mark.gpu] if plugin_is_active else [])
    return marks(args[0]) if args else marks


def slow(f):
    """Skips a test that takes long where the environment variable SKIP_SLOW_TESTS says so."""
    import pytest

    return pytest.mark.skipif(os.environ.get("SKIP_SLOW_TESTS", "").lower() in ("true", "1", "yes"), reason="slow")(f)


def skip_if_32bit(reason):
    """Skips a test where pointers have 32 bits."""
    import sys

    import pytest

    return pytest.mark.skipif(sys.maxsize < 2**32, reason=reason)


def target_requirement(target):
    """The marks that skip a test where a target is not there."""
    requires = globals().get(f"requires_{kind_of(target)}")
    return _Marks() if requires is None else requires()


# ---- Targets


def _named(holders, attribute):
    """Targets that decorators have named on a test or its class."""
    return {t for holder in holders if holder is not None for t in getattr(holder, attribute, ())}


def target_params(targets, *holders, with_device):
    """Parameters of pytest for a test on each target, less those that its decorators exclude and those that are not
    there (if none is, all are skipped); failures are expected where the decorators say so."""
    import pytest

    from ..runtime import device

    excluded, failing = _named(holders, "tvm_excluded_targets"), _named(holders, "tvm_known_failing_targets")
    targets = [t for t in targets if t not in excluded and kind_of(t) not in excluded]
    for target in [t for t in targets if device_enabled(t)] or targets:
        marks = [*target_requirement(target)]
        if target in failing or kind_of(target) in failing:
            marks.append(pytest.mark.xfail(reason=f"is known to fail on {target}"))
        values = (target, device(kind_of(target))) if with_device else (target,)
        yield pytest.param(*values, id=str(target), marks=marks)


class _TargetsOf(Collection):
    """Parameters of a test that are known when all its decorators have been read."""

    def __init__(self, f, targets):
        self.f, self.targets = f, targets

    def __iter__(self):
        return target_params(self.targets or chosen_targets(), self.f, with_device=_takes(self.f, "dev"))

    def __len__(self):
        return len(list(self))

    def __contains__(self, param):
        return param in list(self)


def _takes(f, name):
    return name in inspect.signature(f).parameters


def _for_each(f, targets):
    import pytest

    return pytest.mark.parametrize("target, dev" if _takes(f, "dev") else "target", _TargetsOf(f, targets))(f)


def parametrize_targets(*args):
    """Runs a test for each of these targets, or each enabled one, as argument `target`; its argument `dev`, if any, is the device."""
    if len(args) == 1 and callable(args[0]):
        return _for_each(args[0], ())
    return lambda f: _for_each(f, args)


def _with_targets(attribute, targets):
    def decorate(f):
        setattr(f, attribute, (*getattr(f, attribute, ()), *targets))
        parametrized = any(getattr(mark, "name", "") == "parametrize" and "target" in mark.args[0] for mark in getattr(f, "pytestmark", ()))
        if inspect.isfunction(f) and not plugin_is_active and not parametrized and _takes(f, "target"):
            return _for_each(f, ())
        return f

    return decorate


def exclude_targets(*args):
    """Runs a test, or those of a class, for all enabled targets but these."""
    return _with_targets("tvm_excluded_targets", args)


def known_failing_targets(*args):
    """Expects failures of a test, or of those of a class, on these targets."""
    return _with_targets("tvm_known_failing_targets", args)


# ---- Values


def parameter(*values, ids=None):
    """A fixture that takes each of the values; a test that takes several such fixtures runs for all combinations."""
    import pytest

    @pytest.fixture(params=values, ids=ids)
    def as_fixture(*_self, request):
        return request.param

    return as_fixture


class ParameterGroup:
    """Values that belong together: a test takes one row of them. Without the plug-in, rows that do not belong together are skipped."""

    def __init__(self, rows, ids):
        self.rows, self.ids, self.seen = [tuple(row) for row in rows], ids, weakref.WeakKeyDictionary()
        if len({len(row) for row in self.rows}) > 1:
            raise ValueError(f"rows of parameters have different lengths: {', '.join(str(len(row)) for row in self.rows)}")

    def column(self, at):
        """The fixture of a column."""
        import pytest

        def as_fixture(*_self, request):
            if not plugin_is_active and self.seen.setdefault(request.node, request.param) != request.param:
                pytest.skip("these values do not belong together; baton.testing.plugin leaves such tests out")
            return self.rows[request.param][at]

        as_fixture.parameter_group, as_fixture.column = self, at
        return pytest.fixture(**{} if plugin_is_active else {"params": range(len(self.rows)), "ids": self.ids})(as_fixture)


def parameters(*value_sets, ids=None):
    """Fixtures that take the values of each set together: `size, dtype = parameters((16, "float32"), (512, "float16"))` are two tests."""
    group = ParameterGroup(value_sets, ids)
    return [group.column(at) for at in range(len(group.rows[0]))]


def _key(value):
    """Returns a key that tells values of arguments apart."""
    try:
        hash(value)
        return type(value), value
    except TypeError:
        return type(value), pickle.dumps(value)


def _keeps_value(f):
    """The function, called once for each set of arguments; each call gives a deep copy of what it gave."""
    if inspect.isgeneratorfunction(f):
        raise TypeError(f"the value of `{f.__name__}` cannot be kept: it is a generator")
    kept = {}

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        key = tuple((name, _key(value)) for name, value in sorted(kwargs.items()))
        if key not in kept:
            kept[key] = f(*args, **kwargs)
        try:
            return copy.deepcopy(kept[key])
        except TypeError as error:
            raise TypeError(f"the value of `{f.__name__}` cannot be kept: {error}") from None

    return wrapper


def fixture(func=None, *, cache_return_value=False):
    """A fixture for each test. With cache_return_value its value is computed once for each set of its arguments, and each test gets a deep
    copy; the environment variable TVM_TEST_DISABLE_CACHE turns that off."""
    import pytest

    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    disabled = os.environ.get("TVM_TEST_DISABLE_CACHE", "").lower() in ("1", "true", "yes")
    return pytest.fixture(scope="function")(_keeps_value(func) if cache_return_value and not disabled else func)
