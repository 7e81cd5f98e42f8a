# SPDX-License-Identifier: Apache-2.0
"""Each rule of tools/check_layers.py trips on what it forbids, and lets pass what it allows."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402
import code_sizes  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = "include/baton/"


@pytest.fixture
def tree(tmp_path):
    """A function that writes files {path: text after the SPDX line} and returns the breaches as (path, line, rule)."""

    def write(files, *, readmes=True, spdx=True):
        for path, text in files.items():
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            first = SPDX if path.endswith((".h", ".cpp")) and spdx else "# " + SPDX[3:] if path.endswith(".py") and spdx else ""
            target.write_text(first + text)
            for folder in target.relative_to(tmp_path).parents:
                if readmes and str(folder) != ".":
                    (tmp_path / folder / "README.md").write_text("The files of a folder.\n")
        return [(b.path, b.line, b.rule) for b in check_layers.check(tmp_path)]

    return write


ALL = ["support", "runtime", "ir", "tir", "arith", "te", "topi", "relay", "relay/op", "relay/transform", "codegen", "frontend", "driver"]


@pytest.mark.parametrize("lower, higher", list(zip(ALL, ALL[1:], strict=False)))
def test_each_border_lets_only_one_direction_pass(tree, lower, higher):
    down = tree({f"{HEADER}{lower}/low.h": "", f"src/{higher}/high.cpp": f'#include "baton/{lower}/low.h"\n'})
    assert down == []
    up = tree({f"{HEADER}{higher}/high.h": "", f"src/{lower}/low.cpp": f"#include <baton/{higher}/high.h>\n"})
    assert up == [(f"src/{lower}/low.cpp", 2, "layer")]


def test_headers_beside_the_source_and_below_src_count_too(tree):
    found = tree(
        {
            "src/relay/detail.h": "",
            "src/tir/one.cpp": '#include "relay/detail.h"\n',
            "src/tir/two.cpp": '\n#include "../relay/detail.h"\n',
            "src/relay/three.cpp": '#include "detail.h"\n',
        }
    )
    assert found == [("src/tir/one.cpp", 2, "layer"), ("src/tir/two.cpp", 3, "layer")]


def test_both_transforms_are_one_layer_above_ops(tree):
    found = tree(
        {
            f"{HEADER}relay/op/nn.h": "",
            "src/tir/transform/shared.h": "",
            "src/relay/transform/a.cpp": '#include "baton/relay/op/nn.h"\n#include "tir/transform/shared.h"\n',
            "src/relay/op/nn/b.cpp": '#include "tir/transform/shared.h"\n',
        }
    )
    assert found == [("src/relay/op/nn/b.cpp", 2, "layer")]


def test_the_extension_sees_the_runtime_alone(tree):
    found = tree(
        {
            f"{HEADER}runtime/object.h": "",
            f"{HEADER}ir/expr.h": "",
            "src/python/core.cpp": '#include "baton/runtime/object.h"\n#include "baton/ir/expr.h"\n',
        }
    )
    assert found == [("src/python/core.cpp", 3, "layer")]


def test_a_header_for_everything_is_for_users_only(tree):
    found = tree({f"{HEADER}all.h": "", "src/ir/a.cpp": "#include <baton/all.h>\n", "examples/a.cpp": "#include <baton/all.h>\n"})
    assert found == [("src/ir/a.cpp", 2, "layer")]


def test_an_unknown_folder_is_no_layer(tree):
    assert tree({"src/utils/a.cpp": ""}) == [("src/utils/a.cpp", 0, "layer")]


@pytest.mark.parametrize("header", ["llvm/IR/Module.h", "llvm-c/Core.h", "lld/Common/Driver.h"])
def test_llvm_stays_in_its_room(tree, header):
    found = tree({"src/codegen/llvm/a.cpp": f"#include <{header}>\n", "src/codegen/c/b.cpp": f'#include "{header}"\n'})
    assert found == [("src/codegen/c/b.cpp", 2, "llvm")]


@pytest.mark.parametrize("header", ["Python.h", "nanobind/nanobind.h"])
def test_python_stays_in_its_room(tree, header):
    found = tree({"src/python/a.cpp": f"#include <{header}>\n", "src/driver/b.cpp": f"#include <{header}>\n"})
    assert found == [("src/driver/b.cpp", 2, "python")]


@pytest.mark.parametrize("header", sorted(check_layers.HEAVY))
def test_heavy_headers_stay_out_of_public_ones(tree, header):
    found = tree({f"{HEADER}ir/a.h": f"#include <{header}>\n", "src/ir/a.cpp": f"#include <{header}>\n"})
    assert found == [(f"{HEADER}ir/a.h", 2, "heavy")]


def test_fmt_stays_in_the_compilers_sources(tree):
    line = "#include <fmt/format.h>\n"
    found = tree({"src/ir/a.cpp": line, "src/ir/a.h": line, "src/runtime/b.cpp": line, f"{HEADER}ir/c.h": line})
    assert sorted(found) == [(f"{HEADER}ir/c.h", 2, "fmt"), ("src/ir/a.h", 2, "fmt"), ("src/runtime/b.cpp", 2, "fmt")]


def test_the_c_header_includes_c_alone(tree):
    found = tree({f"{HEADER}runtime/c_runtime_api.h": "#include <stdint.h>\n#include <dlpack/dlpack.h>\n#include <vector>\n", "include/dlpack/dlpack.h": ""})
    assert found == [(f"{HEADER}runtime/c_runtime_api.h", 4, "c-header")]


def test_tests_of_the_runtime_do_without_the_compiler(tree):
    found = tree(
        {
            f"{HEADER}ir/expr.h": "",
            "tests/runtime/a.cpp": '#include "baton/ir/expr.h"\n',
            "tests/ir/b.cpp": '#include "baton/ir/expr.h"\n',
        }
    )
    assert found == [("tests/runtime/a.cpp", 2, "tests")]


def test_folders_need_a_readme(tree, tmp_path):
    files = {"src/ir/a.cpp": "", f"{HEADER}ir/a.h": "", "tests/onnx/data/x.py": "", "tests/ir/a.py": ""}
    assert tree(files, readmes=False) == [("src/ir", 0, "readme"), ("tests/ir", 0, "readme")]
    for folder in ("src/ir", "tests/ir"):
        (tmp_path / folder / "README.md").write_text(" \n")
    assert {b.rule for b in check_layers.check(tmp_path)} == {"readme"}, "an empty one does not count"


def test_sources_need_an_spdx_line(tree, tmp_path):
    found = tree({"src/ir/a.cpp": "int x;\n", "python/baton/ir/a.py": "x = 1\n", "src/ir/empty.cpp": ""}, spdx=False)
    assert found == [("python/baton/ir/a.py", 1, "spdx"), ("src/ir/a.cpp", 1, "spdx")]
    (tmp_path / "src/ir/a.cpp").write_text("\n\n" + SPDX)
    assert ("src/ir/a.cpp", 1, "spdx") in [b[:3] for b in check_layers.check(tmp_path)], "too late in the file"
    (tmp_path / "tool.sh").write_text("#!/bin/sh\n# " + SPDX[3:])
    assert not any(b.path == "tool.sh" for b in check_layers.check(tmp_path)), "second line, after the interpreter"


@pytest.mark.parametrize("place", ["work", "root", "home"])
def test_no_machine_paths(tree, place):
    found = tree({"docs/a.md": f"See /{place}/me/thing.\n", "docs/b.md": f"See $HOME/{place}/x, a/{place}/x, net{place}/x and /{place}.\n"})
    assert found == [("docs/a.md", 1, "path")]


def test_only_what_dev_installs_is_included(tree):
    found = tree({"src/ir/a.cpp": "#include <vector>\n#include <sys/mman.h>\n#include <boost/any.hpp>\n#include <fmt/core.h>\n"})
    assert found == [("src/ir/a.cpp", 4, "installed")]


def test_only_what_dev_installs_is_imported(tree):
    found = tree(
        {
            "tools/requirements.txt": "numpy==2.4.6\n",
            "tests/a.py": "import os.path\nimport numpy as np\nfrom baton import relay\nfrom . import b\nimport scipy.linalg\n",
            "tests/b.py": "try:\n  import rich\nexcept ImportError:\n  rich = None\ndef f():\n  import torch\nimport a\n",
            "tests/c.py": "def (\n",
        }
    )
    assert found == [("tests/a.py", 6, "installed"), ("tests/c.py", 2, "installed")]


def lines_of(n):
    return "".join(f"  x += {i};\n" for i in range(n))


def test_sizes_of_files_functions_and_classes(tree):
    found = tree(
        {
            "src/tir/long_function.cpp": "namespace a {\nint F(int x = 0) {\n" + lines_of(99) + "}\n}\n",
            "src/tir/fits.cpp": "namespace a {\nint F(int x) {\n" + lines_of(98) + "}\n}\n",
            "src/tir/long_class.cpp": "class A : public B<int(int)> {\n" + "  void F();\n" * 399 + "};\n",
            "src/tir/class_fits.cpp": "class A final {\n" + "  void F();\n" * 398 + "};\n",
            "src/tir/long_file.cpp": "int x();\n" * 700,
            "src/tir/table.cpp": "const Row rows[] = {\n" + '    {"name", 1},\n' * 700 + "};\n",
            "tools/long.py": "def f(x):\n" + "    x += 1\n" * 100,
            "tests/tir/long_file.cpp": "int x();\n" * 700,
        }
    )
    assert found == [
        ("src/tir/long_class.cpp", 2, "size"),
        ("src/tir/long_file.cpp", 1, "size"),
        ("src/tir/long_function.cpp", 3, "size"),
        ("tools/long.py", 2, "size"),
    ]


def named_sizes(text, path="src/a.cpp"):
    sizes = code_sizes.python_sizes if path.endswith(".py") else code_sizes.cpp_sizes
    return {s.name: (s.kind, s.line, s.lines) for s in sizes(path, text)}


def test_what_stands_between_braces_is_named():
    found = named_sizes('''namespace a {
struct S {
  S() : x_(1), y_{2} {
    x_ = '{';
  }
  bool operator==(const S& o) const { return x_ == o.x_; }
  template <class F>
  void Each(F f) {
    for (int i : {1, 2}) f([&] { return "}"; });
  }
  std::vector<int> v = {1, 2};
};
#define OPEN {
// } a brace in a comment
const bool registered = [] {
  if (true) return true;
  return false;
}();
void S::F(
    int a) const {
  struct Local { int x; };
}
}
''')
    assert found == {
        "S": ("class", 2, 11),
        "S::S": ("function", 3, 3),
        "S::operator==": ("function", 6, 1),
        "S::Each": ("function", 7, 4),
        "S::F": ("function", 19, 4),
    }


def test_python_functions_within_functions_and_classes():
    assert named_sizes("class A:\n    def f(self):\n        def g():\n            pass\n", "a.py") == {
        "A": ("class", 1, 4),
        "A.f": ("function", 2, 3),
        "A.f.g": ("function", 3, 2),
    }


def test_the_list_of_sizes_may_only_shrink():
    def said(lines, allowed):
        sizes = [code_sizes.Size("src/a.cpp", 7, "function", "F", lines)] if lines > code_sizes.MAX_FUNCTION else []
        return [(path, line) for path, line, _ in code_sizes.breaches(sizes, {"src/a.cpp::F": allowed} if allowed else {})]

    assert said(120, None) == [("src/a.cpp", 7)]
    assert said(120, 120) == []
    assert said(121, 120) == [("src/a.cpp", 7)]  # it grew
    assert said(119, 120) == [("src/a.cpp", 0)]  # it shrank: so must its entry
    assert said(90, 120) == [("src/a.cpp", 0)]  # the entry is for nothing


OPERATORS = {"src/relay/op/nn/norm.cpp": 'const Op op::lrn = DefineOp({.name = "nn.lrn"});\nconst Op op::rms = DefineOp({.name = "nn.rms_norm"});\n'}


def test_layers_that_ask_slots_name_no_operator(tree):
    """By string and by constant; not in comments, in rewrite rows, in other layers, and words that are no operator's name."""
    found = tree(
        OPERATORS
        | {
            "src/relay/transform/a.cpp": 'auto a = "nn.lrn";  // "nn.lrn"\nauto b = op::rms;\nauto c = "nn.other";\n',
            "src/relay/transform/rows.cpp": 'Rows r = {\n  {"lrn(x) -> x", E::kExact,\n   Of("nn.lrn", x), [] { return op::rms; }},\n};\nauto d = "nn.lrn";\n',
            "src/relay/guard/b.cpp": 'auto a = "nn.rms_norm";\n',
            "src/driver/c.cpp": "bool c = op == op::lrn;\n",
            "src/te/d.cpp": '/* op::lrn */ auto d = "nn.lrn";\n',
            "src/frontend/e.cpp": 'auto e = "nn.lrn";\n',
        }
    )
    assert sorted(found) == [
        ("src/driver/c.cpp", 2, "names"),
        ("src/relay/guard/b.cpp", 2, "names"),
        ("src/relay/transform/a.cpp", 2, "names"),
        ("src/relay/transform/a.cpp", 3, "names"),
        ("src/relay/transform/rows.cpp", 6, "names"),
        ("src/te/d.cpp", 2, "names"),
    ]


def test_passes_name_the_operators_that_they_are_about(tree, monkeypatch):
    monkeypatch.setattr(check_layers, "ABOUT", {"src/relay/transform/fold_lrn.cpp": {"nn.lrn"}})
    assert tree(OPERATORS | {"src/relay/transform/fold_lrn.cpp": 'auto a = "nn.lrn";\nauto b = "nn.rms_norm";\n'}) == [
        ("src/relay/transform/fold_lrn.cpp", 3, "names")
    ]


def test_the_number_of_names_may_only_fall(tree, tmp_path):
    listing = tmp_path / check_layers.NAMES_LEFT
    listing.parent.mkdir()
    (listing.parent / "README.md").write_text("The files of a folder.\n")
    listing.write_text(check_layers.NAMES_HEAD + "  2 src/te/a.cpp\n  1 src/te/gone.cpp\n")
    (tmp_path / "src/te").mkdir(parents=True)
    (tmp_path / "src/te/gone.cpp").write_text(SPDX)
    over = 'auto a = "nn.lrn";\nauto b = op::lrn;\nauto c = op::rms;\n'
    assert [b for b in tree(OPERATORS | {"src/te/a.cpp": over}) if b[0] == "src/te/a.cpp"] == [("src/te/a.cpp", n, "names") for n in (2, 3, 4)]
    check_layers.lower_names(tmp_path)
    assert check_layers.names_left(tmp_path) == {"src/te/a.cpp": 2}, "it falls, and does not rise"
    assert tree({"src/te/a.cpp": 'auto a = "nn.lrn";\nauto b = op::lrn;\n'}) == []
    assert tree({"src/te/a.cpp": 'auto a = "nn.lrn";\n'}) == [(check_layers.NAMES_LEFT, 0, "names")], "a number that is too high is a breach"
    check_layers.lower_names(tmp_path)
    assert check_layers.names_left(tmp_path) == {"src/te/a.cpp": 1}
    assert tree({}) == []


INTRINSICS = {
    "src/tir/intrin/math.cpp": 'const Op intrin::exp = DefineIntrin({.name = "exp"});\nconst Op intrin::call_f = DefineIntrin({.name = "call_f"});\n',
    "src/tir/intrin/README.md": "The files of a folder.\n",
}


def test_layers_that_ask_slots_name_no_intrinsic(tree, tmp_path):
    """By string, by a prefix, by a comparison of names and by constant; not in rows, columns and comments, nor names of nodes and of passes."""
    found = tree(
        INTRINSICS
        | {
            "src/tir/transform/a.cpp": 'auto a = "tir.exp";  // "tir.exp"\nbool b = call->op == intrin::exp;\nauto c = "tir.Call";\nauto d = "tir.Simplify";\n',
            "src/te/b.cpp": 'bool b = n.substr(0, 9) == "tir.call_";\n',
            "src/arith/c.cpp": "bool c = IntrinName(call) == name;\nauto text = std::string(IntrinName(call));\n",
            "src/codegen/llvm/intrinsics.cpp": "Column column = {{intrin::exp, OfLibm}};\n",
        }
    )
    assert sorted(found) == [
        ("src/arith/c.cpp", 2, "intrinsics"),
        ("src/te/b.cpp", 2, "intrinsics"),
        ("src/tir/transform/a.cpp", 2, "intrinsics"),
        ("src/tir/transform/a.cpp", 3, "intrinsics"),
    ]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/README.md").write_text("The files of a folder.\n")
    (tmp_path / check_layers.INTRINSICS_LEFT).write_text(check_layers.INTRINSICS_HEAD + "  2 src/tir/transform/a.cpp\n  3 src/te/b.cpp\n")
    for path in ("src/arith/c.cpp", "src/te/b.cpp"):
        (tmp_path / path).write_text(SPDX)
    left = [b for b in check_layers.check(tmp_path) if b.rule == "intrinsics"]
    assert [(b.path, b.line) for b in left] == [("src/tir/transform/a.cpp", 2), (check_layers.INTRINSICS_LEFT, 0)], "no number allows a string"
    (tmp_path / "src/tir/transform/a.cpp").write_text(SPDX + "bool b = call->op == intrin::exp;\n")
    check_layers.lower_names(tmp_path)
    assert check_layers.names_left(tmp_path, check_layers.INTRINSICS_LEFT) == {"src/tir/transform/a.cpp": 1}
    assert not [b for b in check_layers.check(tmp_path) if b.rule == "intrinsics"]


def test_the_importer_decides_by_no_operators_name(tree, tmp_path):
    """By comparison, or by a list of names; calls of operators, and names of attributes, are no decisions."""
    found = tree(
        {
            "src/relay/op/a.cpp": 'const Op op::add = DefineOp({.name = "add"});\nconst Op op::sum = DefineOp({.name = "sum"});\n',
            "src/relay/op/README.md": "The files of a folder.\n",
            "src/frontend/onnx/import/README.md": "The files of a folder.\n",
            "src/frontend/onnx/import/b.cpp": 'if (op == "add") return;  // op == "sum"\nreturn Call("add", {a, b});\nOneOf(op, {"add", "sum"});\nif (name == "axis") f({"add", 1});\n',
            "src/frontend/onnx/ops/README.md": "The files of a folder.\n",
            "src/frontend/onnx/ops/c.cpp": 'if (op == "add") return;\n',
        }
    )
    path = "src/frontend/onnx/import/b.cpp"
    assert sorted(b for b in found if b[2] == "elements") == [(path, 2, "elements"), (path, 4, "elements"), (path, 4, "elements")]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/README.md").write_text("The files of a folder.\n")
    (tmp_path / check_layers.ELEMENTS_LEFT).write_text(check_layers.ELEMENTS_HEAD + f"  4 {path}\n")
    left = [b for b in check_layers.check(tmp_path) if b.rule == "elements"]
    assert [(b.path, b.line) for b in left] == [(check_layers.ELEMENTS_LEFT, 0)], "a number that is too high"
    check_layers.lower_names(tmp_path)
    assert check_layers.names_left(tmp_path, check_layers.ELEMENTS_LEFT) == {path: 3}
    assert not [b for b in check_layers.check(tmp_path) if b.rule == "elements"]


def test_the_driver_goes_on_after_no_error(tree, tmp_path):
    """A `catch` that words an error, and code outside of the driver, are no decisions."""
    found = tree(
        {
            "src/driver/README.md": "The files of a folder.\n",
            "src/driver/a.cpp": "try { f(); } catch (const Error& e) {\n  throw UnsupportedError(e.what());\n}\ntry { f(); }\ncatch (const CompileError&) {\n  g();\n}\n",
            "src/driver/vm/README.md": "The files of a folder.\n",
            "src/driver/vm/b.cpp": "// catch (const Error& e) {}\ntry { f(); } catch (...) { if (open) throw; }\n",
            "src/relay/README.md": "The files of a folder.\n",
            "src/relay/c.cpp": "try { f(); } catch (const Error&) {}\n",
        }
    )
    assert sorted(b for b in found if b[2] == "trial") == [("src/driver/a.cpp", 6, "trial"), ("src/driver/vm/b.cpp", 3, "trial")]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/README.md").write_text("The files of a folder.\n")
    (tmp_path / check_layers.TRIALS_LEFT).write_text(check_layers.TRIALS_HEAD + "  1 src/driver/a.cpp\n  3 src/driver/vm/b.cpp\n")
    left = [b for b in check_layers.check(tmp_path) if b.rule == "trial"]
    assert [(b.path, b.line) for b in left] == [(check_layers.TRIALS_LEFT, 0)], "a number that is too high"
    check_layers.lower_names(tmp_path)
    assert check_layers.names_left(tmp_path, check_layers.TRIALS_LEFT) == {"src/driver/a.cpp": 1, "src/driver/vm/b.cpp": 1}


def test_few_names_are_left():
    elements = check_layers.names_left(check_layers.ROOT, check_layers.ELEMENTS_LEFT)
    assert not elements
    intrinsics = check_layers.names_left(check_layers.ROOT, check_layers.INTRINSICS_LEFT)
    assert sum(intrinsics.values()) <= 13 and len(intrinsics) <= 8
    assert sum(check_layers.names_left(check_layers.ROOT).values()) <= 40


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_public_headers_compile_alone(tree, tmp_path):
    tree(
        {
            f"{HEADER}ir/good.h": "#include <cstdint>\ninline int64_t One() { return 1; }\n",
            f"{HEADER}ir/bad.h": "inline std::size_t One() { return 1; }\n",
            f"{HEADER}runtime/c_runtime_api.h": "class NotC;\n",
        }
    )
    found = check_layers.check_headers(tmp_path)
    assert [(b.path, b.rule) for b in found] == [(f"{HEADER}ir/bad.h", "alone"), (f"{HEADER}runtime/c_runtime_api.h", "alone")]


def test_command_line_says_where_and_which_rule(tree, tmp_path):
    tree({"src/ir/a.cpp": "#include <Python.h>\n"})
    run = subprocess.run([sys.executable, ROOT / "tools/check_layers.py", "--root", tmp_path], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.startswith("src/ir/a.cpp:2: python: ")
    assert "rule python: " in run.stderr
    (tmp_path / "src/ir/a.cpp").write_text(SPDX)
    run = subprocess.run([sys.executable, ROOT / "tools/check_layers.py", "--root", tmp_path], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


def test_every_rule_is_tried_here():
    tried = {
        "layer",
        "llvm",
        "python",
        "heavy",
        "fmt",
        "c-header",
        "tests",
        "readme",
        "spdx",
        "path",
        "installed",
        "size",
        "names",
        "intrinsics",
        "elements",
        "trial",
        "alone",
        "trick",
        "kind",
    }
    tried |= {"python-layer", "python-cycle", "python-compat", "floor", "english"}  # in test_python_layers.py, test_python_floor.py and test_plain_english.py
    assert tried == set(check_layers.RULES)


TRICKS = ["__builtin_prefetch(p);", "madvise(p, n, MADV_HUGEPAGE);", "void* p = mmap(a, n, 0, 0, 0, 0);", "runtime::PollInterrupt();"]


@pytest.mark.parametrize("line", TRICKS)
def test_tricks_stand_in_support_runtime_and_the_iterators_of_the_index(tree, line):
    assert tree({"src/relay/transform/fuse_ops.cpp": line}) == [("src/relay/transform/fuse_ops.cpp", 2, "trick")]


@pytest.mark.parametrize("line", TRICKS)
def test_tricks_are_allowed_at_home(tree, line):
    homes = [
        "src/support/pages.cpp",
        "src/runtime/block.cpp",
        "include/baton/runtime/interrupt.h",
        "src/relay/expr/frontier.h",
        "src/relay/expr/expr_index.h",
        "include/baton/relay/node_list.h",
    ]
    assert tree(dict.fromkeys(homes, line)) == []


def test_the_list_of_tricks_that_are_left_may_only_shrink(tmp_path):
    source = tmp_path / "src" / "relay" / "one.cpp"
    source.parent.mkdir(parents=True)
    source.write_text("PollInterrupt();\nPollInterrupt();\n")

    def breaches(left):
        return [(b.path, b.line) for b in check_layers.check_tricks(tmp_path, ["src/relay/one.cpp"], {"src/relay/": left})]

    assert breaches(2) == []
    assert breaches(1) == [("src/relay/one.cpp", 2)]
    assert breaches(3) == [("tools/check_layers.py", 0)]


@pytest.mark.parametrize("line", ['if (target->kind == "opencl") return;', 'const char* kind = "cuda";'])
def test_kinds_are_named_in_their_folders(tree, line):
    kind = line.split('"')[1]
    homes = [f"src/{kind}/device.cpp", f"src/codegen/{kind}/backend.cpp"] if kind == "opencl" else [f"src/codegen/{kind}/backend.cpp"]
    assert tree(dict.fromkeys([*homes, "src/runtime/device_api.cpp"], line)) == []
    assert tree({"src/driver/two.cpp": '/// "opencl", "cuda" in a comment'}) == []
    assert tree({"src/driver/one.cpp": line}) == [("src/driver/one.cpp", 2, "kind")]
