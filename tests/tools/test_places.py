# SPDX-License-Identifier: Apache-2.0
"""`./dev places`: what it finds and leaves out, and how many files may know an operator."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devtool import places, step  # noqa: E402

# Files that know an operator, its importer's among them: (what holds, what is wanted). The first may only fall.
# topi's scans name cumsum, its functions of layouts nn.conv2d; the printer names topk, whose attributes Relay's text always said.
# An intrinsic of TIR: its row, the declaration of its function, and a row a backend.
BARS = {"tir.exp": (5, 4), "tir.isnan": (5, 4), "nn.leaky_relu": (2, 2), "cumsum": (3, 2), "topk": (5, 4), "nn.softmax": (4, 4), "nn.conv2d": (12, 8)}

TREE = {
    "src/relay/op/nn/norm.cpp": 'struct LrnAttrs {};\nconst Op op::lrn = DefineOp({.name = "nn.lrn", .attrs = TypeOf<LrnAttrs>});\n',
    "src/relay/op/nn/other.cpp": 'const Op op::resize_nd = DefineResize<"image.resize">();\n// nn.lrn, op::lrn, "nn.lrn"\nauto text = "an nn.lrn here";\n',
    "include/baton/relay/op/nn.h": "extern BATON_DLL const Op dense,\n    lrn, lrn_grad;\n",
    "src/frontend/onnx/rows.cpp": 'Rows rows = {{"", "LRN", Lrn}, {"Other", 2}};\n',
    "src/relay/transform/a.cpp": "/* op::lrn */ bool b = op == op::lrn;\nbool c = op == op::lrn_grad || op == op::resize_nd;\n",
    "python/baton/op.py": '"""About "nn.lrn"."""\nNAMES = ["nn.lrn"]  # "nn.lrn"\nx = nn.lrn(x)\n',
    "src/relay/transform/fold_constant.cpp": 'struct LetNode {};\nPass FoldConstant();\nauto n = "FoldConstant";\nint FoldConstants;\n',
    "python/baton/transform.py": 'pass_of = get("relay._transform.FoldConstant")\n',
    "src/ir/let.h": "class Let;\nclass LetList;\n",
    "src/tir/intrin/math.cpp": 'const Op intrin::lrn = DefineIntrin({.name = "lrn"});\n',
    "include/baton/tir/intrin.h": "extern BATON_DLL const Op expm,\n    lrn;\n",
    "include/baton/tir/op.h": "BATON_DLL PrimExpr lrn(PrimExpr x);\nBATON_DLL PrimExpr lrn_of(PrimExpr x);\n",
    "src/codegen/llvm/intrinsics.cpp": 'Column c = {{intrin::lrn, Of<"llvm.lrn">}};\n',
    "src/te/cost.cpp": 'bool a = name == "tir.lrn";\n',
    "src/relay/README.md": '"nn.lrn"\n',
}


@pytest.fixture
def tree(tmp_path):
    for path, text in TREE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "name, known_by",
    [
        # Its definition with its attributes, its declaration, the importer's row, a pass, Python: no comment, no message, no other operator.
        (
            "nn.lrn",
            {
                "src/relay/op/nn/norm.cpp": 2,
                "include/baton/relay/op/nn.h": 1,
                "src/frontend/onnx/rows.cpp": 1,
                "src/relay/transform/a.cpp": 1,
                "python/baton/op.py": 1,
            },
        ),
        # Its row, its column and what declares it; not the operator of its name.
        (
            "tir.lrn",
            {
                "src/tir/intrin/math.cpp": 1,
                "include/baton/tir/intrin.h": 1,
                "include/baton/tir/op.h": 1,
                "src/codegen/llvm/intrinsics.cpp": 1,
                "src/te/cost.cpp": 1,
            },
        ),
        ("image.resize", {"src/relay/op/nn/other.cpp": 1, "src/relay/transform/a.cpp": 1}),
        ("FoldConstant", {"src/relay/transform/fold_constant.cpp": 2, "python/baton/transform.py": 1}),
        ("Let", {"src/relay/transform/fold_constant.cpp": 1, "src/ir/let.h": 1}),
    ],
)
def test_places(tree, name, known_by):
    assert places.files_that_know(name, tree) == known_by


def test_an_unknown_name_lists_the_nearest(tree):
    with pytest.raises(step.StepFailed) as failure:
        places.places("nn.lrm", tree)
    assert "`nn.lrm`" in str(failure.value.args) and "nn.lrn" in str(vars(failure.value))


def test_rewrite_rows_name_what_they_are_about():
    text = 'auto a = op::lrn;\nRows r = {\n  {"lrn(x) -> x", Of("nn.lrn", x), [] { return "}" == op::lrn; }},\n};\nauto b = "nn.lrn";\n'
    assert places.names_used(text, {"nn.lrn": "lrn"}) == [(1, "nn.lrn"), (5, "nn.lrn")]


def test_operators_are_found_without_a_build():
    """By their definitions: the same that the library registers."""
    import baton

    registered = {n for n in baton.ir.Op.list_op_names() if baton.ir.Op.get(n).get_attr("output") is not None}
    assert {n for n in registered if not n.startswith("test.")} == set(places.operators())


def test_intrinsics_are_found_without_a_build():
    import baton

    assert {str(name) for name in baton.tir._ffi_api.IntrinColumns()} == places.intrinsics()


@pytest.mark.parametrize("name", BARS)
def test_few_files_know_an_operator(name):
    known_by = places.files_that_know(name)
    most, wanted = BARS[name]
    assert len(known_by) <= most, f"{name}: {', '.join(known_by)}"
    assert len(known_by) == most or most <= wanted, f"{name} is known by {len(known_by)} files: write that number into BARS"
