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

    return "\n".join(
        [f"def @g(%a: {_T}) -> {_T} {{ {tensor(['%a'], 0)} }}", f"def @f(%a: {_T}) -> {_T} {{ @g({tensor(['%a'], 0)}) }}", _main(body(["%x", "%y", "%z"], 4))]
    )


_COUNTER = """def @after(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }
"""
_LEAVES = ["%x", "2f", "%next()", "%next()"]
_KINDS = ["subtract", "maximum", "multiply", "negative", "tanh", "where", "field", "field", "if", "let", "write", "concatenate", "stack", "zero",
          "function", "closure", "match", "reference", "split"]  # fmt: skip


def effects(seed):
    """A random program whose operands have effects, in all places: a counter that each read raises, written to in between.

    The counter is a closure; one function gets it as a parameter, so it cannot know what its calls do.
    """
    r = random.Random(seed)
    count = [0]

    def name():
        count[0] += 1
        return f"%v{count[0]}"

    def value(depth, scope, known):
        """Of a scalar. known: the reference itself can be named."""
        if depth == 0 or r.random() < 0.12:
            return r.choice([*_LEAVES, *scope, *(["@after(%r)", "ref_read(%r)"] if known else [])])
        kind = r.choice(_KINDS)

        def part(*more):
            return value(depth - 1, [*scope, *more], known)

        if kind in ("subtract", "maximum", "multiply"):
            return f"{kind}({part()}, {part()})"
        if kind == "negative" or kind == "tanh" or (kind == "write" and not known):
            return f"{'negative' if kind == 'write' else kind}({part()})"
        if kind == "where":
            return f"where(less({part()}, 3f), {part()}, {part()})"
        if kind == "field":
            n = r.randint(1, 3)
            return f"({', '.join(part() for _ in range(n))},).{r.randrange(n)}"
        if kind == "if":
            return f"{{ if (less({part()}, 3f)) {{ {part()} }} else {{ {part()} }} }}"
        if kind == "write":
            return f"{{ ref_write(%r, {part()}); {part()} }}"
        if kind in ("concatenate", "stack"):
            rows = (f"expand_dims({part()}, axis=0)" for _ in range(2)) if kind == "concatenate" else (part() for _ in range(2))
            return f"sum({kind}(({', '.join(rows)}), axis=0))"
        if kind == "split":
            return f"sum(split(stack(({part()}, {part()}), axis=0), indices_or_sections=2, axis=0).{r.randrange(2)})"
        if kind == "zero":
            return f"{r.choice(['multiply', 'add', 'subtract'])}({part()}, 0f)"
        if kind == "reference":
            return f"ref_read(ref({part()}))"
        if kind == "match":
            return f"{{ match? (({part()}, {part()})) {{ (%p, %q) => {part('%p', '%q')} }} }}"
        if kind == "function":
            return f"fn (%a: float32, %b: float32) {{ subtract(%b, %a) }}({part()}, {part()})"
        v = name()
        if kind == "let":
            return f"{{ let {v} = {part()}; {part(v)} }}"
        return f"{{ let {v} = fn (%a: float32) {{ subtract({part('%a')}, %a) }}; subtract({v}({part()}), {v}({part()})) }}"

    depth = 2 + seed % 3
    return (_COUNTER + f"def @body(%x: float32, %next: fn () -> float32) -> float32 {{ {value(depth, [], False)} }}\n"
            + f"def @main(%x: float32) {{ let %r = ref(%x); let %next = fn () {{ @after(%r) }}; "
              f"(@body(%x, %next), {value(depth, [], True)}, ref_read(%r)) }}")  # fmt: skip
