# SPDX-License-Identifier: Apache-2.0
"""Passes that fail, importable by name."""

import os
import signal
import time

import baton as tvm
from baton import relay
from baton.ir.instrument import PassInstrument
from baton.transform import module_pass


def _value(mod):
    raise ValueError(f"module at 0x{id(mod):x} has {len(mod.functions)} functions")


def _deep(mod):
    return _value(mod)


def _has_tanh(mod):
    return "tanh" in str(mod)


def _dislikes(mod):
    if _has_tanh(mod):
        raise NotImplementedError(f"`tanh` among {relay.analysis.count_nodes(mod['main'])} nodes")
    return mod


BODIES = {
    # Python exceptions
    "raises_value": _value,
    "raises_deeply": _deep,
    "raises_key": lambda mod: {}["lost"],
    "raises_type": lambda mod: len(3),
    "raises_zero": lambda mod: 1 // 0,
    "raises_index": lambda mod: [][3],
    "raises_os": lambda mod: open("/nowhere/at/all"),
    "raises_assert": lambda mod: (_ for _ in ()).throw(AssertionError("two is 2, not 3")),
    "returns_nothing": lambda mod: None,
    "returns_text": lambda mod: "a module",
    # deaths
    "segfaults": lambda mod: os.kill(os.getpid(), signal.SIGSEGV),
    "bus_error": lambda mod: os.kill(os.getpid(), signal.SIGBUS),
    "float_error": lambda mod: os.kill(os.getpid(), signal.SIGFPE),
    "illegal": lambda mod: os.kill(os.getpid(), signal.SIGILL),
    "killed": lambda mod: os.kill(os.getpid(), signal.SIGKILL),
    "aborts": lambda mod: os.abort(),
    "eats_memory": lambda mod: [bytearray(1 << 24) for _ in range(1 << 20)],
    "eats_at_once": lambda mod: bytearray(1 << 42),
    "hangs": lambda mod: time.sleep(600),
    "is_told_to_end": lambda mod: os.kill(os.getpid(), signal.SIGTERM),
    "exits": lambda mod: os._exit(3),
    # depends on the program
    "dislikes_tanh": _dislikes,
    "dies_of_tanh": lambda mod: os.kill(os.getpid(), signal.SIGSEGV) if _has_tanh(mod) else mod,
}


def _make(name):
    def body(mod, ctx):
        return BODIES[name](mod)

    body.__name__ = body.__qualname__ = name
    return module_pass(body, opt_level=0)


for _name in BODIES:
    globals()[_name] = _make(_name)


# What a verifier finds.
def _free_variable(mod, number):
    x = relay.var(f"free{number}", shape=(2,))
    return tvm.IRModule({"main": relay.Function([], x + relay.const(float(number)))})


def _twice_bound(mod, number):
    x = relay.var("x", shape=(2,))
    return tvm.IRModule({"main": relay.Function([x, x], x)})


def _in_place(mod, number):
    return mod


def _verified(kind, number):
    def body(mod, ctx):
        return {"free": _free_variable, "twice": _twice_bound}[kind](mod, number)

    body.__name__ = body.__qualname__ = f"breaks_{kind}_{number}"
    return module_pass(body, opt_level=0, **({"keeps": ["*"]} if number % 2 else {}))


for _n in range(5):
    globals()[f"breaks_free_{_n}"] = _verified("free", _n)
    globals()[f"breaks_twice_{_n}"] = _verified("twice", _n)


# What a guard finds: passes that change results.
def _wrong(number):
    def body(mod, ctx):
        main = mod["main"]
        out = mod.shallow_copy()
        out["main"] = relay.Function(main.params, main.body + relay.const(float(number + 1)))
        return out

    body.__name__ = body.__qualname__ = f"miscompiles_{number}"
    return module_pass(body, opt_level=0)


for _n in range(10):
    globals()[f"miscompiles_{_n}"] = _wrong(_n)


class Guard(PassInstrument):
    """A guard of its own: says that a pass has changed results where the body grew."""

    observes = True

    def __init__(self, tolerance=1e-5, passes=()):
        self.tolerance, self.passes, self.before = tolerance, tuple(passes), {}
        super().__init__()

    def run_before_pass(self, mod, info):
        self.before[info.name] = relay.analysis.count_nodes(mod["main"])

    def run_after_pass(self, mod, info):
        if info.name.startswith(self.passes) and relay.analysis.count_nodes(mod["main"]) > self.before[info.name]:
            raise tvm.error.InternalError(f"pass `{info.name}` changed what @main computes: {id(mod)} is not {id(self)}")
