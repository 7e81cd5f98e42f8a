# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's assembler takes the kernels of all operators, for two generations of chips, and spills no register."""

import re
import zlib

import numpy as np
import pytest
from cases import Case, call
from test_complete import rows
from thread_programs import add_one, backwards, block_sums, grid, product, program  # the folders are on the path by conftest.py

import baton
from baton import relay, te

CHIPS = ("sm_80", "sm_90a")
THREADS = {
    "blocks of threads": lambda: add_one(te.var("n")),
    "shared memory": lambda: program((64,), "float32", backwards),
    "allreduce": lambda: program((160,), "float32", block_sums, out=(5,)),
    "grid": lambda: program((720,), "int32", grid),
    "product": lambda: product(64),
}


# Recurrent layers are written for a processor's registers: on a device, one thread has all of a step's sums.
SPILL = ("contrib_recurrence",)


def spilling(said):
    """Kernels that spill registers, but those that are known to."""
    names = re.findall(r"Compiling entry function '(\w+)'(?:(?!Compiling entry).)*? [1-9]\d* bytes spill", said, re.DOTALL)
    return [name for name in names if not any(known in name for known in SPILL)]


def spills(said):
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill", said))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", THREADS)
def test_kernels_of_threads(ptxas, name, chip):
    s, args = THREADS[name]()
    code, said = ptxas(baton.build(s, args, f"cuda -arch={chip}").get_source(), chip)
    assert code == 0 and spills(said) == 0 and "warning" not in said, said


def drawn(case):
    """A row's inputs, drawn from its seed."""
    rng = np.random.default_rng(zlib.crc32(case.op.encode()))

    def draw(i):
        return [draw(x) for x in i] if isinstance(i, list) else i(rng)

    return [draw(i) for i in case.inputs]


def programs(case, attrs):
    """A row's call as a function of Relay."""
    expr, variables, values = call(case.op, drawn(case), attrs, case.constant)
    return relay.Function(variables, expr), values


def compiled_rows():
    """(case, attrs) of each row of the tables whose operator is compiled."""
    for row in rows():
        if isinstance(row, Case) and row.compiled:
            for p in row.rows():
                yield p.values


def renamed(text, prefix):
    """A text without its head, whose names begin with a prefix: several are one program."""
    body = "\n".join(line for line in text.split("\n") if not line.startswith((".version", ".target", ".address_size")))
    return re.sub(r"\b(k_\w+|shared_\w+)", rf"{prefix}_\1", body)


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
def test_kernels_of_all_operators(ptxas, chip):
    texts, parts, head = set(), [], ""
    for number, (case, attrs) in enumerate(compiled_rows()):
        func, _ = programs(case, attrs)
        try:
            lib = relay.build(baton.IRModule.from_expr(func), target=f"cuda -arch={chip}")
            text = lib.get_source("ptx")
        except baton.error.UnsupportedError as e:
            assert "no part that runs on" in str(e), f"{case.op} {attrs}: {e}"  # folded, or done by the host
            continue
        head = text[text.index(".version") : text.index(".address_size")] + ".address_size 64\n"
        body = text[text.index(".address_size") :].partition("\n")[2]
        if body not in texts:
            texts.add(body)
            parts.append(renamed(body, f"r{number}"))
    assert len(parts) > 1000
    for at in range(0, len(parts), 200):
        code, said = ptxas(head + "".join(parts[at : at + 200]), chip)
        assert code == 0, said[:2000]
        assert not spilling(said)
