# SPDX-License-Identifier: Apache-2.0
"""`./dev new op NAME`, `./dev new pass NAME` and `./dev new target NAME`: source files and tests that compile and pass as they are."""

import re

from .machine import venv_python
from .step import ROOT, StepFailed, probe, say, shown

TEMPLATES = ROOT / "tools" / "devtool" / "templates"


def camel(name):
    """nn.leaky_relu -> LeakyRelu"""
    return "".join(word[:1].upper() + word[1:] for word in name.rsplit(".", 1)[-1].split("_"))


def snake(name):
    """DropNopReshape -> drop_nop_reshape; ToANormalForm -> to_a_normal_form; FoldIRText -> fold_ir_text"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def devices_without_code():
    """Returns {a name of a device that no backend makes code for: its type in DLPack}, from the table of targets that are names alone."""
    table = ROOT / "src/ir/target.cpp"
    rows = re.findall(r'\{"(\w+)", (kDL\w+), ', table.read_text(encoding="utf-8")) if table.exists() else []
    have = {path.name for path in (ROOT / "src/codegen").glob("*") if path.is_dir()}
    return {name: device for name, device in rows if device not in ("kDLCPU", "kDLCUDA", "kDLOpenCL", "kDLExtDev") and name not in have}


def plan(kind, name):
    """(where to write -> template, words to put in) for a new operator, pass or target; raises StepFailed for a name that will not do."""
    if kind == "target":
        devices = devices_without_code()
        if name not in devices and not (ROOT / f"src/codegen/{name}").is_dir():
            raise StepFailed(
                f"new: `{name}` is not a name for a target",
                None,
                f"a device without code yet: {', '.join(sorted(devices))}; another needs a type of DLPack first",
            )
        folder = ROOT / f"src/codegen/{name}"
        files = {folder / f"{part}.cpp": f"target_{part}.cpp.txt" for part in ("backend", "language", "intrinsics", "builtins")}
        files |= {folder / f"{name}.h": "target.h.txt", folder / "README.md": "target_README.md"}
        files[ROOT / f"tests/codegen/{name}/test_source.py"] = "target_test.py.txt"
        return files, {"name": name, "Camel": camel(name), "device": devices.get(name, "")}
    if kind == "op":
        if not re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)?", name) or name != name.lower():
            raise StepFailed(
                f"new: `{name}` is not a name for an operator", None, "lower case with underscores, perhaps behind a family: `nn.leaky_relu`, `cumsum`"
            )
        family, _, short = name.rpartition(".")
        place, words = f"relay/op/{family or 'tensor'}/{short}", {"name": name, "snake": short, "Camel": camel(name)}
    else:
        if not re.fullmatch(r"([A-Z][a-z0-9]*)+", name):
            raise StepFailed(f"new: `{name}` is not a name for a pass", None, "a verb phrase in upper camel case: `FoldConstant`")
        place, words = f"relay/transform/{snake(name)}", {"Camel": name, "snake": snake(name)}
    files = {ROOT / f"src/{place}.cpp": f"{kind}.cpp", ROOT / f"tests/{place}.relay": f"{kind}.relay"}
    if kind == "op":
        files[ROOT / f"tests/relay/op/test_{words['snake']}.py"] = "op_rows.txt"
    return files, words


def first_source(folder, pattern):
    """The first C++ file below `folder` that matches, or None."""
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".cpp", ".h", ".inc") and re.search(pattern, path.read_text(encoding="utf-8")):
            return path
    return None


def source_of(kind, name):
    """The source file that defines this operator or pass, or None. The likeliest form comes first. Operators are also defined in
    rows of tables and by constants, so that in the end any file of operators or importers that has the name as a string counts."""
    word, short = re.escape(name), re.escape(name.rpartition(".")[2])
    if kind == "op":
        places = [
            ("src", rf'\.name = "{word}"'),
            ("src/relay/op", rf'\bop::{short} =[^;]*"{word}"'),
            ("src/relay/op", rf'"{word}"'),
            ("src/frontend", rf'"{word}"'),
        ]
    else:
        places = [("src", rf'\b(MakePass|RegisterPass)<{word}>|\bPass {word}\('), ("src", rf'"([a-z_]+\.)*{word}"')]
    return next(filter(None, (first_source(*place) for place in places)), None)


KNOWN = """
import sys
import baton
from baton.driver import passes
from baton._ffi import list_global_func_names
names = baton.ir.Op.list_op_names() if sys.argv[1] == "op" else [*passes.full_names(), *list_global_func_names()]
print(*(n if sys.argv[1] == "op" else n.rsplit(".", 1)[-1] for n in names if sys.argv[1] == "op" or n.rpartition(".")[0] in
      ("", "tir", "transform", "relay._transform", "tir.transform")))
"""


def registered(kind, name):
    """Whether the built compiler has an operator or a pass of this name; None where there is no build that can be asked."""
    if not (ROOT / "python" / "baton" / "lib").is_dir():
        return None
    answer = probe(["env", f"PYTHONPATH={ROOT / 'python'}", venv_python(), "-c", KNOWN, kind])
    return None if answer is None else name in answer.split()


def taken(kind, name):
    """Returns what has this name already, in words, or None."""
    is_registered = registered(kind, name)
    path = source_of(kind, name)
    # A string of an operator's name may mean something else, such as an attribute: the registry of a build decides.
    if is_registered or (path and (is_registered is None or kind == "pass")):
        return shown(path) if path else "the compiler registers it"
    if kind == "op":
        attrs = f"relay.attrs.{camel(name)}Attrs"
        path = first_source("src", rf'"{re.escape(attrs)}"')
        return path and f"its attributes would be {attrs}, which {shown(path)} has"
    return None


def list_operator(name):
    """Puts the new operator into the table of operators, as the compiler will print it once it is built."""
    path = ROOT / "src/relay/op/README.md"
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    family = name.rpartition(".")[0] or "Tensors"
    start = lines.index(f"## {family}") + 4 if f"## {family}" in lines else None
    if start is None:
        say("new", f"{shown(path)} has no family `{family}` yet: python -m baton.describe operators --out {shown(path)} adds it after a build")
        return
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith("| ")), len(lines))
    listed = [line.split("`")[1].split("(")[0] for line in lines[start:end]]
    lines.insert(start + sum(other < name for other in listed), f"| `{name}(data, factor=2.0)` | out[i] = data[i] * factor | rule |  |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say("new", f"added a row to {shown(path)}")


def new(kind, name):
    """Writes the source file and the test; READMEs where a folder is new."""
    files, words = plan(kind, name)
    there = (kind != "target" and taken(kind, name)) or next((shown(path) for path in files if path.exists()), None)
    if there:
        raise StepFailed(f"new: {name} is there already: {there}", None, "choose another name, or change what is there")
    for path, template in files.items():
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        path.parent.mkdir(parents=True, exist_ok=True)
        readme = path.parent / "README.md"
        if not readme.exists() and readme not in files:
            what = "Tests of" if path.is_relative_to(ROOT / "tests") else "Operators of the family"
            readme.write_text(f"{what} `{path.parent.name}`, a file each.\n", encoding="utf-8")
            say("new", f"wrote {shown(readme)}; say there what belongs in the folder")
        path.write_text(text, encoding="utf-8")
        say("new", f"wrote {shown(path)}")
    if kind == "op":
        list_operator(name)
    source = shown(next(iter(files)) if kind != "target" else ROOT / f"tests/codegen/{name}")
    say("new", f"it compiles and its test passes as it is: ./dev test {source}")
    if kind == "target":
        say("new", "no file outside of these folders has to name it; docs/guides/add_target.md says what to change next")
