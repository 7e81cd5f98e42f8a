# SPDX-License-Identifier: Apache-2.0
"""Golden files: Relay text in, passes, Relay text out; PrimFuncs (`*.tir`) likewise.

    // RUN: InferType, FoldConstant
    // CONFIG: {"relay.FuseOps.max_depth": 3}        (optional: options of the pass context)
    // TARGET: llvm -mcpu=x86-64-v3                  (optional: the target that is current, for passes that ask for it)

    // --- folds what is constant
    def @main() -> float32 { multiply(2f, 3f) }
    // =>
    def @main() -> float32 { 6f }

    // --- unchanged: nothing here is constant       (the last pass returns the very same module)
    def @main(%x: float32) -> float32 { negative(%x) }

    // --- same: both end equal
    def @main(%x: float32) -> float32 { add(%x, 0f) }
    // ==
    def @main(%x: float32) -> float32 { add(%x, subtract(1f, 1f)) }

    // --- error: what is said, and where
    def @main(%x: Tensor[(2, 3), int32]) {
      nn.leaky_relu(%x)   // error: [nn.leaky_relu R1] `data` has dtype int32
    }

Results are compared structurally, so names of variables and layout do not matter. Every program and every result is
printed and parsed again too, and must come back equal. PrimFuncs are compared by their text, names and all; an error there
has a message and no place.
"""

import ast
import contextlib
import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ("unchanged", "same", "error")
_TITLE = re.compile(r"//\s*---\s*(?:(unchanged|same|error)\b:?)?\s*(.*)")
_ERROR = re.compile(r"\s*//\s*error:\s*(.*?)\s*$")
_REPORT = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): error: (?P<what>.*)$", re.MULTILINE)


class Mismatch(AssertionError):
    """A case does not give what the file says."""


@dataclass
class Case:
    """One case. `line` is that of its `// ---`, from 1; a part is (line of its first line, its lines)."""

    title: str
    kind: str
    line: int
    first: tuple = (0, [])
    second: tuple | None = None


@dataclass
class Golden:
    """A file: passes as (name, options), options of the context, cases, the target."""

    path: Path
    passes: list
    config: dict
    cases: list = field(default_factory=list)
    target: str = ""


def is_golden(path):
    """Whether a file's first line says which passes to run."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline().startswith("// RUN:")


def parse_passes(text):
    """`A, B(x=1)` as [("A", {}), ("B", {"x": 1})]."""
    out = []
    for item in ast.parse(f"[{text}]", mode="eval").body.elts:
        call = item if isinstance(item, ast.Call) else None
        options = {k.arg: ast.literal_eval(k.value) for k in call.keywords} if call else {}
        out.append(((call.func if call else item).id, options))
    return out


def read(path):
    """The Golden of a file; ValueError with the line where it breaks the form."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    golden = Golden(Path(path), [], {})
    case = None
    for number, line in enumerate(lines, 1):
        if number == 1:
            try:
                golden.passes = parse_passes(line.removeprefix("// RUN:"))
            except (SyntaxError, ValueError, AttributeError):
                raise ValueError(f"{path}:1: not a list of passes: {line}") from None
        elif line.startswith("// CONFIG:") and case is None:
            golden.config = ast.literal_eval(line.removeprefix("// CONFIG:").strip())
        elif line.startswith("// TARGET:") and case is None:
            golden.target = line.removeprefix("// TARGET:").strip()
        elif line.startswith("// ---"):
            kind, title = _TITLE.match(line).groups()
            case = Case(title or f"line {number}", kind or "result", number, (number + 1, []))
            golden.cases.append(case)
        elif line.strip() in ("// =>", "// ==") and case is not None:
            wanted = "// ==" if case.kind == "same" else "// =>"
            if case.second is not None or case.kind in ("unchanged", "error") or line.strip() != wanted:
                raise ValueError(f"{path}:{number}: `{line.strip()}` does not belong in a case of kind `{case.kind}`")
            case.second = (number + 1, [])
        elif case is not None:
            (case.second or case.first)[1].append(line)
        elif line.strip() and not line.startswith("//"):
            raise ValueError(f"{path}:{number}: a program before the first `// ---`")
    if not golden.cases:
        raise ValueError(f"{path}: no case; one begins with `// --- title`")
    return golden


def _compiler():
    from baton import ir
    from baton.driver import passes

    return passes, ir.structural_equal


def _tir():
    import tir_text

    return tir_text


def is_tir(path):
    """Whether a file holds PrimFuncs."""
    return Path(path).suffix == ".tir"


def parse(path, part):
    """The module of a part. Its lines keep the numbers they have in the file, for errors."""
    first, lines = part
    if is_tir(path):
        module = _tir().parse("\n" * (first - 1) + "\n".join(lines) + "\n")
        if again := _tir().reads_back(module):
            raise Mismatch(f"the program, printed and parsed again, is another\n{_tir().text(module)}\n{_tir().text(again)}")
        return module
    text = '#[version = "0.0.5"]' + "\n" * (first - 1) + "\n".join(lines) + "\n"
    passes, equal = _compiler()
    module = passes.parse(text, Path(path).name)
    check_text(module, "the program")
    return module


def _call(name, *args):
    from baton._ffi import get_global_func

    return get_global_func(name)(*args)


def printed(golden, module):
    """A module as its file says it."""
    return _tir().text(module) if is_tir(golden.path) else _compiler()[0].text(module)


def check_text(module, what):
    """Printed and parsed again, or saved and loaded, a module is equal to what it was."""
    passes, _ = _compiler()
    text = passes.text(module)
    # Dimensions with names are free variables, which the text makes anew.
    if where := str(_call("node.StructuralDifference", module, passes.parse(text, "<printed>"), True)):
        raise Mismatch(f"{what}, printed and parsed again, is another program, at {where}\n{text}")
    if where := str(_call("node.StructuralDifference", module, _call("node.LoadJSON", _call("node.SaveJSON", module)), True)):
        raise Mismatch(f"{what}, saved and loaded as JSON, is another program, at {where}\n{text}")


def run(golden, module):
    """(before the last pass, after it). An InferType at the end is not meant: it belongs to the pass before."""
    passes, _ = _compiler()
    from baton import target

    before = module
    last = max((i for i, (name, _) in enumerate(golden.passes) if name != "InferType"), default=len(golden.passes) - 1)
    with passes.context(3, golden.config, []), target.Target(golden.target) if golden.target else contextlib.nullcontext():
        for i, (name, options) in enumerate(golden.passes):
            before = module if i <= last else before
            if is_tir(golden.path):
                from baton import tir

                module = getattr(tir.transform, name)(**options)(module)
                for _, func in module.functions.items():
                    if not tir.analysis.verify_well_formed(func):
                        raise Mismatch(f"not well-formed after {name}:\n{func}")
                continue
            module = passes.run(passes.make(name, options), module)
            if problems := str(_call("relay.analysis.well_formed_problems", module)):
                raise Mismatch(f"not well-formed after {name}:\n{problems}\n{passes.text(module)}")
    return before, module


def compare(got, want, golden):
    """Raises Mismatch with the difference of the texts unless the modules are equal."""
    passes, equal = _compiler()
    if is_tir(golden.path):
        texts = [_tir().text(m).splitlines() for m in (want, got)]
        if texts[0] != texts[1]:
            diff = "\n".join(difflib.unified_diff(*texts, "wanted", "got", lineterm=""))
            raise Mismatch(f"{diff}\naccept with: ./dev bless {golden.path}")
        return
    if golden.passes and golden.passes[0][0] == "InferType":
        # What either leaves to inference, results of functions and annotations of variables, need not be written.
        got, want = (_call("relay.testing.with_types", m) for m in (got, want))
    if equal(got, want, map_free_vars=True):  # names of extents are free
        return
    where = _call("node.StructuralDifference", got, want, True)
    texts = [passes.text(m).splitlines() for m in (want, got)]
    diff = "\n".join(difflib.unified_diff(*texts, "wanted", "got", lineterm="")) or "the texts agree, the structure does not"
    raise Mismatch(f"{diff}\n\ngot against wanted, at {where}\naccept with: ./dev bless {golden.path}")


def reports(error):
    """[(line, message)] of a CompileError's text."""
    return [(int(m["line"]), m["what"]) for m in _REPORT.finditer(str(error))]


def said(golden, case):
    """[(line, message)] of the errors that the case's program gives; empty if it goes through."""
    from baton.error import BatonError, CompileError

    if is_tir(golden.path):
        try:
            run(golden, parse(golden.path, case.first))
        except BatonError as error:  # no place: the first line that says an error is what it is about
            at = [i for i, line in enumerate(case.first[1]) if _ERROR.search(line)]
            return [(case.first[0] + (at[0] if at else 0), str(error).strip())]
        return []
    try:
        run(golden, parse(golden.path, case.first))
    except CompileError as error:
        found = reports(error)
        if not found:
            raise Mismatch(f"the error says no place:\n{error}") from error
        return found
    return []


def check(golden, case):
    """Runs a case. Raises Mismatch, or what the compiler raises."""
    if case.kind == "error":
        wanted = [(case.first[0] + i, m[1]) for i, line in enumerate(case.first[1]) if (m := _ERROR.search(line))]
        if not wanted:
            raise Mismatch("no line says `// error: ...`")
        found = said(golden, case)
        for line, message in wanted:
            if not any(at == line and message in what for at, what in found):
                raise Mismatch(f"line {line}: `{message}` was not said; said was: {found or 'nothing'}")
        if len(found) > len(wanted):
            raise Mismatch(f"more was said than the file expects: {found}")
        return
    module = parse(golden.path, case.first)
    before, after = run(golden, module)
    if not is_tir(golden.path):
        check_text(after, "the result")
    if case.kind == "unchanged":
        if not after.same_as(before):
            compare(after, before, golden)
            name = ([n for n, _ in golden.passes if n != "InferType"] or ["InferType"])[-1]
            raise Mismatch(f"equal, but not the same object: `{name}` rebuilt what it did not change")
    elif case.second is None:
        raise Mismatch(f"no expectation: write it after `// {'==' if case.kind == 'same' else '=>'}`, or ./dev bless {golden.path}")
    elif case.kind == "same":
        compare(after, run(golden, parse(golden.path, case.second))[1], golden)
    elif is_tir(golden.path):
        # A result may have views, which its text does not say whole.
        got, want = _tir().text(after).splitlines(), [line for line in case.second[1] if line.strip() and not line.startswith("//")]
        if [line for line in got if line.strip()] != want:
            diff = "\n".join(difflib.unified_diff(want, got, "wanted", "got", lineterm=""))
            raise Mismatch(f"{diff}\naccept with: ./dev bless {golden.path}")
    else:
        compare(after, parse(golden.path, case.second), golden)


def blessed(golden):
    """The file's text with the expectations that the compiler gives now. Cases that hold keep their text as it is."""
    lines = golden.path.read_text(encoding="utf-8").splitlines()
    for case in reversed(golden.cases):  # from the end, so that earlier line numbers hold
        try:
            check(golden, case)
            continue
        except Mismatch:
            if case.kind in ("unchanged", "same"):
                raise  # a claim, not a printout
        first, body = case.first
        if case.kind == "error":
            told = dict(said(golden, case))
            if not told:
                raise Mismatch(f"{golden.path}:{case.line}: the program has no error")
            for i, line in enumerate(body):
                bare = _ERROR.sub("", line)
                lines[first - 1 + i] = f"{bare}  // error: {told[first + i]}" if first + i in told else bare
            continue
        text = printed(golden, run(golden, parse(golden.path, case.first))[1])
        result = [line for line in text.strip().splitlines() if not line.startswith("#[version")]
        end = (case.second[0] - 1 + len(case.second[1])) if case.second else first - 1 + len(body)
        start = case.second[0] - 1 if case.second else end
        while not case.second and start > first and not lines[start - 1].strip():
            start -= 1
        more = [""] if end < len(lines) else []
        lines[start:end] = ([] if case.second else ["// =>"]) + result + more
    return "\n".join(lines).rstrip("\n") + "\n"
