# SPDX-License-Identifier: Apache-2.0
"""`./dev new op`, `./dev new pass` and `./dev new target`: files that they write, and names that they refuse."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devtool import scaffold, step  # noqa: E402


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """An empty checkout that scaffold writes into."""
    monkeypatch.setattr(scaffold, "ROOT", tmp_path)
    monkeypatch.setattr(scaffold, "shown", str)
    (tmp_path / "src").mkdir()
    return tmp_path


def written(tree):
    return sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    "name, words", [("DropNopReshape", "drop_nop_reshape"), ("ToANormalForm", "to_a_normal_form"), ("FoldIRText", "fold_ir_text"), ("Fold2D", "fold2_d")]
)
def test_snake_case(name, words):
    assert scaffold.snake(name) == words


def test_operators_go_to_their_family(tree):
    scaffold.new("op", "nn.foo_bar")
    scaffold.new("op", "cumfoo")
    assert written(tree) == [
        "src/relay/op/nn/README.md",
        "src/relay/op/nn/foo_bar.cpp",
        "src/relay/op/tensor/README.md",
        "src/relay/op/tensor/cumfoo.cpp",
        "tests/relay/op/README.md",
        "tests/relay/op/nn/README.md",
        "tests/relay/op/nn/foo_bar.relay",
        "tests/relay/op/tensor/README.md",
        "tests/relay/op/tensor/cumfoo.relay",
        "tests/relay/op/test_cumfoo.py",
        "tests/relay/op/test_foo_bar.py",
    ]
    text = (tree / "src/relay/op/nn/foo_bar.cpp").read_text()
    assert '.name = "nn.foo_bar"' in text and "struct FooBarAttrs" in text and "@" not in text
    assert "nn.foo_bar(3f)" in (tree / "tests/relay/op/nn/foo_bar.relay").read_text()


def test_an_operator_has_rows_and_a_line_in_the_table(tree):
    """What `tests/relay/op/test_complete.py` and `tests/python/describe/test_table.py` ask of every operator."""
    table = tree / "src/relay/op/README.md"
    table.parent.mkdir(parents=True)
    head = "## nn\n\n| operator | result | gradient | as |\n| --- | --- | --- | --- |\n"
    table.write_text(f"{head}| `nn.elu(data)` | |\n| `nn.relu(data)` | |\n\n## vision\n")
    scaffold.new("op", "nn.foo_bar")
    assert table.read_text() == (
        f"{head}| `nn.elu(data)` | |\n| `nn.foo_bar(data, factor=2.0)` | out[i] = data[i] * factor | rule |  |\n| `nn.relu(data)` | |\n\n## vision\n"
    )
    rows = (tree / "tests/relay/op/test_foo_bar.py").read_text()
    compile(rows, "test_foo_bar.py", "exec")
    assert 'Case("nn.foo_bar"' in rows and "test_foo_bar = table(" in rows


def test_a_new_pass_asks_slots(tree):
    """It breaks no rule of `./dev lint` about names of operators."""
    import check_layers

    scaffold.new("pass", "FoldFoo")
    text = (tree / "src/relay/transform/fold_foo.cpp").read_text()
    assert not list(
        check_layers.places.names_used(check_layers.places.code("src/relay/transform/fold_foo.cpp", text), {"reshape": "reshape", "negative": "negative"})
    )
    assert "traits" in text and "Op::Get" not in text


def test_passes_go_to_transform(tree):
    scaffold.new("pass", "FoldFoo")
    assert "src/relay/transform/fold_foo.cpp" in written(tree) and "tests/relay/transform/fold_foo.relay" in written(tree)
    assert "Pass FoldFoo() {" in (tree / "src/relay/transform/fold_foo.cpp").read_text()
    assert (tree / "tests/relay/transform/fold_foo.relay").read_text().startswith("// RUN: InferType, FoldFoo\n")


TARGETS = """constexpr Kind kNamesAlone[] = {
    {"nvptx", kDLCUDA, kOfNvidia},
    {"metal", kDLMetal, ""},
    {"ext_dev", kDLExtDev, ""},
};"""


@pytest.fixture
def targets(tree):
    """The tree with a table of targets that are names alone."""
    (tree / "src/ir").mkdir()
    (tree / "src/ir/target.cpp").write_text(TARGETS)
    return tree


def test_a_target_is_a_folder(targets):
    """Two files outside of it may name it; none has to."""
    scaffold.new("target", "metal")
    made = [p for p in written(targets) if p != "src/ir/target.cpp"]
    assert made == [*(f"src/codegen/metal/{n}" for n in ("README.md", "backend.cpp", "builtins.cpp", "intrinsics.cpp", "language.cpp", "metal.h")),
                    "tests/codegen/metal/README.md", "tests/codegen/metal/test_source.py"]  # fmt: skip
    texts = {p: (targets / p).read_text() for p in made}
    assert not any(re.search(r"@\w+@", text) for text in texts.values())
    assert '.name = "metal"' in texts["src/codegen/metal/backend.cpp"] and "kDLMetal" in texts["src/codegen/metal/backend.cpp"]
    compile(texts["tests/codegen/metal/test_source.py"], "test_source.py", "exec")
    with pytest.raises(step.StepFailed, match="is there already"):
        scaffold.new("target", "metal")


@pytest.mark.parametrize("name", ["nvptx", "ext_dev", "metals", "Metal", "../x", ""])
def test_targets_that_will_not_do(targets, name):
    with pytest.raises(step.StepFailed, match="is not a name for a target") as caught:
        scaffold.new("target", name)
    assert "metal" in str(caught.value.__dict__) and written(targets) == ["src/ir/target.cpp"]


@pytest.mark.parametrize(
    "kind, name",
    [
        ("op", "Foo"),
        ("op", "nn.Foo"),
        ("op", "a.b.c"),
        ("op", "../x"),
        ("op", ""),
        ("op", "1x"),
        ("pass", "foldFoo"),
        ("pass", "fold_foo"),
        ("pass", "Fold_Foo"),
        ("pass", "Fold/Foo"),
        ("pass", ""),
    ],
)
def test_names_that_will_not_do(tree, kind, name):
    with pytest.raises(step.StepFailed, match="is not a name for"):
        scaffold.new(kind, name)
    assert written(tree) == []


@pytest.mark.parametrize("kind, name", [("op", "nn.foo"), ("pass", "FoldFoo")])
def test_nothing_is_overwritten(tree, kind, name):
    scaffold.new(kind, name)
    before = {p: (tree / p).read_text() for p in written(tree)}
    with pytest.raises(step.StepFailed, match="is there already"):
        scaffold.new(kind, name)
    assert before == {p: (tree / p).read_text() for p in written(tree)}


def test_a_name_that_another_file_defines_is_taken(tree):
    (tree / "src/many.cpp").write_text('DefineOp({.name = "nn.foo"}); Pass FoldFoo() { return MakePass<FoldFoo>({}); }')
    for kind, name in (("op", "nn.foo"), ("pass", "FoldFoo")):
        with pytest.raises(step.StepFailed, match=r"is there already: .*many\.cpp"):
            scaffold.new(kind, name)


def test_a_name_in_a_table_is_taken(tree):
    """Operators and passes are not all defined by `.name = ...` and `MakePass<...>`."""
    (tree / "src/relay/op").mkdir(parents=True)
    (tree / "src/relay/op/unary.cpp").write_text('const Op op::foo = WithAttrs<"nn.foo", FooAttrs>::Define("max(data, 0)");')
    (tree / "src/rows.h").write_text('{"tir.FoldFoo", "not for this target"},')
    for kind, name, where in (("op", "nn.foo", "unary.cpp"), ("pass", "FoldFoo", "rows.h")):
        with pytest.raises(step.StepFailed, match=f"is there already: .*{where}"):
            scaffold.new(kind, name)
    scaffold.new("op", "nn.max")


def test_attributes_of_another_operator_are_not_defined_again(tree):
    scaffold.new("op", "nn.foo")
    with pytest.raises(step.StepFailed, match="relay.attrs.FooAttrs, which .*foo.cpp has"):
        scaffold.new("op", "image.foo")
    assert not (tree / "src/relay/op/image").exists()


@pytest.fixture
def build(monkeypatch):
    """The build of this checkout can be asked, by the Python that runs the tests."""
    monkeypatch.setattr(scaffold, "venv_python", lambda: sys.executable)


@pytest.mark.parametrize("kind", ["op", "pass"])
def test_what_the_compiler_has_is_taken(kind, build):
    """No name of an operator or a pass is given twice."""
    # Asked of a process of its own: other tests register operators and passes in this one.
    code = "import baton; from baton.driver import passes; print(*(baton.ir.Op.list_op_names() if KIND == 'op' else passes.full_names()))"
    listed = subprocess.run(
        [sys.executable, "-c", code.replace("KIND", repr(kind))],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
    ).stdout.split()
    names = [n for n in listed if not n.startswith("tir.")] if kind == "op" else listed
    assert len(names) > 60
    some = ["nn.leaky_relu", "nn.relu", "onnx.cast"] if kind == "op" else ["FoldConstant", "SimplifyExpr", "PrintIR", "Sequential", "LowerWarpMemory"]
    without_source = [n for n in names if not scaffold.source_of(kind, n.rpartition(".")[2] if kind == "pass" else n)]
    assert not without_source, "without a build these would not be refused"
    for name in some:
        with pytest.raises(step.StepFailed, match="is there already"):
            scaffold.new(kind, name)


def test_the_build_decides_what_a_string_means(build):
    """`"axis"` stands in many operators' files and is not an operator."""
    assert scaffold.source_of("op", "axis") and scaffold.registered("op", "axis") is False and scaffold.taken("op", "axis") is None


CHECK = """
import ctypes, sys
import golden
from baton import relay
from baton.driver import passes
assert not hasattr(relay.nn, "foo_bar")
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
assert "nn.foo_bar" not in relay.op.list_op_names() or relay.nn.foo_bar
file = golden.read(sys.argv[2])
for case in file.cases:
    golden.check(file, case)
print(len(file.cases), "cases hold")
"""


@pytest.mark.parametrize("kind, name", [("op", "nn.foo_bar"), ("pass", "FoldFoo")])
def test_what_is_written_compiles_and_its_test_passes(tree, kind, name):
    from baton import config

    scaffold.new(kind, name)
    source, text = (next(tree / p for p in written(tree) if p.endswith(ending)) for ending in (".cpp", ".relay"))
    # As a library of its own, loaded beside the compiler: registration does not care where it comes from.
    plugin = tree / "plugin.so"
    done = subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O1",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-missing-field-initializers",
            "-fno-strict-aliasing",
            *config.cflags(),
            source,
            *config.libs(compiler=True),
            "-o",
            plugin,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(config.__file__).parents[1]), str(ROOT / "tests" / "golden")])}
    run = subprocess.run([sys.executable, "-c", CHECK, plugin, text], capture_output=True, text=True, check=False, env=env)
    assert run.returncode == 0 and "cases hold" in run.stdout, run.stderr
