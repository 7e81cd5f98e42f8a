# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml: each operator beside ONNX's reference or ONNX Runtime, and models of scikit-learn, LightGBM and XGBoost (the extra `test-ml`)
beside themselves.
"""

from unittest import mock

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import baton

ort = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 4)).astype("float32")
KINDS = {
    "f": TensorProto.FLOAT,
    "d": TensorProto.DOUBLE,
    "l": TensorProto.INT64,
    "i": TensorProto.INT32,
    "b": TensorProto.BOOL,
    "O": TensorProto.STRING,
    "U": TensorProto.STRING,
}


def value(name, array, shape=None):
    return helper.make_tensor_value_info(name, KINDS[np.asarray(array).dtype.char], np.shape(array) if shape is None else shape)


def model(nodes, inputs, outputs, ml=3, init=()):
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(n, k, None) for n, k in outputs],
                              [numpy_helper.from_array(v, k) for k, v in dict(init).items()])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", ml)], ir_version=8)


def one(op, *arrays, outputs=(("y", TensorProto.FLOAT),), ml=3, **attrs):
    names = [f"x{k}" for k in range(len(arrays))]
    node = helper.make_node(op, names, [n for n, _ in outputs], domain="ai.onnx.ml", **attrs)
    return model([node], [value(n, a) for n, a in zip(names, arrays, strict=True)], outputs, ml)


def run_ort(m, *arrays):
    session = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})


def run_reference(m, *arrays):
    return ReferenceEvaluator(m).run(None, {i.name: a for i, a in zip(m.graph.input, arrays, strict=True)})


def same(have, want, rtol=1e-5, atol=1e-6):
    have = have if isinstance(have, tuple) else (have,)
    assert len(have) == len(want)
    for h, w in zip(have, want, strict=True):
        if isinstance(w, list):
            assert [row.keys() for row in h] == [row.keys() for row in w]
            h, w = ([list(row.values()) for row in rows] for rows in (h, w))
        h, w = np.asarray(h), np.asarray(w)
        assert h.shape == w.shape
        if w.dtype.kind in "OU":
            assert h.tolist() == w.tolist()
        else:
            np.testing.assert_allclose(h, w, rtol=rtol, atol=atol)


def agrees(m, *arrays, by=run_ort, **tolerance):
    same(baton.compile(m)(*arrays), by(m, *arrays), **tolerance)


LABEL = (("label", TensorProto.INT64), ("scores", TensorProto.FLOAT))
TEXT = (("label", TensorProto.STRING), ("scores", TensorProto.FLOAT))
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
WITH_ZEROS = np.where(X > 1, 0, X)
WITH_NAN = np.where(X > 0.5, np.nan, X).astype("float32")


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    x = np.concatenate([X, np.zeros((1, 4), "float32")])
    agrees(one("Normalizer", x, norm=norm), x, by=run_reference)


@pytest.mark.parametrize("value_of", [0.0, float("nan")])
@pytest.mark.parametrize("values", [[1.5], [1.0, 2.0, 3.0, 4.0]])
def test_imputer(value_of, values):
    x = WITH_NAN if np.isnan(value_of) else WITH_ZEROS
    agrees(one("Imputer", x, imputed_value_floats=values, replaced_value_float=value_of), x)


def test_imputer_of_integers():
    x = np.array([[1, 0, 3], [0, 5, 6]])
    agrees(one("Imputer", x, outputs=(("y", TensorProto.INT64),), imputed_value_int64s=[7, 8, 9], replaced_value_int64=0), x)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "int32"])
def test_one_hot_encoder(dtype):
    x = np.array([[1, 2], [3, 9], [2, 1]], dtype)
    agrees(one("OneHotEncoder", x, cats_int64s=[1, 2, 3], zeros=1), x, by=run_reference if dtype == "int32" else run_ort)


def test_one_hot_encoder_of_strings():
    x = np.array([["red", "blue"], ["green", "grey"]], dtype=object)
    agrees(one("OneHotEncoder", x, cats_strings=["red", "green", "blue"], zeros=1), x)


@pytest.mark.parametrize("kind", ["int64", "text"])
def test_one_hot_encoder_that_refuses_unknown_categories(kind, tmp_path):
    """scikit-learn's default, `handle_unknown="error"`."""
    known = {"int64": {"cats_int64s": [3, 1, 2]}, "text": {"cats_strings": ["red", "green", "blue"]}}[kind]
    x, bad = (
        (np.array([[1, 2], [3, 1]]), np.array([[1, 7], [3, 1]]))
        if kind == "int64"
        else (np.array([["red"], ["blue"]], dtype=object), np.array([["red"], ["grey"]], dtype=object))
    )
    model = one("OneHotEncoder", x, zeros=0, **known)
    agrees(model, x)
    exe = baton.compile(model)
    with pytest.raises(IndexError, match="OneHotEncoder.*none of its categories"):
        exe(bad)
    exe.save(tmp_path / "m.so")
    with pytest.raises(IndexError, match="OneHotEncoder.*none of its categories"):
        baton.load(tmp_path / "m.so")(bad)


def test_feature_vectorizer():
    y = X[:, :2].copy()
    agrees(one("FeatureVectorizer", X, y, inputdimensions=[4, 2]), X, y)
    agrees(one("FeatureVectorizer", X, y, inputdimensions=[3, 4]), X, y, by=run_reference)


@pytest.mark.parametrize(
    "op, attrs",
    [("Scaler", {"offset": [1.0, 2, 3, 4], "scale": [2.0, 1, 0.5, 4]}), ("Scaler", {"offset": [1.0], "scale": [2.0]}), ("Binarizer", {"threshold": 0.25})],
)
def test_arithmetic(op, attrs):
    agrees(one(op, X, **attrs), X)


STRINGS = np.array(["cat", "dog", "emu", "cat"], dtype=object)


@pytest.mark.parametrize("attrs, x, kind", [
    ({"keys_int64s": [1, 2], "values_floats": [0.5, 1.5], "default_float": 9.0}, np.array([2, 1, 7]), TensorProto.FLOAT),
    ({"keys_strings": ["cat", "dog"], "values_int64s": [4, 5], "default_int64": -7}, STRINGS, TensorProto.INT64),
    ({"keys_strings": ["cat", "dog"], "values_floats": [4.5, 5.5]}, STRINGS, TensorProto.FLOAT),
    ({"keys_int64s": [1, 2], "values_strings": ["one", "two"], "default_string": "many"}, np.array([2, 1, 7]), TensorProto.STRING),
    ({"keys_strings": ["cat", "dog"], "values_strings": ["Katze", "Hund"]}, STRINGS, TensorProto.STRING),
    ({"keys_floats": [1.0, 2.5], "values_int64s": [1, 2]}, np.array([1, 2.5, 3], "float32"), TensorProto.INT64),
])  # fmt: skip
def test_label_encoder(attrs, x, kind):
    agrees(one("LabelEncoder", x, outputs=(("y", kind),), ml=2, **attrs), x)


def test_category_mapper():
    attrs = {"cats_strings": ["cat", "dog"], "cats_int64s": [3, 8], "default_int64": -1, "default_string": "none"}
    agrees(one("CategoryMapper", STRINGS, outputs=(("y", TensorProto.INT64),), ml=1, **attrs), STRINGS)
    x = np.array([[3, 8], [1, 3]])
    agrees(one("CategoryMapper", x, outputs=(("y", TensorProto.STRING),), ml=1, **attrs), x)


@pytest.mark.parametrize("post", [*TRANSFORMS, "PROBIT"])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(post, targets):
    scale = 0.1 if post == "PROBIT" else 1.0
    weights = (RNG.standard_normal(4 * targets) * scale).tolist()
    x = np.abs(X) + 0.1 if post == "PROBIT" else X
    m = one(
        "LinearRegressor",
        x,
        coefficients=np.abs(weights).tolist() if post == "PROBIT" else weights,
        intercepts=[0.05] * targets,
        targets=targets,
        post_transform=post,
    )
    if post in ("NONE", "PROBIT"):
        agrees(m, x, by=run_ort if post == "NONE" else run_ort, rtol=1e-3, atol=1e-4)
    else:
        have = baton.compile(m)(x).numpy()
        assert have.shape == (7, targets) and np.isfinite(have).all()


@pytest.mark.parametrize("post", TRANSFORMS)
@pytest.mark.parametrize("labels", ["ints", "strings"])
def test_linear_classifier(post, labels):
    weights, bias = RNG.standard_normal(12).tolist(), [0.1, -0.2, 0.3]
    named = {"classlabels_ints": [5, 7, 9]} if labels == "ints" else {"classlabels_strings": ["a", "b", "c"]}
    agrees(one("LinearClassifier", X, outputs=LABEL if labels == "ints" else TEXT, coefficients=weights, intercepts=bias, post_transform=post, **named), X)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("rows", [1, 2])
def test_linear_classifier_of_two(post, rows):
    weights = RNG.standard_normal(4 * rows).tolist()
    agrees(one("LinearClassifier", X, outputs=LABEL, coefficients=weights, intercepts=[0.1] * rows, classlabels_ints=[3, 4], post_transform=post), X)


@pytest.mark.parametrize("kernel, params", [("LINEAR", [0.0, 0.0, 0.0]), ("POLY", [0.3, 1.0, 3.0]), ("RBF", [0.4, 0.0, 3.0]), ("SIGMOID", [0.2, 0.1, 3.0])])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel, params, one_class):
    vectors, weights = RNG.standard_normal(5 * 4).tolist(), RNG.standard_normal(5).tolist()
    agrees(one("SVMRegressor", X, kernel_type=kernel, kernel_params=params, n_supports=5, support_vectors=vectors, coefficients=weights, rho=[0.3],
               one_class=one_class, post_transform="NONE"), X, rtol=1e-4, atol=1e-5)  # fmt: skip


def test_svm_regressor_without_vectors():
    agrees(
        one(
            "SVMRegressor",
            X,
            kernel_type="LINEAR",
            kernel_params=[0.0, 0.0, 0.0],
            n_supports=0,
            coefficients=RNG.standard_normal(4).tolist(),
            rho=[0.3],
            post_transform="NONE",
        ),
        X,
    )


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("proba", [False, True])
@pytest.mark.parametrize("kernel", ["RBF", "LINEAR"])
def test_svm_classifier(classes, proba, kernel):
    count = [2, 3, 1, 2][:classes]
    pairs = classes * (classes - 1) // 2
    more = {"prob_a": (-RNG.uniform(0.5, 2, pairs)).tolist(), "prob_b": RNG.uniform(-0.2, 0.2, pairs).tolist()} if proba else {}
    agrees(one("SVMClassifier", X, outputs=LABEL, kernel_type=kernel, kernel_params=[0.4, 0.0, 3.0], vectors_per_class=count, classlabels_ints=[*range(3, 3 + classes)],
               support_vectors=RNG.standard_normal(sum(count) * 4).tolist(), coefficients=RNG.standard_normal(sum(count) * (classes - 1)).tolist(),
               rho=RNG.standard_normal(pairs).tolist(), post_transform="NONE", **more), X, rtol=1e-4, atol=1e-5)  # fmt: skip


def test_svm_classifier_without_vectors():
    agrees(one("SVMClassifier", X, outputs=LABEL, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], classlabels_ints=[0, 1, 2], coefficients=RNG.standard_normal(12).tolist(),
               rho=[0.1], post_transform="NONE"), X)  # fmt: skip


# A tree over 4 features: node 0 asks x0, node 1 asks x1, leaves are 2, 3, 4; and one of a single split.
def forest(mode="BRANCH_LEQ", missing=0):
    return {"nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2], "nodes_featureids": [0, 1, 0, 0, 0, 3, 0, 0],
            "nodes_modes": [mode, mode, "LEAF", "LEAF", "LEAF", mode, "LEAF", "LEAF"], "nodes_values": [0.1, -0.3, 0, 0, 0, 0.2, 0, 0],
            "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
            "nodes_missing_value_tracks_true": [missing] * 8}  # fmt: skip


LEAVES = [(0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]


def leaves(prefix, targets, weights):
    return {f"{prefix}_treeids": [t for t, _ in LEAVES], f"{prefix}_nodeids": [n for _, n in LEAVES], f"{prefix}_ids": targets, f"{prefix}_weights": weights}


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
@pytest.mark.parametrize("missing", [0, 1])
def test_modes_of_nodes(mode, missing):
    x = np.concatenate([WITH_NAN, np.float32([[0.1, -0.3, 0, 0.2], [0.1, 5, 0, -1]])])
    agrees(one("TreeEnsembleRegressor", x, n_targets=2, **forest(mode, missing), **leaves("target", [0, 1, 0, 1, 0], [1.0, 2, 3, 4, 5])), x)


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [None, [0.5, -1.5]])
def test_aggregates(how, base):
    def trees(**more):
        return one("TreeEnsembleRegressor", X, n_targets=2, aggregate_function=how, **forest(), **leaves("target", [0, 1, 0, 1, 0], [1.0, 2, 3, 4, 5]), **more)

    if base is None:
        agrees(trees(), X)
        return
    # "Added to final score for each targets", by the operator's text. ONNX Runtime leaves it out where a row has no weight of the target.
    have, (without,), (want,) = baton.compile(trees(base_values=base))(X).numpy(), run_ort(trees(), X), run_ort(trees(base_values=base), X)
    same(have, [without + np.float32(base)])
    weighed = without != 0
    assert 0 < weighed.sum() < weighed.size
    np.testing.assert_allclose(have[weighed], want[weighed], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("post", TRANSFORMS)
@pytest.mark.parametrize("text", [False, True])
def test_tree_classifier(post, text):
    named = {"classlabels_strings": ["a", "b", "c"]} if text else {"classlabels_int64s": [5, 6, 9]}
    agrees(one("TreeEnsembleClassifier", X, outputs=TEXT if text else LABEL, post_transform=post, **forest(), **named,
               **leaves("class", [0, 1, 2, 1, 0], [0.5, 2, 1, 0.25, 1])), X)  # fmt: skip


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("ids", [[0] * 5, [1] * 5, [0, 1, 0, 1, 1]])
@pytest.mark.parametrize("base", [None, [0.125]])
def test_tree_classifier_of_two(post, sign, ids, base):
    more = {} if base is None else {"base_values": base}
    agrees(one("TreeEnsembleClassifier", X, outputs=LABEL, post_transform=post, classlabels_int64s=[0, 1], **forest(), **more,
               **leaves("class", ids, [0.25, sign * 0.5, 0.125, 0.75 * sign, 0.25])), X)  # fmt: skip


@pytest.mark.parametrize("base", [[0.125, 0.25], [0.75, -0.5], [-10.0, 10.0]])
@pytest.mark.parametrize("ids", [[0, 1, 0, 1, 1], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1]])
def test_two_classes_with_a_base_each(ids, base):
    """As ONNX's reference has it, and the text: "added to final class score". ONNX Runtime leaves out the weights of a class."""
    m = one("TreeEnsembleClassifier", X, outputs=LABEL, classlabels_int64s=[0, 1], base_values=base, **forest(),
            **leaves("class", ids, [0.25, 0.5, 0.125, 0.75, 0.25]))  # fmt: skip
    same(baton.compile(m)(X), run_reference(m, X))


def test_scores_of_two_that_are_unclear():
    """ONNX Runtime swaps the classes of rows without a weight of the second; the text says nothing."""
    m = one(
        "TreeEnsembleClassifier", X, outputs=LABEL, classlabels_int64s=[0, 1], **forest(), **leaves("class", [0, 1, 0, 1, 0], [0.25, 0.5, 0.125, 0.75, 0.25])
    )
    with pytest.raises(baton.UnsupportedError, match="no weight of the second"):
        baton.compile(m)


def test_trees_of_doubles():
    x = X.astype("float64")
    m = one("TreeEnsembleRegressor", x, n_targets=1, **{k: v for k, v in forest().items() if k != "nodes_values"}, **leaves("target", [0] * 5, [0.0] * 5))
    node = m.graph.node[0]
    for attribute in [a for a in node.attribute if a.name == "target_weights"]:
        node.attribute.remove(attribute)
    node.attribute.append(helper.make_attribute("nodes_values_as_tensor", numpy_helper.from_array(np.array(forest()["nodes_values"]))))
    node.attribute.append(helper.make_attribute("target_weights_as_tensor", numpy_helper.from_array(np.array([1.0, 2, 3, 4, 5]))))
    agrees(m, x)


def test_trees_of_version_5():
    def tensor(values, dtype):
        return numpy_helper.from_array(np.array(values, dtype))

    m = one("TreeEnsemble", X, ml=5, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0, 2], nodes_featureids=[0, 1, 2], nodes_modes=tensor([0, 3, 1], "uint8"),
            nodes_splits=tensor([0.1, -0.3, 0.2], "float32"), nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 0], nodes_falseleafs=[1, 1, 1],
            leaf_targetids=[0, 1, 0, 1], leaf_weights=tensor([1, 2, 3, 4], "float32"))  # fmt: skip
    agrees(m, X, by=run_reference)


def test_trees_with_sets():
    def tensor(values, dtype):
        return numpy_helper.from_array(np.array(values, dtype))

    x = np.array([[1, 0], [2, 0], [3, 9], [np.nan, 1]], "float32")
    m = one("TreeEnsemble", x, ml=5, n_targets=1, tree_roots=[0], nodes_featureids=[0, 1], nodes_modes=tensor([6, 0], "uint8"), nodes_splits=tensor([0, 5], "float32"),
            nodes_truenodeids=[0, 1], nodes_trueleafs=[1, 1], nodes_falsenodeids=[1, 2], nodes_falseleafs=[0, 1], leaf_targetids=[0, 0, 0],
            leaf_weights=tensor([1, 2, 3], "float32"), membership_values=tensor([1, 3, np.nan], "float32"))  # fmt: skip
    agrees(m, x, by=run_reference)


@pytest.mark.parametrize("change, words", [
    ({"nodes_truenodeids": [9, 2, 0, 0, 0, 1, 0, 0]}, "child that is missing"), ({"nodes_values": [0.0] * 7}, "differ in length"),
    ({"nodes_modes": ["BRANCH_LEQ"] * 7 + ["LEAVE"]}, "mode `LEAVE`"), ({"nodes_nodeids": [0, 0, 2, 3, 4, 0, 1, 2]}, "stands twice"),
    ({"nodes_featureids": [7, 1, 0, 0, 0, 3, 0, 0]}, "feature 7"), ({"nodes_featureids": [-1, 1, 0, 0, 0, 3, 0, 0]}, "feature -1"),
    ({"nodes_truenodeids": [1, 0, 0, 0, 0, 1, 0, 0]}, "beneath itself"), ({"nodes_truenodeids": [1, 1, 0, 0, 0, 1, 0, 0]}, "beneath itself"),
    ({"nodes_truenodeids": [0, 2, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [0, 3, 0, 0, 0, 2, 0, 0]}, "beneath itself"), ({"target_ids": [0, 3, 0, 0, 0]}, "target 3"),
])  # fmt: skip
def test_broken_trees(change, words):
    m = one("TreeEnsembleRegressor", X, n_targets=1, **{**forest(), **leaves("target", [0] * 5, [1.0, 2, 3, 4, 5]), **change})
    with pytest.raises(baton.Error, match=words):
        baton.compile(m)


@pytest.mark.parametrize("labels", [[4, 5, 6], ["a", "b", "c"]])
def test_zip_map(labels):
    named = {"classlabels_int64s": labels} if isinstance(labels[0], int) else {"classlabels_strings": labels}
    m = one("ZipMap", X[:, :3], **named)
    m.graph.output[0].CopyFrom(helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.INT64 if isinstance(labels[0], int) else TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))))  # fmt: skip
    agrees(m, X[:, :3])


def pipeline():
    """A classifier of strings with everything behind it, as skl2onnx writes it."""
    nodes = [helper.make_node("LinearClassifier", ["x"], ["l", "p"], domain="ai.onnx.ml", coefficients=RNG.standard_normal(12).tolist(), intercepts=[0.1, 0.2, 0.3],
                              classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX"),
             helper.make_node("Identity", ["l"], ["label"]), helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"])]  # fmt: skip
    m = model(nodes, [value("x", X, ["n", 4])], [("label", TensorProto.STRING), ("z", TensorProto.FLOAT)])
    m.graph.output[1].CopyFrom(helper.make_value_info("z", helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))))  # fmt: skip
    return m


def test_strings_and_maps_survive_saving(tmp_path):
    m = pipeline()
    want = run_ort(m, X)
    compiled = baton.compile(m, shape={"x": X.shape})
    assert [o.dtype for o in compiled.outputs] == ["string", "seq(map(string, float32))"]
    same(compiled(X), want)
    compiled.save(tmp_path / "m.so")
    again = baton.load(tmp_path / "m.so")
    assert again.outputs == compiled.outputs
    same(again(x=X), want)
    dynamic = baton.compile(m)
    same(dynamic(X), want)
    same(dynamic(X[:3]), run_ort(m, X[:3]))


def test_strings_of_an_input_are_no_output():
    m = model([helper.make_node("Identity", ["x"], ["y"])], [value("x", STRINGS)], [("y", TensorProto.STRING)])
    with pytest.raises(baton.UnsupportedError, match="strings of an input"):
        baton.compile(m)


# ---- whole pipelines, where the converters are there
def converted(estimator, x, y, zipmap=True, **options):
    skl2onnx = pytest.importorskip("skl2onnx")
    estimator.fit(x, y)
    options = {} if zipmap else {"options": {"zipmap": False}}
    plain = helper.make_attribute

    def of_integers(key, value, *args, **kwargs):  # some versions hand lists with Booleans to onnx, which refuses them
        if isinstance(value, list) and any(isinstance(v, (bool, np.bool_)) for v in value):
            value = [int(v) for v in value]
        return plain(key, value, *args, **kwargs)

    with mock.patch.object(helper, "make_attribute", of_integers):
        return skl2onnx.to_onnx(estimator, x[:1].astype("float32"), target_opset={"": 17, "ai.onnx.ml": 3}, **options)


def iris():
    datasets = pytest.importorskip("sklearn.datasets")
    return datasets.load_iris(return_X_y=True)


def estimators():
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return []
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        HistGradientBoostingClassifier,
        IsolationForest,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
    from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return [
        LogisticRegression(max_iter=500), make_pipeline(StandardScaler(), LogisticRegression()), make_pipeline(Normalizer("l2"), RidgeClassifier()),
        make_pipeline(MinMaxScaler(), SVC(probability=True, random_state=0)), SVC(kernel="poly"), SVR(), LinearSVC(), OneClassSVM(), DecisionTreeClassifier(random_state=0),
        DecisionTreeRegressor(random_state=0), RandomForestClassifier(n_estimators=20, random_state=0), RandomForestRegressor(n_estimators=20, random_state=0), ExtraTreesClassifier(n_estimators=10, random_state=0),
        GradientBoostingClassifier(n_estimators=10, random_state=0), GradientBoostingRegressor(n_estimators=10, random_state=0), HistGradientBoostingClassifier(max_iter=10),
        IsolationForest(n_estimators=10, random_state=0), LinearRegression(), SGDClassifier(random_state=0), GaussianNB(), KNeighborsClassifier(n_neighbors=3), MLPClassifier((8,), max_iter=50, random_state=0),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("classes", [2, 3, "texts"])
@pytest.mark.parametrize(
    "estimator", estimators(), ids=lambda e: "-".join(type(s).__name__ for s in getattr(e, "steps", None) and [s for _, s in e.steps] or [e])
)
def test_scikit_learn(estimator, classes):
    x, y = iris()
    if classes == 2:
        x, y = x[y < 2], y[y < 2]
        x = x + np.random.default_rng(1).normal(0, 0.7, x.shape)  # classes that overlap
    if classes == "texts":
        y = np.array(["setosa", "versicolor", "virginica"])[y]
        if type(estimator).__name__.endswith(("Regressor", "Regression", "SVR", "Forest", "OneClassSVM")):
            pytest.skip("numbers alone")
    m = converted(estimator, x.astype("float32"), y)
    rows = x[::7].astype("float32")
    agrees(m, rows, rtol=1e-4, atol=1e-5)


def test_xgboost():
    xgboost, onnxmltools = pytest.importorskip("xgboost"), pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y = iris()
    for model_of, target in ((xgboost.XGBClassifier, y), (xgboost.XGBClassifier, (y < 1).astype("int64")), (xgboost.XGBRegressor, x[:, 0])):
        booster = model_of(n_estimators=10).fit(x, target)
        m = onnxmltools.convert_xgboost(booster, initial_types=[("x", FloatTensorType([None, 4]))], target_opset=15)
        agrees(m, x[::7].astype("float32"), rtol=1e-4, atol=1e-5)


def test_light_gbm():
    lightgbm, onnxmltools = pytest.importorskip("lightgbm"), pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y = iris()
    for model_of, target in ((lightgbm.LGBMClassifier, y), (lightgbm.LGBMClassifier, (y < 1).astype("int64")), (lightgbm.LGBMRegressor, x[:, 0])):
        booster = model_of(n_estimators=10, verbose=-1).fit(x, target)
        m = onnxmltools.convert_lightgbm(booster, initial_types=[("x", FloatTensorType([None, 4]))], target_opset=15)
        agrees(m, x[::7].astype("float32"), rtol=1e-4, atol=1e-5)
