# SPDX-License-Identifier: Apache-2.0
"""`./dev new op NAME` and `./dev new pass NAME`: a source file and its golden test that compile and pass as they are."""

import re

from .step import ROOT, StepFailed, say, shown

TEMPLATES = ROOT / "tools" / "devtool" / "templates"


def camel(name):
    """nn.leaky_relu -> LeakyRelu"""
    return "".join(word[:1].upper() + word[1:] for word in name.rsplit(".", 1)[-1].split("_"))


def snake(name):
    """DropNopReshape -> drop_nop_reshape; ToANormalForm -> to_a_normal_form; FoldIRText -> fold_ir_text"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def plan(kind, name):
    """(where to write -> template, words to put in) for a new operator or pass; raises StepFailed for a name that will not do."""
    if kind == "op":
        if not re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)?", name) or name != name.lower():
            raise StepFailed(f"new: `{name}` is no name for an operator", None,
                             "lower case with underscores, perhaps behind a family: `nn.leaky_relu`, `cumsum`")
        family, _, short = name.rpartition(".")
        place, words = f"relay/op/{family or 'tensor'}/{short}", {"name": name, "snake": short, "Camel": camel(name)}
    else:
        if not re.fullmatch(r"([A-Z][a-z0-9]*)+", name):
            raise StepFailed(f"new: `{name}` is no name for a pass", None, "a verb phrase in upper camel case: `FoldConstant`")
        place, words = f"relay/transform/{snake(name)}", {"Camel": name, "snake": snake(name)}
    return {ROOT / f"src/{place}.cpp": f"{kind}.cpp", ROOT / f"tests/{place}.relay": f"{kind}.relay"}, words


def taken(kind, name):
    """The source file that defines this operator or pass already, or None."""
    pattern = rf'\.name = "{re.escape(name)}"' if kind == "op" else rf"\bMakePass<{re.escape(name)}>"
    for path in sorted((ROOT / "src").rglob("*.cpp")):
        if re.search(pattern, path.read_text(encoding="utf-8")):
            return path
    return None


def new(kind, name):
    """Writes the source file and the test; READMEs where a folder is new."""
    files, words = plan(kind, name)
    there = taken(kind, name) or next((path for path in files if path.exists()), None)
    if there:
        raise StepFailed(f"new: {name} is there already: {shown(there)}", None, "choose another name, or change that file")
    for path, template in files.items():
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        path.parent.mkdir(parents=True, exist_ok=True)
        readme = path.parent / "README.md"
        if not readme.exists():
            what = "Tests of" if path.suffix == ".relay" else "Operators of the family"
            readme.write_text(f"{what} `{path.parent.name}`, a file each.\n", encoding="utf-8")
            say("new", f"wrote {shown(readme)}; say there what belongs in the folder")
        path.write_text(text, encoding="utf-8")
        say("new", f"wrote {shown(path)}")
    source = shown(next(iter(files)))
    say("new", f"it compiles and its test passes as it is: ./dev test {source}")
