# SPDX-License-Identifier: Apache-2.0
"""Passes with a fault that some programs bring out, importable by name."""

import os
import signal
import time

import baton as tvm
from baton import relay
from baton.transform import module_pass

# What of a program the fault needs.
TRIGGERS = {
    "operator": lambda text: "tanh(" in text,
    "attribute": lambda text: "axis=-1" in text or "nn.softmax(" in text,
    "projection": lambda text: ".1" in text,
    "two": lambda text: "sigmoid(" in text and "nn.dense(" in text,
}


def _throws(mod):
    raise LookupError("the planted fault")


FAULTS = {
    "throw": _throws,
    "abort": lambda mod: os.abort(),
    "segfault": lambda mod: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda mod: time.sleep(600),
    "bad_ir": lambda mod: tvm.IRModule({"main": relay.Function([], relay.Tuple([mod["main"].body, relay.var("nobody", shape=(2,))]))}),
}
LIMITS = {"hang": {"timeout": 1.0}}


def _planted(fault, trigger):
    def body(mod, ctx):
        return FAULTS[fault](mod) if TRIGGERS[trigger](str(mod)) else mod

    body.__name__ = body.__qualname__ = f"{fault}_{trigger}"
    return module_pass(body, opt_level=0)


for _fault in FAULTS:
    for _trigger in TRIGGERS:
        globals()[f"{_fault}_{_trigger}"] = _planted(_fault, _trigger)
