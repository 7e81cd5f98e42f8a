# SPDX-License-Identifier: Apache-2.0
"""Patterns of dataflow as programs of 0.8 write them: fields, matching, rewriting, partitioning."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay.dataflow_pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPatternCallback,
    DominatorPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)

K_ELEMWISE, K_BROADCAST, K_INJECTIVE = (0, 1, 2)


def bn_pat():
    return is_op('nn.batch_norm')(wildcard(), wildcard(), wildcard(), wildcard(), wildcard())


def test_fields():
    x, y = (wildcard(), is_var('y'))
    p = is_op('add')(x, y)
    assert isinstance(p, CallPattern)
    assert isinstance(p.args[0], WildcardPattern)
    assert p.op.expr == relay.op.get('add')
    a = p | is_constant()
    assert isinstance(a, AltPattern)
    assert a.left == p
    assert isinstance(a.right, ConstantPattern)
    t = is_tuple([x, y])
    assert isinstance(t, TuplePattern)
    assert len(t.fields) == 2
    g = is_tuple_get_item(t, 1)
    assert g.index == 1
    assert g.tuple == t
    at = p.has_attr({'TOpPattern': 0})
    assert isinstance(at, AttrPattern)
    assert at.attrs['TOpPattern'] == 0
    d = x.has_dtype('float32')
    assert isinstance(d, DataTypePattern)
    assert d.dtype == 'float32'
    s = x.has_shape((10, 10))
    assert isinstance(s, ShapePattern)
    tvm.ir.assert_structural_equal(s.shape, tvm.runtime.convert((10, 10)))
    ty = x.has_type(relay.TensorType((10,), 'float32'))
    assert isinstance(ty, TypePattern)
    assert tvm.ir.structural_equal(ty.type, relay.TensorType((10,), 'float32'))
    i = is_if(x, y, p)
    assert isinstance(i, IfPattern)
    assert i.cond == x
    assert i.true_branch == y
    assert i.false_branch == p
    found = is_let(is_var('x'), is_constant(), wildcard())
    assert isinstance(found, LetPattern)
    assert isinstance(found.var, VarPattern)
    f = FunctionPattern([x, y], p)
    assert f.body == p
    assert len(f.params) == 2
    dm = DominatorPattern(p, wildcard(), is_op('nn.relu')(wildcard()))
    assert dm.parent == p
    assert dm.child is not None
    assert dm.path is not None


def test_varname():
    p = is_var('x')
    assert isinstance(p, VarPattern)
    assert p.name == 'x'
    assert p.match(relay.var('x'))
    assert not p.match(relay.var('y'))
    assert is_var().match(relay.var('q'))


def test_opattr_data():
    x = relay.var('x', shape=(1, 3, 8, 8))
    w = relay.var('w', shape=(4, 3, 3, 3))
    c = relay.nn.conv2d(x, w, kernel_size=(3, 3), data_layout='NCHW')
    p = is_op('nn.conv2d')(wildcard(), wildcard())
    assert p.has_attr({'data_layout': 'NCHW'}).match(c)
    assert not p.has_attr({'data_layout': 'NHWC'}).match(c)
    assert p.has_attr({'kernel_size': [3, 3]}).match(c)
    assert not p.has_attr({'kernel_size': [3, 1]}).match(c)
    assert not p.has_attr({'kernel_size': 3}).match(c)
    assert not p.has_attr({'RandomAttr': 'x'}).match(c)


def test_funcattr():
    x = relay.var('x')
    y = relay.var('y')
    f = relay.Function([x, y], x + y).with_attr('Composite', 'add')
    p = FunctionPattern([wildcard(), wildcard()], wildcard()).has_attr({'Composite': 'add'})
    assert p.match(f)
    assert not FunctionPattern([wildcard(), wildcard()], wildcard()).has_attr({'Composite': 'sub'}).match(f)
    g = relay.Call(f, [relay.var('a'), relay.var('b')])
    assert p(wildcard(), wildcard()).match(g)


def test_tuple_any():
    p = is_tuple(None)
    x, y = (relay.var('x'), relay.var('y'))
    assert p.match(relay.Tuple([x, y]))
    assert p.match(relay.Tuple([x]))
    assert not p.match(x)


def test_tgi_any():
    p = is_tuple_get_item(wildcard())
    t = relay.Tuple([relay.var('x'), relay.var('y')])
    assert p.match(relay.TupleGetItem(t, 0))
    assert p.match(relay.TupleGetItem(t, 1))


def test_dominates_method():
    conv = is_op('nn.conv2d')(wildcard(), wildcard())
    el = wildcard().has_attr({'TOpPattern': K_ELEMWISE})(wildcard())
    red = is_op('add')(wildcard(), wildcard())
    d = red.dominates(conv, el)
    c = relay.nn.conv2d(relay.var('i'), relay.var('w'))
    assert d.match(relay.nn.relu(c) + relay.exp(c))


def test_optional_reuse():
    wildcard()
    p = is_op('nn.relu')(is_op('nn.conv2d')(wildcard(), wildcard()).optional(lambda x: is_op('nn.bias_add')(x, wildcard())))
    c = relay.nn.conv2d(relay.var('x'), relay.var('w'))
    assert p.match(relay.nn.relu(c))
    assert p.match(relay.nn.relu(relay.nn.bias_add(c, relay.var('b'))))
    assert not p.match(relay.nn.relu(relay.nn.relu(c)))


def test_partition_check():
    p = is_op('nn.relu')(is_op('nn.conv2d')(wildcard(), wildcard()))

    def check(pre):
        return pre.args[0].attrs.data_layout == 'NCHW'

    x, w = (relay.var('input'), relay.var('weight'))
    e = relay.nn.relu(relay.nn.conv2d(x, w))
    got = p.partition(e, check=check)
    assert isinstance(got, relay.Call)
    assert isinstance(got.op, relay.Function)
    assert 'PartitionedFromPattern' in got.op.attrs
    assert got.op.attrs['PartitionedFromPattern'] == 'nn.conv2d_nn.relu_'
    e2 = relay.nn.relu(relay.nn.conv2d(x, w, data_layout='NHWC'))
    assert p.partition(e2, check=check) == e2


def test_partition_attrs():
    p = is_op('add')(wildcard(), wildcard())
    x, y = (relay.var('x'), relay.var('y'))
    r = p.partition(x + y, {'Composite': 'add', 'num': 3})
    assert r.op.attrs['Composite'] == 'add'
    assert r.op.attrs['num'] == 3


def test_partition_expected():
    x, y, z = (relay.var('x'), relay.var('y'), relay.var('z'))
    p = is_op('subtract')(is_op('add')(wildcard(), wildcard()), wildcard())
    got = p.partition(x + y - z)
    a, b, c = (relay.var('a'), relay.var('b'), relay.var('c'))
    f = relay.Function([a, b, c], a + b - c).with_attr('PartitionedFromPattern', 'add_subtract_')
    assert tvm.ir.structural_equal(got, f(x, y, z), map_free_vars=False)


def test_rewrite_twice():
    class R(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.y = wildcard()
            self.pattern = is_op('add')(self.x, self.y)

        def callback(self, pre, post, node_map):
            return node_map[self.x][0] - node_map[self.y][0]

    x, y = (relay.var('x'), relay.var('y'))
    out = rewrite(R(), x + y + y)
    assert tvm.ir.structural_equal(out, x - y - y)
    assert tvm.ir.structural_equal(R().rewrite(x + y + y), x - y - y)


def test_rewrite_once():
    class R(DFPatternCallback):
        def __init__(self, once):
            super().__init__(rewrite_once=once)
            self.p = is_op('concatenate')(None)
            self.pattern = self.p

        def callback(self, pre, post, node_map):
            c = post
            return relay.op.tensor.concatenate(list(c.args[0].fields)[:-1], 0) if len(c.args[0].fields) > 1 else c.args[0].fields[0]

    xs = [relay.var(n, shape=(2,)) for n in 'abc']
    e = relay.concatenate(xs, 0)
    assert tvm.ir.structural_equal(rewrite(R(True), e), relay.concatenate(xs[:2], 0))
    assert rewrite(R(False), e) == xs[0]


def test_require_type():
    class R(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True)
            self.x = wildcard()
            self.pattern = is_op('nn.relu')(self.x)

        def callback(self, pre, post, node_map):
            x = node_map[self.x][0]
            return relay.zeros(pre.checked_type.shape, pre.checked_type.dtype) if x.checked_type else post

    x = relay.var('x', shape=(2, 3))
    o = rewrite(R(), relay.nn.relu(x))
    assert o.op.name == 'zeros'


def test_mod_arg():
    class R(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op('nn.relu')(wildcard())

        def callback(self, pre, post, node_map):
            return post.args[0]

    x = relay.var('x', shape=(2,))
    m = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    assert rewrite([R()], m['main'], m).body == m['main'].params[0]


def test_nodemap_types():
    got = {}

    class R(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.a, self.b = (wildcard(), is_constant())
            self.s = is_op('add')(self.a, self.b)
            self.pattern = is_op('nn.relu')(self.s)

        def callback(self, pre, post, node_map):
            got['n'] = len(node_map)
            got['c'] = node_map[self.b][0].data.numpy()
            got['in'] = self.pattern in node_map
            got['it'] = [k for k in node_map.keys()]
            return node_map[self.s][0]

    rewrite(R(), relay.nn.relu(relay.var('x') + relay.const(3.0)))
    assert got['c'] == 3.0
    assert got['in']
    assert got['n'] >= 3


def test_if_rewrite():
    p = is_if(is_var('c'), wildcard(), wildcard())
    c = relay.var('c', shape=(), dtype='bool')
    x = relay.var('x')
    assert p.match(relay.If(c, x, x))
    assert not p.match(relay.If(relay.var('d', shape=(), dtype='bool'), x, x))


def test_const_ops():
    x = wildcard()
    ps = [x + x, x - x, x * x, x / x]
    assert [p.op.expr.name for p in ps] == ['add', 'subtract', 'multiply', 'divide']


def test_commut():
    a, b = (relay.var('a'), relay.const(1.0))
    p = is_op('multiply')(is_var(), is_constant())
    assert p.match(a * b)
    assert p.match(b * a)
    q = is_op('subtract')(is_var(), is_constant())
    assert q.match(a - b)
    assert not q.match(b - a)


def test_type_pat():
    x = relay.var('x', shape=(10, 10), dtype='float32')
    p = has_type(relay.TensorType((10, 10), 'float32'))
    assert p.match(x)
    assert not has_type(relay.TensorType((10, 11), 'float32')).match(x)
    assert has_dtype('float32').match(x)
    assert not has_dtype('int8').match(x)
    assert has_shape((10, 10)).match(x)
    assert not has_shape((2, 10)).match(x)
    assert is_op('add')(has_dtype('float32'), wildcard()).match(x + x)


def test_bn_partition():
    x = relay.var('x', shape=(1, 4, 5, 5))
    ps = [relay.var(n, shape=(4,)) for n in ('g', 'b', 'm', 'v')]
    bn = relay.nn.batch_norm(x, *ps)[0]
    p = is_tuple_get_item(bn_pat(), 0)
    assert p.match(bn)
    assert 'nn.batch_norm' in p.partition(bn).op.attrs['PartitionedFromPattern']


def test_overlap():
    x = relay.var('x')
    e = relay.nn.relu(relay.nn.relu(relay.nn.relu(x)))
    p = is_op('nn.relu')(is_op('nn.relu')(wildcard()))
    r = p.partition(e)
    n = []
    relay.analysis.post_order_visit(r, lambda q: n.append(q) if isinstance(q, relay.Call) and isinstance(q.op, relay.Function) else None)
    assert len(n) == 1


def test_match_in_mod():
    from baton.relay.testing import resnet

    m, _ = resnet.get_workload(num_layers=18, image_shape=(3, 32, 32))
    p = is_op('nn.relu')(is_tuple_get_item(bn_pat(), 0))
    n = [0]

    class R(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = p

        def callback(self, pre, post, nm):
            n[0] += 1
            return post

    rewrite(R(), m['main'])
    assert n[0] == 17


def test_expr_pattern_fn():
    x = relay.var('x')
    assert is_expr(x + x).match(x + x)
    assert not is_expr(x).match(x + x)


def test_wild_call():
    f = relay.Function([], relay.const(1))
    assert wildcard()().match(f())
    x = relay.var('x')
    assert wildcard()(wildcard()).match(relay.exp(x))
    assert not wildcard()(wildcard()).match(x + x)


def test_alt_ops():
    p = (is_op('add') | is_op('subtract'))(wildcard(), wildcard())
    x = relay.var('x')
    assert p.match(x + x)
    assert p.match(x - x)
    assert not p.match(x * x)


def test_merge_table():
    def mk():
        p = is_op('nn.conv2d')(wildcard(), is_constant())
        return p.optional(lambda x: is_op('nn.bias_add')(x, is_constant()))

    x = relay.var('x', shape=(1, 3, 8, 8))
    c = relay.nn.bias_add(relay.nn.conv2d(x, relay.const(np.ones((4, 3, 3, 3), 'float32')), kernel_size=(3, 3), channels=4), relay.const(np.ones(4, 'float32')))
    m = tvm.IRModule.from_expr(relay.Function([x], c))
    m = tvm.transform.Sequential(
        [
            relay.transform.InferType(),
            relay.transform.MergeComposite([('a.conv', mk(), lambda e: True)]),
            relay.transform.AnnotateTarget('a'),
            relay.transform.MergeCompilerRegions(),
            relay.transform.PartitionGraph(),
        ]
    )(m)
    assert len(m.get_global_vars()) == 2
