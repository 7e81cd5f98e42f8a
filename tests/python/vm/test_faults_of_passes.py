# SPDX-License-Identifier: Apache-2.0
"""A fault of a pass is an error of compiling, wherever the pass runs: no other, slower program is made of the model."""

import collections

import pytest

import baton
from baton import relay

PROGRAMS = {
    "one function": "{ nn.softmax(nn.relu(%x)) }",
    "regions": """{
      let %a = nn.softmax(nn.softmax(%x));
      if (greater(sum(%x), 0f)) { nn.softmax(add(%a, nn.softmax(%a))) } else { nn.softmax(negative(%a)) }
    }""",
    "static regions": """{
      let %a = nn.softmax(nn.softmax(%x));
      if (greater(sum(%x), 0f)) { nn.softmax(add(%a, nn.softmax(%a))) } else { nn.softmax(negative(%a)) }
    }""".replace("%x", "nn.relu(%x)"),
}


def compile_with(program, before_pass):
    @baton.ir.instrument.pass_instrument
    class Instrument:
        def run_before_pass(self, module, info):
            before_pass(info.name)

    rows = "4" if program == "static regions" else "n"
    source = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[({rows}, 8), float32]) {PROGRAMS[program]}'
    module = relay.parse(source)
    with baton.transform.PassContext(instruments=[Instrument()]):
        return relay.vm.compile(module, "llvm")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_fault_of_any_run_of_a_pass_is_an_error(program):
    runs = collections.Counter()
    compile_with(program, lambda name: runs.update([name]))
    assert runs["FuseOps"] == {"one function": 1, "regions": 4, "static regions": 1}[program]
    for name, count in runs.items():
        for at in {1, count}:
            seen = collections.Counter()

            def fail(given, name=name, at=at, seen=seen):
                seen.update([given])
                if given == name and seen[name] == at:
                    raise baton.error.CompileError("the fault of a pass")

            with pytest.raises(baton.error.CompileError, match="the fault of a pass"):
                compile_with(program, fail)
