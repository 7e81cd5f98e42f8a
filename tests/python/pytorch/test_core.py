# SPDX-License-Identifier: Apache-2.0
"""Every overload of ATen that PyTorch calls core has a rule, or a row that says why not."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from baton.contrib.torch import complexes, ops  # noqa: E402, F401 - fills the table
from baton.contrib.torch.decompose import kept_overloads  # noqa: E402
from baton.contrib.torch.registry import REFUSED, RULES, aten, name_of  # noqa: E402


def core():
    found = set()
    for schema in torch._C._jit_get_all_schemas():
        packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"), None) if schema.name.startswith("aten::") else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and torch.Tag.core in overload.tags:
            found.add(str(overload))
    return found


def test_each_core_overload_has_a_rule_or_a_reason():
    found = core()
    assert len(found) >= 193
    assert sorted(found - set(RULES) - set(complexes.RULES) - set(REFUSED)) == []
    refused = found & set(REFUSED)
    assert len(refused) <= 9, sorted(refused)


def test_rows_are_of_overloads_that_there_are():
    import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers the operators of PT2E

    for name in (*RULES, *complexes.RULES, *complexes.BY_PARTS, *REFUSED):
        namespace, packet, overload = name.split(".")
        if namespace in ("transformers", "torchvision"):
            continue  # registered by that package
        assert hasattr(getattr(getattr(torch.ops, namespace), packet, None), overload), name
    assert not (set(RULES) | set(complexes.RULES)) & set(REFUSED)
    assert complexes.BY_PARTS <= set(RULES) - set(complexes.RULES)


def test_what_is_kept_whole_has_rules():
    kept = {str(overload) for overload in kept_overloads()}
    assert kept <= set(RULES)
    assert {"aten.linear.default", "aten.conv2d.default", "aten.scaled_dot_product_attention.default", "aten.layer_norm.default"} <= kept


def test_a_rule_of_a_users_own():
    """A custom operator gets its rule by the decorator."""
    import baton

    library = torch.library.Library("baton_tests", "DEF")
    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake("baton_tests::double", lambda x: torch.empty_like(x), lib=library)
    name = name_of(torch.ops.baton_tests.double.default)
    assert name == "baton_tests.double.default"

    class Uses(torch.nn.Module):
        def forward(self, x):
            return torch.ops.baton_tests.double(x) + 1

    program = torch.export.export(Uses(), (torch.ones(3),))
    with pytest.raises(baton.error.UnsupportedError, match="baton_tests.double.default at .*test_core.py"):
        baton.compile(program)
    try:

        @aten(name)
        def double(c, x):
            return c.add(x, x)

        assert baton.compile(program)(torch.ones(3)).numpy().tolist() == [3, 3, 3]
        with pytest.raises(ValueError, match="has a rule already"):
            aten(name)(double)
    finally:
        RULES.pop(name, None)
