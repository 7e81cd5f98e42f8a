# SPDX-License-Identifier: Apache-2.0
"""Random programs of Relay, by seed."""

import random
import re

EXT = 12  # DLPack's number of `ext_dev`
_T = "Tensor[(4), float32]"
_XYZ = f"%x: {_T}, %y: {_T}, %z: {_T}"


def _main(body, params=_XYZ):
    return f"def @main({params}) {{ {body} }}"


def strip(text):
    """The program without the devices of its annotations."""
    text = re.sub(r",? device_type=\d+(, is_fixed=True)?", "", text)
    return text


def program(seed):
    """A random program over tensors: operators, lets, branches, tuples, functions, annotations with and without is_fixed."""
    r = random.Random(seed)
    count = [0]

    def name():
        count[0] += 1
        return f"%v{count[0]}"

    def value(scope, depth):
        kind = r.random()
        if depth <= 0 or kind < 0.15:
            return r.choice(scope)
        if kind < 0.35:
            return f"{r.choice(['add', 'multiply', 'subtract'])}({value(scope, depth - 1)}, {r.choice(scope)})"
        if kind < 0.45:
            return f"negative({value(scope, depth - 1)})"
        if kind < 0.65:
            return f"on_device({value(scope, depth - 1)}, device_type={r.choice([1, EXT])})"
        if kind < 0.72:
            return f"({value(scope, depth - 1)}, {value(scope, depth - 1)}).{r.randrange(2)}"
        if kind < 0.8:
            cond = f"less(sum({value(scope, depth - 2)}), 0.5f)"
            return f"if ({cond}) {{ {body(scope, depth - 1)} }} else {{ {body(scope, depth - 1)} }}"
        if kind < 0.88:
            p = name()
            return f"(fn ({p}: {_T}) -> {_T} {{ {body([*scope, p], depth - 1)} }})({r.choice(scope)})"
        return f"@{r.choice('fg')}({value(scope, depth - 1)})"

    def body(scope, depth):
        out = []
        scope = list(scope)
        for _ in range(r.randrange(3)):
            v = name()
            out.append(f"let {v} = {tensor(scope, depth - 1)};")
            scope.append(v)
        return " ".join([*out, tensor(scope, depth)])

    def tensor(scope, depth):
        return f"add({value(scope, depth)}, {r.choice(scope)})"

    return "\n".join([f"def @g(%a: {_T}) -> {_T} {{ {tensor(['%a'], 0)} }}",
                      f"def @f(%a: {_T}) -> {_T} {{ @g({tensor(['%a'], 0)}) }}", _main(body(["%x", "%y", "%z"], 4))])
