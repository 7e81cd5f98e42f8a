# SPDX-License-Identifier: Apache-2.0
"""Writes the reference: a page a subject in Markdown, and as HTML that needs no network where the package `markdown` is installed."""

import collections
import html
import importlib
import inspect
import json
import re
from pathlib import Path

import baton

from . import examples, model
from .stubs import default_text, groups, number_text, public_names

# Values of TOpPattern, as relay.op.OpPattern has them.
_PATTERNS = {0: "element-wise", 1: "broadcasting", 2: "injective", 3: "a reduction", 4: "fusable at its output", 7: "a tuple", 8: "opaque"}


class Reference:
    """The pages as they grow: entries by anchor, so that text can link to them."""

    def __init__(self):
        self.pages = collections.OrderedDict()  # file stem -> (title, lines)
        self.entries = {}  # what is described -> "page#anchor"
        self.index = []  # (name, kind, target) for the search

    def page(self, stem, title, intro=""):
        """A new page; returns its lines."""
        lines = [f"# {title}", "", *([intro, ""] if intro else [])]
        self.pages[stem] = (title, lines)
        return lines

    def entry(self, lines, stem, name, kind, level=2, shown=None):
        """The heading of an entry, with an anchor that links lead to."""
        anchor = f"{kind}-{name}".replace(" ", "-")
        anchor = re.sub(r"[^\w.\-]", "_", anchor)
        lines += ["", f'{"#" * level} {shown or f"`{name}`"} {{#{anchor}}}', ""]
        self.entries.setdefault((kind, name), f"{stem}.md#{anchor}")
        self.index.append((name, kind, f"{stem}.md#{anchor}"))

    def link(self, kind, name, shown=None):
        """A link to an entry; the plain name where there is none."""
        target = self.entries.get((kind, name))
        return f"[`{shown or name}`]({target})" if target else f"`{shown or name}`"


def write_pages(folder, package="baton"):
    """Writes the reference into a folder; returns the files. `package` other than "baton": only the types of that library."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    reference = collect(package)
    written = {f"{stem}.md": "\n".join(lines).rstrip() + "\n" for stem, (_, lines) in reference.pages.items()}
    written = {name: _link_words(reference, text) for name, text in written.items()}
    try:
        import markdown  # noqa: F401
    except ImportError:
        pass
    else:
        written |= to_html(reference, written)
    for old in [*folder.glob("*.md"), *folder.glob("*.html")]:
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(written)


def collect(package="baton"):
    """All pages as Markdown."""
    reference = Reference()
    types = model.node_types()
    if package != "baton":
        front = reference.page("index", f"{package}: reference")
        _type_pages(reference, {k: t for k, t in types.items() if k.startswith(package + ".")})
        front += [f"- [{title}]({stem}.md)" for stem, (title, _) in list(reference.pages.items())[1:]]
        return reference
    front = reference.page(
        "index",
        "Baton: reference",
        "Made from the descriptions in C++ and the docstrings of Python; the guides and the design are in the repository under `docs/`.",
    )
    _operator_pages(reference)
    _attrs_page(reference, types)
    _type_pages(reference, {k: t for k, t in types.items() if not k.startswith("relay.attrs.")})
    _pass_page(reference)
    _option_page(reference, types)
    _instrument_page(reference, types)
    _function_page(reference)
    _c_page(reference)
    _python_pages(reference)
    sections = collections.OrderedDict()
    for stem, (title, _) in list(reference.pages.items())[1:]:
        sections.setdefault(_section(stem), []).append(f"[{title}]({stem}.md)")
    for name, links in sections.items():
        front += ["", f"## {name}", "", " · ".join(links)]
    front += ["", "## In figures", "", "| | number |", "| --- | --- |"]
    counted = collections.Counter(kind for _, kind, _ in reference.index)
    front += [
        f"| {what} | {counted[kind]} |"
        for kind, what in (
            ("op", "operators"),
            ("type", "types of C++"),
            ("pass", "passes"),
            ("option", "options of PassContext"),
            ("instrument", "instruments"),
            ("python", "names of Python"),
            ("function", "global functions"),
            ("c", "functions of C"),
        )
    ]
    return reference


_SECTIONS = (
    ("python", "Python"),
    ("op-", "Operators"),
    ("attrs", "Operators"),
    ("type", "Types"),
    ("pass", "Passes"),
    ("option", "Passes"),
    ("instrument", "Passes"),
    ("functions", "The border to C++"),
    ("c-api", "The border to C++"),
)


def _section(stem):
    return next((name for prefix, name in _SECTIONS if stem.startswith(prefix)), "Other")


def _cell(text):
    """Text in a table."""
    return model.one_line(str(text)).replace("|", "\\|") or " "


def _plain(text):
    """Docstring text as Markdown: indented examples stay code, `Inputs:` and its like stay lines, stars stay stars."""
    text = inspect.cleandoc(text or "")
    out, code, listed = [], False, False
    for line in text.splitlines():
        indented = line.startswith("    ")
        # `opt_level: passes up to this level run` and its like, one below the other: a list.
        parameter = re.match(r"([a-z_]\w*(?:, [a-z_]\w*)*): ", line)
        if parameter and (listed or not out or not out[-1].strip()):
            listed = True
            out.append(f"- `{parameter[1]}`: {_escape(line[parameter.end() :])}")
            continue
        listed = listed and bool(line.strip())
        if indented and not code and out and out[-1].strip():
            out.append("")
        code = indented
        out.append(line if indented else _escape(line))
    return "\n".join(out)


def _escape(line):
    """Marks of Markdown that mean themselves, outside of code."""
    parts = line.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([*_<\[\]])", r"\\\1", parts[i])
    return "`".join(parts)


def _link_words(reference, text):
    """Names in backticks of operators, passes and types lead to their entries."""
    out, code = [], False
    for line in text.split("\n"):
        if line.startswith("```"):
            code = not code
        if code or line.startswith(("#", "    ")):
            out.append(line)
            continue

        def refer(match):
            for kind in ("pass", "type", "op", "option") if "." in match[1] or match[1][0].isupper() else ():  # `mean` is a field as well
                target = reference.entries.get((kind, match[1]))
                if target:
                    return f"[`{match[1]}`]({target})"
            return match[0]

        out.append(re.sub(r"(?<![\[`])`([\w.]+)`(?![\]`])", refer, line))
    return "\n".join(out)


def _kind_text(kind):
    """The words of a field's type, as Python has it."""
    kind = kind.replace("runtime.String", "str").replace("runtime.NDArray", "NDArray").replace("runtime.", "").replace("Object", "any")
    return "`" + kind.replace("<", "[").replace(">", "]") + "`"


def _field_rows(fields, python_names=None):
    """A table of fields."""
    lines = ["| field | type | default | bounds | meaning |", "| --- | --- | --- | --- | --- |"]
    for f in fields:
        default = "required" if f.required else _default(f)
        bounds = " to ".join(filter(None, [f"{number_text(f.lower)}" if f.lower is not None else "", f"{number_text(f.upper)}" if f.upper is not None else ""]))
        if f.lower is not None and f.upper is None:
            bounds = f"at least {bounds}"
        elif f.upper is not None and f.lower is None:
            bounds = f"at most {bounds}"
        lines.append(f"| `{f.name}` | {_cell(_kind_text(f.kind))} | {_cell(default)} | {_cell(bounds)} | {_cell(_escape(f.doc))} |")
    return lines


def _default(field):
    if field.default is None:
        return "None" if field.nullable else "must be given"
    value = field.default
    if isinstance(value, baton.runtime.Array):
        value = tuple(value)
    text = default_text(value)
    return f"`{text}`" if text != "..." else f"`{_cell(value)[:40]}`"


# ---- Operators


def _operator_pages(reference):
    found = model.operators()
    by_group = collections.OrderedDict()
    for name in sorted(found, key=lambda n: (n.count(".") > 0, n)):
        by_group.setdefault(name.rpartition(".")[0], []).append(name)
    describe = baton.get_global_func("relay.op.Describe")
    for group, names in by_group.items():
        stem = "op-" + (group or "tensor").replace(".", "-")
        lines = reference.page(
            stem,
            f"Operators: {group or 'tensors'}",
            f"In Python `baton.relay.{group + '.' if group else ''}NAME`. Requirements are numbered R1, R2...; errors cite them.",
        )
        for name in names:
            _operator_entry(reference, lines, stem, name, found[name], describe)


def _operator_entry(reference, lines, stem, name, op, describe):
    reference.entry(lines, stem, name, "op")
    from ..relay.op import find

    shown = find(name)
    try:
        signature = str(inspect.signature(shown))
    except (TypeError, ValueError):
        signature = str(op.__signature__)
    if "args" in signature and "kwargs" in signature:
        signature = str(op.__signature__)
    lines += [_plain(op.op.description), "", "```python", f"{model.call_path(name)}{signature}", "```"]
    if op.inputs:
        lines += ["", "| input | meaning |", "| --- | --- |", *(f"| `{p.name}` | {_cell(_escape(p.doc))} |" for p in op.inputs)]
    if op.attrs_key:
        fields = [f for f in model.node_types()[op.attrs_key].fields] if op.attrs_key in _types() else []
        lines += ["", f"Attributes: `{op.attrs_key}`.", "", *_field_rows(fields)] if fields else []
    output = op.op.get_attr("output")
    if output:
        lines += ["", f"**Result.** {_escape(str(output))}"]
    facts = dict(describe(op.op).items())
    words = [
        f"fusion sees it as {_PATTERNS.get(op.op.get_attr('TOpPattern'), 'opaque')}",
        "has state: never folded or removed"
        if op.op.get_attr("TOpIsStateful")
        else "folded where its inputs are constant"
        if facts.get("folded")
        else "not folded",
        "has a gradient" if facts.get("gradient") else f"has no gradient: {facts['no_gradient']}" if facts.get("no_gradient") else "",
        "is said in terms of other operators" if facts.get("decomposed") else "",
        "runs on host arrays" if facts.get("host") and not facts.get("compiled") else "",
    ]
    if facts.get("source"):
        words.append(f"its meaning is that of {facts['source']}")
    lines += ["", "**Facts.** " + _escape("; ".join(w for w in words if w)) + "."]
    made = examples.example(op)
    if made:
        lines += ["", "**Example.**", "", "```python", *made[0][:-1], f"{made[0][-1]}  # {made[1]}", "```"]


_cached = {}


def _types():
    if not _cached:
        _cached.update(model.node_types())
    return _cached


def _attrs_page(reference, types):
    lines = reference.page(
        "attrs", "Attributes of operators", "Classes of `baton.relay.op.op_attrs`; `baton.ir.make_node(KEY, ...)` makes one by its type key."
    )
    for key, node in types.items():
        if key.startswith("relay.attrs."):
            reference.entry(lines, "attrs", key, "type")
            lines += [_plain(node.doc), "", *_field_rows(node.fields)]


# ---- Types


def _type_pages(reference, types):
    by_prefix = collections.OrderedDict()
    for key in types:
        by_prefix.setdefault(key.split(".")[0] if "." in key else "ir", []).append(key)
    children = collections.defaultdict(list)
    for key, node in types.items():
        children[node.parent].append(key)
    for prefix, keys in by_prefix.items():
        stem = f"type-{prefix}"
        lines = reference.page(
            stem,
            f"Types: {prefix}",
            "Classes of C++ and their fields. Fields are the attributes of the Python class, the arguments of its constructor, "
            "what is compared, hashed, printed and saved.",
        )
        for key in keys:
            node = types[key]
            reference.entry(lines, stem, key, "type")
            lines += [_plain(node.doc) or "No description.", "", f"Python: `{node.module}.{node.name}`" + (" (abstract)" if node.abstract else "") + "."]
            if node.parent in types:
                lines += ["", f"Derives from `{node.parent}`."]
            if children.get(key):
                lines += ["", "Derived: " + ", ".join(f"`{c}`" for c in children[key]) + "."]
            if node.fields:
                lines += ["", *_field_rows(node.fields)]
                flagged = [
                    (
                        f.name,
                        [
                            w
                            for bit, w in (
                                (model.BINDS, "binds its variable in the fields that follow"),
                                (model.IGNORED, "not part of the value"),
                                (model.TRANSIENT, "not saved"),
                            )
                            if f.flags & bit
                        ],
                    )
                    for f in node.fields
                ]
                notes = [f"`{n}`: {', '.join(w)}" for n, w in flagged if w]
                if notes:
                    lines += ["", "; ".join(notes) + "."]


# ---- Passes


def _pass_page(reference):
    from ..ir.transform import default_of

    lines = reference.page(
        "passes",
        "Passes",
        "A pass runs when the context's level is at least its own, unless it is disabled; what it requires runs before. "
        "`baton.transform.PassContext` says how.",
    )
    for name, (doc, options, info) in model.passes().items():
        reference.entry(lines, "passes", name, "pass")
        module, last = model.pass_function(name)
        call = ", ".join(f"{option}={default_of(default)!r}" for option, _, _, _, default in options)
        lines += [_plain(doc) or "No description.", "", f"Python: `{module}.{last}({call})`."]
        if options:
            lines += ["", "| option | type | meaning |", "| --- | --- | --- |"]
            lines += [f"| `{option}` | {_cell(_kind_text(kind))} | {_cell(_escape(text))} |" for option, kind, text, _, _ in options]
        if info is not None:
            lines += ["", f"- level {info.opt_level}"]
            for what, field in (
                ("requires the passes", "required"),
                ("needs", "needs"),
                ("establishes", "establishes"),
                ("keeps", "keeps"),
                ("destroys", "destroys"),
            ):
                names = list(getattr(info, field))
                if names:
                    lines.append(f"- {what}: " + (", ".join(f"`{n}`" for n in names) if names != ["*"] else "all that it does not destroy"))
    doc = baton.get_global_func("transform.PropertyDoc")
    lines += [
        "",
        "## Properties {#properties}",
        "",
        "Properties that a pass needs, establishes, keeps and destroys.",
        "",
        "| property | meaning |",
        "| --- | --- |",
    ]
    lines += [f"| {_cell(_escape(str(p)))} | {_cell(_escape(str(doc(p))))} |" for p in baton.transform.list_properties()]


def _option_page(reference, types):
    lines = reference.page("options", "Options of PassContext", '`baton.transform.PassContext(config={"KEY": VALUE})`.')
    for key, (kind, doc) in model.options().items():
        reference.entry(lines, "options", key, "option")
        lines += [_plain(doc) or "No description.", "", f"Type: {_kind_text(kind)}."]
        if kind in types and types[kind].fields:
            lines += ["", "A dict of:", "", *_field_rows(types[kind].fields)]


def _instrument_page(reference, types):
    from .. import instrument

    lines = reference.page("instruments", "Instruments", "Code that runs around passes: `baton.transform.PassContext(instruments=[...])`.")
    for name in instrument.__all__:
        value = getattr(instrument, name)
        reference.entry(lines, "instruments", name, "instrument")
        lines += _callable_text(f"baton.instrument.{name}", value)
        if isinstance(value, type):
            lines += _methods_text(value)
    below = [t for t in types.values() if t.parent == "instrument.PassInstrument"]
    lines += ["", "Types of C++ behind them: " + ", ".join(f"`{t.key}`" for t in below) + "."]


# ---- Python


def _python_pages(reference):
    shown_groups = set(groups())
    for name in model.python_modules():
        if name.rsplit(".", 1)[-1].startswith("_") or name in shown_groups or _is_closed(name):
            continue
        module = importlib.import_module(name)
        own, others = _own_names(name, module)
        if not own and not module.__doc__:
            continue
        stem = "python-" + name.replace(".", "-")
        lines = reference.page(stem, name, _plain(module.__doc__))
        for public, value in own:
            reference.entry(lines, stem, f"{name}.{public}", "python", shown=f"`{public}`")
            lines += _callable_text(f"{name}.{public}", value)
            if isinstance(value, type):
                lines += _methods_text(value)
        if others:
            lines += ["", "## Also here {#also-here}", "", ", ".join(f"`{public}` ({home})" for public, home in others) + "."]


def _is_closed(name):
    """Whether a module is, or is in, a package that says that nothing of it is public: `__all__ = ()`."""
    packages = [name.rsplit(".", n)[0] for n in range(name.count("."))]
    return any(getattr(importlib.import_module(p), "__all__", None) == () for p in packages)


def _own_names(name, module):
    """(names that a module defines, names that it shows of others)."""
    from ..relay.op.make import Operator

    own, others = [], []
    for public, value in public_names(module):
        home = getattr(value, "__module__", None)
        if public.startswith("_") or isinstance(value, (Operator, type(module), baton.PackedFunc)):
            continue
        if not (isinstance(value, type) or callable(value)):
            continue
        if home == name and getattr(value, "__name__", public) == public:
            own.append((public, value))
        elif isinstance(home, str) and home.startswith("baton"):
            others.append((public, home))
    return own, others


def _callable_text(full, value):
    """Signature and docstring of a function or class."""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        signature = "(...)"
    signature = re.sub(r"<[^>]*>", "...", signature)
    doc = vars(value).get("__doc__") if isinstance(value, type) else getattr(value, "__doc__", "")
    doc = "Each object has its own docstring." if isinstance(doc, property) else doc
    head = f"class {full}{signature}" if isinstance(value, type) else f"{full}{signature}"
    return ["```python", head, "```", "", _plain(doc if isinstance(doc, str) else "") or "No description."]


def _methods_text(cls):
    """Public methods and properties that a class itself has."""
    rows = []
    for name, value in vars(cls).items():
        inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if name.startswith("_") and name not in ("__call__", "__getitem__"):
            continue
        if inspect.isfunction(inner):
            signature = re.sub(r"<[^>]*>", "...", str(inspect.signature(inner))).replace("(self, ", "(").replace("(self)", "()")
            rows.append((f"`{name}{signature}`", inner.__doc__))
        elif isinstance(value, property) or type(value).__name__ in ("Field", "getset_descriptor"):
            rows.append((f"`{name}`", value.__doc__))
    if not rows:
        return []
    return [
        "",
        "| member | |",
        "| --- | --- |",
        *(f"| {_cell(head)} | {_cell(_escape(inspect.cleandoc(doc or '').split(chr(10) + chr(10))[0]))} |" for head, doc in rows),
    ]


# ---- The border to C++


def _function_page(reference):
    lines = reference.page(
        "functions",
        "Global functions",
        "Functions that every language calls by name: `baton.get_global_func(NAME)`, `BatonFuncGetGlobal` in C. "
        "Where no signature is given, the function looks at its arguments itself. Names of compiler layers are for Baton's own front end and may change.",
    )
    for name, signature in model.packed_functions().items():
        if not name.startswith(("test", "seed.")):
            reference.index.append((name, "function", f"functions.md#function-{name}"))
            reference.entries[("function", name)] = f"functions.md#function-{name}"
            lines.append(f'- <a id="function-{name}"></a>`{name}`' + (f": `{signature}`" if signature else ""))


def _c_page(reference):
    from ..config import include_dir

    header = Path(include_dir(), "baton", "runtime", "c_runtime_api.h").read_text(encoding="utf-8")
    start, rest = header.split("#ifndef BATON_RUNTIME", 1)
    lines = reference.page("c-api", "The C interface")
    title = re.findall(r"/\*(.*?)\*/", start, re.DOTALL)[1]
    lines += ["```text", inspect.cleandoc(re.sub(r"^ \*? ?", "", title, flags=re.MULTILINE)).strip(), "```"]
    text = rest.split('extern "C" {', 1)[1].split("#ifdef __cplusplus")[0]
    for comment, code in re.findall(r"/\*(.*?)\*/(.*?)(?=\n/\*|\Z)", text, re.DOTALL):
        comment = re.sub(r"\s*\n \* ?", " ", comment).strip()
        heading = re.fullmatch(r"-+ (.*?) -+", comment)
        if heading:
            lines += ["", f"## {heading[1]}", ""]
            comment = ""
        if not code.strip() or code.strip().startswith("#endif"):
            continue
        for name in re.findall(r"\b(Baton\w+)\(|} (Baton\w+);|typedef struct \w+ (Baton\w+);|\(\*(BatonCFunc)\)|define (BATON_ABI_VERSION)", code):
            name = "".join(name)
            reference.index.append((name, "c", f"c-api.md#c-{name}"))
            reference.entries[("c", name)] = f"c-api.md#c-{name}"
            lines.append(f'<a id="c-{name}"></a>')
        lines += ["", _escape(comment), "", "```c", re.sub(r"\bBATON_DLL |\bBATON_UNNAMED ", "", code.strip()), "```"]


# ---- HTML

_STYLE = """
:root{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--paper:#fff;--shade:#f6f8fa;--mark:#0b62c4}
@media(prefers-color-scheme:dark){:root{--ink:#d7dde4;--soft:#8b949e;--line:#30363d;--paper:#0f1318;--shade:#171c23;--mark:#6cb0ff}}
*{box-sizing:border-box}body{margin:0;font:15px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper);display:flex}
nav{width:17rem;flex:none;height:100vh;overflow:auto;position:sticky;top:0;padding:1rem;border-right:1px solid var(--line);background:var(--shade);font-size:13.5px}
nav h2{font-size:12px;text-transform:uppercase;letter-spacing:.06em;color:var(--soft);margin:1.1rem 0 .2rem}nav ul{list-style:none;margin:0;padding:0}
nav li a{display:block;padding:.1rem .3rem;border-radius:4px;overflow-wrap:anywhere}nav li a.here{background:var(--line)}
nav input{width:100%;padding:.35rem .5rem;border:1px solid var(--line);border-radius:6px;background:var(--paper);color:var(--ink)}
main{min-width:0;flex:1;max-width:64rem;padding:1.2rem 2.2rem 4rem}a{color:var(--mark);text-decoration:none}a:hover{text-decoration:underline}
h2 code,h3 code{background:none;padding:0;font-size:1.08rem;font-weight:600}h1{font-size:1.7rem;margin:.2rem 0 1rem}h2,h3{border-top:1px solid var(--line);padding-top:1rem;margin-top:1.8rem;font-size:1.15rem;scroll-margin-top:.5rem}
code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace;background:var(--shade);padding:.08em .3em;border-radius:4px}
pre{background:var(--shade);border:1px solid var(--line);border-radius:6px;padding:.7rem .9rem;overflow:auto}pre code{background:none;padding:0}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:.6rem 0;font-size:14px}th,td{border:1px solid var(--line);padding:.25rem .55rem;text-align:left;vertical-align:top}
th{background:var(--shade);font-weight:600}td code{white-space:nowrap}#found{list-style:none;padding:0;margin:.4rem 0}#found small{color:var(--soft)}
@media(max-width:800px){body{display:block}nav{position:static;width:auto;height:auto;max-height:40vh}main{padding:1rem}}
"""
_SCRIPT = """
const box=document.getElementById('search'),found=document.getElementById('found');
box.addEventListener('input',()=>{const q=box.value.trim().toLowerCase();found.replaceChildren();if(q.length<2)return;
const rank=e=>{const n=e[0].toLowerCase(),l=n.slice(n.lastIndexOf('.')+1);return l===q?0:l.startsWith(q)?1:n.includes(q)?2:9};
INDEX.map(e=>[rank(e),e]).filter(e=>e[0]<9).sort((a,b)=>a[0]-b[0]||a[1][0].length-b[1][0].length).slice(0,30).forEach(([,e])=>{
const li=document.createElement('li'),a=document.createElement('a'),s=document.createElement('small');a.href=e[2];a.textContent=e[0];s.textContent=' '+e[1];li.append(a,s);found.append(li)})});
"""


def to_html(reference, pages):
    """The pages as HTML, with a list of all pages and a search that works from files."""
    import markdown

    out = {}
    sections = collections.OrderedDict()
    for stem, (title, _) in reference.pages.items():
        sections.setdefault("Reference" if stem == "index" else _section(stem), []).append((stem, title))
    for stem, (title, _) in reference.pages.items():
        made = markdown.Markdown(extensions=["tables", "fenced_code", "attr_list", "sane_lists"], output_format="html").convert(pages[f"{stem}.md"])
        made = re.sub(r'href="([\w.\-]+)\.md(#[^"]*)?"', lambda m: f'href="{m[1]}.html{m[2] or ""}"', made)
        made = re.sub(r"<code>((?:Array|Map)\[[^<]*)</code>", lambda m: f"<code>{_link_inside(reference, m[1])}</code>", made)
        made = made.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
        menu = "".join(
            f"<h2>{name}</h2><ul>"
            + "".join(f'<li><a href="{s}.html"{" class=here" if s == stem else ""}>{html.escape(_short(t))}</a></li>' for s, t in items)
            + "</ul>"
            for name, items in sections.items()
        )
        out[f"{stem}.html"] = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body><nav><input id=search placeholder=Search aria-label=Search>"
            f"<ul id=found></ul>{menu}</nav><main>{made}</main><script src=\"search.js\"></script></body></html>\n"
        )
    index = sorted((name, kind, target.replace(".md#", ".html#")) for name, kind, target in reference.index)
    out["search.js"] = f"const INDEX={json.dumps(index, separators=(',', ':'))};\n{_SCRIPT.strip()}\n"
    return out


def _link_inside(reference, words):
    """Links from the element types of a container."""

    def refer(match):
        target = reference.entries.get(("type", match[0]))
        return f'<a href="{target.replace(".md#", ".html#")}">{match[0]}</a>' if target else match[0]

    return re.sub(r"[\w.]+", refer, words)


def _short(title):
    return title.replace("Operators: ", "").replace("Types: ", "")
