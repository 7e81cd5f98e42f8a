# SPDX-License-Identifier: Apache-2.0
"""What golden files of PlanDevices do not say: its report, places and types of what it adds, and a second run."""

from pathlib import Path

import golden
import pytest

import baton
from baton import relay

FILES = sorted(Path(__file__).parent.glob("plan_devices*.relay"))
CASES = [pytest.param(g, c, id=f"{g.path.stem}-{c.title}") for g in map(golden.read, FILES) for c in g.cases if c.kind == "result"]

PROGRAM = """#[version = "0.0.5"]
def @f(%a: Tensor[(4), float32]) -> Tensor[(4), float32] {
  negative(%a)
}
def @main(%c: bool, %x: Tensor[(4), float32], %n: Tensor[(?), float32]) {
  let %a = on_device(add(%x, 1f), device_type=12);
  let %b = device_copy(@f(%a), src_dev_type=12, dst_dev_type=2);
  let %m = exp(on_device(exp(%n), device_type=12));
  if (%c) { on_device(sum(%x), device_type=1, is_fixed=True) } else { sum(%m) }
}
"""
PLACES = """
main 5:11 %c: 1, the condition of `if`, which the host decides, through the condition of an if of `If` at 9:3
main 5:21 %x: 12, on_device at 6:12, through the argument of `add` at 6:22
main 5:47 %n: 12, on_device at 8:16, through the argument of `exp` at 8:26
main 6:22 add: 12, on_device at 6:12, through the argument of on_device of `on_device` at 6:12
main 6:12 on_device: 12, device_copy at 7:12, through the value of a let of `Let` at 6:3
main 6:7 %a: 12, device_copy at 7:12, through the argument of a function of `call of @f` at 7:24
main 7:24 call of @f: 12, device_copy at 7:12, through the argument of device_copy of `device_copy` at 7:12
main 7:12 device_copy: 2, device_copy at 7:12
main 7:7 %b: 2, device_copy at 7:12, through the value of a let of `Let` at 7:3
main 8:26 exp: 12, on_device at 8:16, through the argument of on_device of `on_device` at 8:16
"""


def _report(text, default="cpu"):
    """(places, copies) in lines, without the name of the text."""
    found = relay.analysis.explain_placement(relay.parse(text), default)

    def line(row, what):
        return f"{row['function']} {row['place']} {row['expression']}: {what}, {row['because']}".replace("from_string:", "")

    places = [line(r, r["device_type"]) for r in found["places"]]
    return places, [line(r, f"{r['src_dev_type']} to {r['dst_dev_type']}, {r['bytes']} bytes ({r['formula']})") for r in found["copies"]]


def test_report_says_what_decides_each_place():
    places, _ = _report(PROGRAM)
    assert "\n".join(places[:10]) == PLACES.strip()
    assert "main 9:3 If: 1, on_device at 9:13, through the branch of an if of `If` at 9:3" in places
    assert places[-2:] == [
        "f 2:8 %a: 12, the call of the function at 2:1, through the parameter of `fn` at 2:1",
        "f 3:3 negative: 12, the call of the function at 2:1, through the result of a function of `fn` at 2:1",
    ]


def test_report_says_what_is_copied_and_how_much():
    _, copies = _report(PROGRAM)
    assert copies == [
        "main 8:26 exp: 12 to 1, -1 bytes (4 * ?), value of `on_device` at 8:16 on 1 (cpu)",
        "main 5:21 %x: 12 to 1, 16 bytes (16), argument of `sum` at 9:23 on 1 (cpu)",
        "main 7:24 call of @f: 12 to 2, 16 bytes (16), written as device_copy at 7:12",
    ]


def test_report_says_where_nothing_decides():
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { negative(%x) }'
    for default, number in (("cpu", 1), ("ext_dev", 12)):
        assert _report(text, default) == ([
            f"main 2:11 %x: {number}, nothing decides: the default device",
            f"main 2:39 negative: {number}, nothing decides: the default device"], [])  # fmt: skip


def test_what_is_added_has_the_type_and_the_place_of_its_value():
    planned = relay.transform.PlanDevices()(relay.transform.InferType()(relay.parse(PROGRAM)))
    seen = []

    def look(e):
        if isinstance(e, relay.Call) and isinstance(e.op, baton.ir.Op) and e.op.name in ("device_copy", "on_device"):
            value = e.args[0]
            at = (e.span.line, e.span.column)
            if at in ((6, 12), (7, 12), (9, 13)):
                return  # of the program itself
            assert at == (value.span.line, value.span.column), e
            baton.ir.assert_structural_equal(e.checked_type, value.checked_type)
            seen.append(e.op.name)

    relay.analysis.post_order_visit(planned["main"], look)
    assert sorted(seen) == ["device_copy", "device_copy", "on_device", "on_device", "on_device"]


@pytest.mark.parametrize("file, case", CASES)
def test_planned_programs_stay_as_they_are(file, case):
    """Planned, and read from its text again: both say where everything lives, whatever the default."""
    _, planned = golden.run(file, golden.parse(file.path, case.first))
    for default in (1, 12):
        assert relay.transform.PlanDevices(default)(planned).same_as(planned)
        again = relay.transform.InferType()(relay.parse(planned.astext()))
        baton.ir.assert_structural_equal(relay.transform.PlanDevices(default)(again), again)
