# SPDX-License-Identifier: Apache-2.0
"""Programs of 0.8 about nodes of TIR, builders, buffers and passes: variables and numbers are int32, as they were."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import arith, relay, te, tir, topi

# fmt: off
PROGRAMS = {
    "var fields": """
x = te.var("x")
assert x.name == "x" and x.dtype == "int32"
""",
    "var handle": """
x = tir.Var("p", "handle"); assert x.dtype == "handle"
""",
    "var type annotation": """
x = te.var("x")
assert isinstance(x.type_annotation, tvm.ir.PrimType) and x.type_annotation.dtype == "int32"
""",
    "var pointer": """
p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
assert p.dtype == "handle" and p.type_annotation.element_type.dtype == "float32"
""",
    "pointer scope": """
p = tvm.ir.PointerType(tvm.ir.PrimType("float32"), "shared")
assert p.storage_scope == "shared"
""",
    "sizevar": """
n = te.size_var("n")
assert isinstance(n, tir.SizeVar) and isinstance(n, tir.Var)
""",
    "const": """
x = tir.const(1, "int32")
assert x.dtype == "int32" and isinstance(x, tir.IntImm)
""",
    "const float": """
x = tir.const(1.5)
assert x.dtype == "float32" and isinstance(x, tir.FloatImm) and x.value == 1.5
""",
    "const saveload": """
x = tir.const(1, "int32")
y = tir.const(10, "int32")
z = x + y
zz = load_json(save_json(z))
assert structural_equal(zz, z, map_free_vars=True)
""",
    "const fold": """
x = tir.const(3,'int32') + 4
assert isinstance(x, tir.IntImm) and x.value == 7
""",
    "const fold bool": """
x = tir.const(3,'int32') < tir.const(4,'int32')
assert bool(x)
y = tir.all(tir.const(1,'bool'), tir.const(0,'bool'))
assert isinstance(y, tir.IntImm) and y.value == 0
""",
    "const fold float": """
x = tir.const(3,'float32')
y = x*2.0
assert y.value == 6.0
""",
    "add zero": """
x = te.var('x')
assert (x+0).same_as(x)
assert (0+x).same_as(x)
assert (x*1).same_as(x)
assert (x-0).same_as(x)
assert (x*0).value == 0
assert tir.floordiv(x,1).same_as(x)
assert tir.indexdiv(x,1).same_as(x)
""",
    "make basic": """
a = te.var('a')
b = tir.const(1)
c = a+b
assert str(c) == "(a + 1)"
""",
    "printing ops": """
x = te.var('x'); y = te.var('y')
assert str(x+y) == "(x + y)"
assert str(x-y)=="(x - y)"
assert str(x*y)=="(x*y)"
assert str(tir.max(x,y))=="max(x, y)"
assert str(tir.min(x,y))=="min(x, y)"
""",
    "printing divisions": """
x = te.var('x'); y = te.var('y')
assert str(tir.floordiv(x,y))=="floordiv(x, y)"
assert str(tir.floormod(x,y))=="floormod(x, y)"
assert str(tir.truncdiv(x,y))=="(x/y)"
assert str(tir.truncmod(x,y))=="(x % y)"
""",
    "printing cmp": """
x = te.var('x'); y = te.var('y')
assert str(x<y)=="(x < y)"
assert str(x<=y)=="(x <= y)"
assert str(x>y)=="(x > y)"
assert str(x>=y)=="(x >= y)"
assert str(x==y)=="(x == y)"
assert str(x!=y)=="(x != y)"
""",
    "printing logic": """
x = te.var('x'); y=te.var('y'); a = x<3; b = y<3
assert str(tir.all(a,b))=="((x < 3) && (y < 3))"
assert str(tir.any(a,b))=="((x < 3) || (y < 3))"
assert str(tir.Not(a)) == "!(x < 3)"
""",
    "printing cast select": """
x = te.var('x')
assert str(x.astype('float32'))=="float32(x)"
assert str(tir.Select(x<1,x,2)) =="select((x < 1), x, 2)"
""",
    "printing ramp": """
x = te.var('x')
assert str(tir.Ramp(x,1,4))=="ramp(x, 1, 4)"
assert str(tir.Broadcast(x,4))=="x4(x)"
""",
    "printing let": """
x = te.var('x')
assert str(tir.Let(x, 1, x+1)) == "(let x = 1 in (x + 1))"
""",
    "neg": """
x = te.var('x')
assert str(-x)=="(x*-1)" or str(-x)=="(0 - x)"
""",
    "bitops": """
x = te.var('x')
assert (x<<1).dtype=='int32'
assert isinstance(x<<1, tir.Call)
assert str(x&1)
assert str(~x) and isinstance(~x, tir.Call)
""",
    "cast": """
z = tir.const(1,'int32').astype('float32')
assert z.dtype == 'float32' and z.value == 1.0
x = te.var('x')
y = x.astype('float32')
assert isinstance(y, tir.Cast) and y.value.same_as(x)
z = tir.const(1,'float32').astype('float32x4')
assert z.dtype=='float32x4' and isinstance(z, tir.Broadcast) and z.lanes == 4
""",
    "call fields": """
x = te.var('x','float32')
c = tir.exp(x)
assert isinstance(c, tir.Call) and c.op.name == 'tir.exp' and c.args[0].same_as(x) and c.dtype=='float32'
""",
    "call extern": """
c = tir.call_extern('float32','myf',1.0,2)
assert c.op.name=='tir.call_extern' and c.args[0].value=='myf' and len(c.args)==3
""",
    "call op get": """
c = tir.Call('float32', tvm.ir.Op.get('tir.exp'), [tir.const(1.0)])
assert c.op.name == 'tir.exp'
""",
    "tvm_struct_get": """
h = te.var('h','handle')
c = tir.call_intrin('handle','tir.tvm_struct_get',h,0,1)
assert c.dtype=='handle'
""",
    "for": """
i = te.var('i')
f = tir.For(i, 0, 10, tir.ForKind.SERIAL, tir.Evaluate(0))
assert f.loop_var.same_as(i) and f.min.value==0 and f.extent.value==10 and f.kind==tir.ForKind.SERIAL and isinstance(f.body, tir.Evaluate)
assert f.kind == 0
""",
    "for annotations": """
i = te.var('i')
f = tir.For(i, 0, 10, tir.ForKind.SERIAL, tir.Evaluate(0), None, {"a":1})
assert f.annotations["a"] == 1 and f.thread_binding is None
""",
    "store load": """
p = tir.Var('p', tvm.ir.PointerType(tvm.ir.PrimType('float32')))
l = tir.Load('float32', p, 1)
assert l.buffer_var.same_as(p) and l.index.value==1 and l.dtype=='float32' and bool(l.predicate)
s = tir.Store(p, tir.const(1.0), 3)
assert s.buffer_var.same_as(p) and s.index.value==3 and s.value.value==1.0
""",
    "load handle": """
p = te.var('p','handle')
l = tir.Load('float32', p, 1)
assert l.index.value==1
""",
    "store handle": """
p = te.var('p','handle')
s = tir.Store(p, 1, 10, tir.const(1,'uint1'))
assert isinstance(s, tir.Store) and s.index.value == 10 and s.predicate.dtype in ('uint1','bool')
""",
    "bufferload": """
b = tir.decl_buffer((4,5))
l = tir.BufferLoad(b,[1,2])
assert l.buffer.same_as(b) and len(l.indices)==2 and l.dtype=='float32'
s = tir.BufferStore(b, tir.const(1.0), [0,1])
assert s.buffer.same_as(b) and s.indices[1].value==1
""",
    "attrstmt": """
x = te.var('x')
s = tir.AttrStmt(x,'stride',10,tir.Evaluate(1))
assert s.node.same_as(x) and s.attr_key=='stride' and s.value.value==10 and isinstance(s.body, tir.Evaluate)
""",
    "attrstmt str": """
s = tir.AttrStmt(tir.StringImm('a'),'k',1,tir.Evaluate(1))
assert s.node.value == 'a'
""",
    "assert2": """
s = tir.AssertStmt(te.var('x')<3, tir.StringImm("msg"), tir.Evaluate(0))
assert s.message.value == "msg"
""",
    "allocate": """
p = tir.Var('p', tvm.ir.PointerType(tvm.ir.PrimType('float32')))
s = tir.Allocate(p,'float32',[10],tir.const(1,'uint1'),tir.Evaluate(1))
assert s.buffer_var.same_as(p) and s.extents[0].value==10 and s.dtype=='float32'
""",
    "allocate handle": """
p = te.var('buf','handle')
s = tir.Allocate(p,'float32',[10],tir.const(1,'uint1'),tir.Evaluate(1))
assert s.buffer_var.same_as(p)
""",
    "evaluate": """
s = tir.Evaluate(tir.const(1)); assert s.value.value==1
""",
    "ifthenelse": """
x=te.var('x')
s = tir.IfThenElse(x<1, tir.Evaluate(1), tir.Evaluate(2))
assert s.then_case.value.value==1 and s.else_case.value.value==2
s = tir.IfThenElse(x<1, tir.Evaluate(11), None)
assert s.else_case is None
""",
    "seq": """
s = tir.SeqStmt([tir.Evaluate(1), tir.Evaluate(2)])
assert len(s)==2 and s[0].value.value==1 and [x.value.value for x in s.seq]==[1,2]
assert s[-1].value.value==2
""",
    "stmt_seq": """
s = tir.stmt_seq(tir.Evaluate(1), tir.Evaluate(2))
assert isinstance(s, tir.SeqStmt)
assert isinstance(tir.stmt_seq(1), tir.Evaluate)
assert len(tir.stmt_list(s)) == 2
""",
    "let stmt": """
x=te.var('x')
s=tir.LetStmt(x, 1, tir.Evaluate(x))
assert s.var.same_as(x) and s.value.value==1
""",
    "buffer": """
m=te.size_var('m')
n=te.size_var('n')
l=te.size_var('l')
A=tir.decl_buffer((m,n),'float32','Ab')
assert A.name=='Ab' and A.dtype=='float32' and A.shape[0]==m and tuple(A.shape)==(m,n)
assert A.scope()=='global'
assert isinstance(A.data, tir.Var) and len(A.strides)==0
""",
    "buffer scope": """
A=tir.decl_buffer((4,),scope='shared')
assert A.scope()=='shared'
""",
    "buffer strides": """
A=tir.decl_buffer((4,5),strides=[10,1])
assert A.strides[0].value==10
""",
    "buffer elem_offset": """
o=te.var('o')
A=tir.decl_buffer((4,),elem_offset=o, offset_factor=4, data_alignment=64)
assert A.elem_offset.same_as(o) and A.offset_factor==4 and A.data_alignment==64
""",
    "access_ptr": """
m=te.size_var('m')
n=te.size_var('n')
A=tir.decl_buffer((m,n))
p=A.access_ptr('rw')
assert p.args[0].dtype=='float32' and p.args[-1].value==3
assert p.op.name=='tir.tvm_access_ptr'
p=A.access_ptr('w')
assert p.args[-1].value==2
""",
    "access_ptr offset": """
A=tir.decl_buffer((10,10))
v=te.var('int32')
p=A.access_ptr('r', offset=100+v)
assert str(p.args[2])
""",
    "vload": """
m=te.size_var('m')
n=te.size_var('n')
A=tir.decl_buffer((m,n),elem_offset=100)
l=A.vload([2,3])
assert l.dtype=='float32'
""",
    "vload idx": """
n=te.size_var('n')
m=te.size_var('m')
A=tir.decl_buffer((m,n),'float32',elem_offset=100)
load=A.vload([2,3])
tvm.testing.assert_prim_expr_equal(load.index, n*2+103)
""",
    "vstore": """
A=tir.decl_buffer((4,5))
s=A.vstore([1,2], 1.0)
assert isinstance(s,(tir.Store,tir.BufferStore))
""",
    "vload vector": """
A=tir.decl_buffer((16,))
l=A.vload(0,'float32x4')
assert l.dtype=='float32x4'
""",
    "buffer auto broadcast": """
m,n=te.size_var('m'),te.size_var('n')
A=tir.decl_buffer((m,n),buffer_type='auto_broadcast')
assert A.buffer_type==2
""",
    "PrimFunc": """
b=tir.decl_buffer((4,))
f=tir.PrimFunc([b], tir.Evaluate(0))
assert len(f.params)==1 and f.buffer_map[f.params[0]].same_as(b) and f.ret_type is not None
""",
    "PrimFunc attrs": """
x=te.var('x')
f=tir.PrimFunc([x],tir.Evaluate(x))
g=f.with_attr('global_symbol','main')
assert g.attrs['global_symbol']=='main' and (f.attrs is None or 'global_symbol' not in f.attrs)
assert structural_equal(f, load_json(save_json(f)))
""",
    "with_body": """
x=te.var('x')
f=tir.PrimFunc([x],tir.Evaluate(x))
g=f.with_body(tir.Evaluate(1))
assert g.body.value.value==1 and g.params[0].same_as(x)
""",
    "primfunc module": """
x=te.var('x')
f=tir.PrimFunc([x],tir.Evaluate(x))
m=tvm.IRModule({'main':f})
assert isinstance(m['main'], tir.PrimFunc)
m2=load_json(save_json(m))
assert structural_equal(m,m2)
""",
    "primfunc call": """
x=te.var('x')
f=tir.PrimFunc([x],tir.Evaluate(x))
c=tvm.IRModule({'main':f}).get_global_var('main')
assert c.name_hint=='main'
y=c(1); assert isinstance(y, tir.Call)
""",
    "itervar": """
iv=tir.IterVar((0,10),'i',tir.IterVar.DataPar)
assert iv.var.name=='i' and iv.dom.extent.value==10 and iv.iter_type==0
iv=te.reduce_axis((0,4),'k')
assert iv.iter_type==tir.IterVar.CommReduce==2
""",
    "itervar none": """
iv=tir.IterVar(None,'i',0); assert iv.dom is None
""",
    "itervar expr": """
k=te.reduce_axis((0,4),'k')
e=k+1
assert isinstance(e,tir.Add)
""",
    "thread axis": """
t=te.thread_axis((0,32),'threadIdx.x')
assert t.dom.extent.value==32 and t.iter_type==tir.IterVar.ThreadIndex
""",
    "range": """
r=tvm.ir.Range(0,10)
assert r.min.value==0 and r.extent.value==10
r=tvm.ir.Range(2,10)
assert r.extent.value==8
r=tvm.ir.Range(10)
assert r.min.value==0 and r.extent.value==10
r=tvm.ir.Range.from_min_extent(1,te.var('n'))
assert str(r)=="range(min=1, ext=n)"
""",
    "comm_reducer": """
r=te.comm_reducer(lambda x,y: x+y, lambda t: tir.const(0,dtype=t),name='s')
k=te.reduce_axis((0,4))
A=te.placeholder((4,))
e=r(A[k],axis=k)
assert isinstance(e,tir.Reduce) and e.value_index==0 and len(e.axis)==1 and e.combiner.identity_element[0].value==0.0
""",
    "reduce where": """
n=te.var('n')
A=te.placeholder((n,))
k=te.reduce_axis((0,n))
e=te.sum(A[k],axis=k,where=k<3)
assert isinstance(e.condition, tir.LT)
""",
    "reduce fields": """
n=te.var('n')
A=te.placeholder((n,))
k=te.reduce_axis((0,n))
e=te.max(A[k],axis=[k])
assert e.source[0].same_as(e.source[0]) and len(e.combiner.lhs)==1 and e.combiner.result is not None and len(e.init)==0
""",
    "comm_reducer call": """
r=te.comm_reducer(lambda x,y:x+y, lambda t: tir.const(0,t))
x=te.var('x','float32')
y=te.var('y','float32')
red=te.sum(te.placeholder((3,))[te.reduce_axis((0,3))],axis=te.reduce_axis((0,3))).combiner
res=red([x],[y]); assert structural_equal(res[0], x+y)
""",
    "shuffle": """
s=tir.Shuffle([te.var('x','float32'),te.var('y','float32')],[0,1])
assert s.dtype=='float32x2'
""",
    "any": """
a=tir.Any()
assert isinstance(a,tir.Any)
assert str(a)=='?'
""",
    "min max value": """
assert tir.min_value('int32').value==-2**31 and tir.max_value('int32').value==2**31-1
assert te.min_value('float32').value < -3e38
assert te.max_value('float16').value==65504.0
""",
    "infinity": """
assert te.var and tir.infinity('float32').dtype=='float32'
""",
    "if_then_else": """
x=te.var('x')
e=tir.if_then_else(x<1,1,2)
assert e.op.name=='tir.if_then_else'
assert isinstance(tir.if_then_else(True,1,2), tir.IntImm)
""",
    "power": """
x=te.var('x','float32')
assert tir.power(x,2.0).op.name=='tir.pow'
""",
    "popcount clz": """
x=te.var('x')
assert tir.popcount(x).op.name=='tir.popcount'
assert tir.clz(x).dtype=='int32'
""",
    "isnan int": """
x=te.var('x')
r=tir.isnan(x)
assert isinstance(r,tir.IntImm) and r.value==0
""",
    "abs int": """
x=te.var('x'); r=tir.abs(x); assert r.dtype=='int32'
""",
    "reinterpret": """
assert tir.reinterpret('int32', te.var('x','float32')).dtype=='int32'
""",
    "comparison class": """
x=te.var('x')
e=(x==1)
assert isinstance(e, tir.EqualOp) and e.a.same_as(x) and e.asobject().dtype in ('bool','uint1')
""",
    "ne class": """
x=te.var('x')
e=(x!=1)
assert isinstance(e, tir.NotEqualOp)
""",
    "equal method": """
x=te.var('x'); e=x.equal(1); assert isinstance(e, tir.EQ)
""",
    "class constructors": """
x=te.var('x');y=te.var('y')
for c in 'Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE'.split():
    e=getattr(tir,c)(x,y); assert e.a.same_as(x) and e.b.same_as(y), c
""",
    "and or": """
a=te.var('a','bool')
b=te.var('b','bool')
e=tir.And(a,b)
assert e.a.same_as(a)
e=tir.Or(a,b)
assert e.b.same_as(b)
e=tir.Not(a)
assert e.a.same_as(a)
""",
    "mixed dtypes": """
x=te.var('x','int32')
y=te.var('y','int64')
assert (x+y).dtype=='int64'
z=te.var('z','float32')
assert (x+z).dtype=='float32'
assert (z+1).dtype=='float32'
assert (x+1.0).dtype=='float32'
""",
    "int8 uint8": """
a=te.var('a','uint8')
b=te.var('b','int8')
assert (a+b).dtype
""",
    "uint mixed": """
a=te.var('a','uint32'); assert (a+1).dtype=='uint32'
""",
    "divmod ops": """
x=te.var('x')
assert isinstance(x//2, tir.FloorDiv)
assert isinstance(x%2, tir.FloorMod)
assert isinstance(tir.indexmod(x,2), tir.FloorMod)
assert isinstance(tir.truncmod(x,2),tir.Mod)
assert isinstance(tir.truncdiv(x,2), tir.Div)
""",
    "rdiv": """
x=te.var('x')
assert isinstance(10//x, tir.FloorDiv)
assert isinstance(10%x, tir.FloorMod)
assert isinstance(10-x, tir.Sub)
""",
    "float div": """
x=te.var('x','float32')
assert isinstance(x/2.0, tir.Div)
assert isinstance(tir.div(x,2.0), tir.Div)
""",
    "logical python": """
x=te.var('x')
assert isinstance(tir.all(x<1,x<2,x<3), tir.And)
""",
    "__hash__ var": """
x=te.var('x'); d={x:1}; assert d[x]==1
""",
    "bool const": """
assert tir.const(True).dtype in ('bool',)
assert tir.const(True).value == 1
""",
    "IntImm bool": """
assert bool(tir.IntImm('int32',1))
assert not bool(tir.IntImm('int32',0))
""",
    "nonzero": """
assert tir.IntImm('int32',3)==tir.const(3)
""",
    "float bool": """
assert float(tir.FloatImm('float32',2.5))==2.5
""",
    "StringImm eq": """
s=tir.StringImm('abc')
assert s=='abc' and s!='abd' and s.value=='abc'
assert s==tir.StringImm('abc')
""",
    "as array map": """
a=tvm.runtime.convert([1,2,3])
assert len(a)==3 and a[-1].value==3 and [x.value for x in a[0:2]]==[1,2]
""",
    "map": """
x=te.var('x')
m=tvm.runtime.convert({x:2,'y':3}) if False else tvm.runtime.convert({x:2})
assert x in m and m[x].value==2 and len(m)==1 and dict(m.items())
""",
    "map2": """
m=tvm.runtime.convert({'a':2,'b':3})
assert m['a'].value==2 and 'c' not in m and m.get('c',5)==5 and sorted(m.keys())==['a','b'] and len(list(m.values()))==2
""",
    "getitem error": """
a=tvm.runtime.convert([1,2,3])
with pytest.raises(IndexError): a[4]
""",
    "map error": """
m=tvm.runtime.convert({'a':1})
with pytest.raises(KeyError): m['z']
""",
    "simplify stmt": """
n=te.var('n')
i=te.var('i')
b=tir.decl_buffer((n,),'int32','A')
f=tir.PrimFunc([b,n], tir.For(i,0,n,tir.ForKind.SERIAL,tir.IfThenElse(i<12345678*0+n, tir.BufferStore(b,i,[i]))))
r=tir.transform.Simplify()(tvm.IRModule({'main':f}))['main'].body
assert isinstance(r.body, tir.BufferStore), str(r)
""",
    "simplify let": """
n=te.var('n')
x=te.var('x')
A=tir.decl_buffer((10,),'int32')
body=tir.LetStmt(x, 10, tir.IfThenElse(x<20, tir.BufferStore(A,x,[x])))
r=tir.transform.Simplify()(tvm.IRModule({'main':tir.PrimFunc([A],body)}))['main'].body
""",
    "unroll": """
n=te.size_var('n')
ib=tir.ir_builder.create()
Ab=tir.decl_buffer((n,),'int64')
Aptr=ib.buffer_ptr(Ab)
with ib.for_range(n,n+2,name='i') as i:
    with ib.for_range(0,8,name='i',kind='unroll') as j: Aptr[j+1]=Aptr[i]+1
stmt=ib.get()
mod=tvm.IRModule.from_expr(tir.PrimFunc([Ab],stmt))
assert isinstance(stmt,tir.For)
with tvm.transform.PassContext(config={"tir.UnrollLoop":{"auto_max_step":16}}):
    ret=tir.transform.UnrollLoop()(mod)['main'].body
    assert not isinstance(ret,tir.For)
with tvm.transform.PassContext(config={"tir.UnrollLoop":{"auto_max_step":15}}):
    ret=tir.transform.UnrollLoop()(mod)['main'].body; assert isinstance(ret,tir.For)
with tvm.transform.PassContext(config={"tir.UnrollLoop":{"auto_max_step":16,"explicit_unroll":False}}):
    ret=tir.transform.UnrollLoop()(mod)['main'].body
""",
    "vectorize": """
dtype='int64'
n=te.var('n')
ib=tir.ir_builder.create()
A=ib.pointer('float32',name='A')
with ib.for_range(0,n) as i:
    with ib.for_range(0,4,kind='vectorize') as j: A[j]=tir.const(1,A.dtype)
stmt=ib.get(); assert isinstance(stmt.body,tir.For)
mod=tvm.IRModule.from_expr(tir.PrimFunc([A,n],stmt))
s=tir.transform.VectorizeLoop()(mod)['main'].body
assert isinstance(s,tir.For) and not isinstance(s.body,tir.For)
assert isinstance(s.body.index,tir.Ramp) and isinstance(s.body.value,tir.Broadcast)
""",
    "vectorize if": """
n=te.var('n')
x=te.var('x')
ib=tir.ir_builder.create()
A=ib.pointer('float32',name='A')
with ib.for_range(0,4,kind='vectorize') as i:
    with ib.if_scope(x<n): A[i]=A[i]+1
    with ib.else_scope():
        with ib.if_scope(i<n): A[i]=2.0
stmt=ib.get()
mod=tvm.IRModule.from_expr(tir.PrimFunc([A,n,x],stmt))
s=tir.transform.VectorizeLoop()(mod)['main'].body
assert isinstance(s,tir.IfThenElse)
""",
    "vectorize disable": """
n=te.var('n')
ib=tir.ir_builder.create()
A=ib.pointer('float32',name='A')
with ib.for_range(0,4,kind='vectorize') as i: A[i]=1.0
mod=tvm.IRModule.from_expr(tir.PrimFunc([A],ib.get()))
s=tir.transform.VectorizeLoop(False)(mod)['main'].body
assert isinstance(s,tir.For) and s.kind==tir.ForKind.SERIAL
""",
    "loop partition": """
ib=tir.ir_builder.create()
m=te.size_var('m')
n=te.size_var('n')
with ib.for_range(0,4,'i') as i:
    with ib.for_range(0,n,'j') as j:
        with ib.for_range(0,m,'k') as k:
            with ib.if_scope(ib.likely(i*m+j+k<n)): ib.emit(tir.Evaluate(m))
            with ib.else_scope(): ib.emit(tir.Evaluate(n))
mod=tvm.IRModule.from_expr(tir.PrimFunc([n,m],ib.get()))
mod=tir.transform.LoopPartition()(mod)
stmt=tir.transform.Simplify()(mod)['main'].body
""",
    "hoist": """
ib=tir.ir_builder.create()
l=te.var('l')
m=te.var('m')
n=te.var('n')
with ib.for_range(0,l,'i') as i:
    with ib.for_range(0,m,'j') as j:
        with ib.if_scope(ib.likely(i<2)): ib.emit(tir.Evaluate(m))
        with ib.else_scope(): ib.emit(tir.Evaluate(n))
mod=tvm.IRModule.from_expr(tir.PrimFunc([l,m,n],ib.get()))
s=tir.transform.HoistIfThenElse()(mod)['main'].body
""",
    "storage rewrite": """
ib=tir.ir_builder.create(); n=te.var('n')
with ib.for_range(0,n,name='i') as i:
    with ib.for_range(0,10,name='j') as j:
        A=ib.allocate('float32',200,name='A',scope='global'); A[j]=tir.const(1.2,'float32')
body=ib.get()
mod=tvm.IRModule.from_expr(tir.PrimFunc([n],body))
body=tir.transform.StorageRewrite()(mod)['main'].body
""",
    "storage flatten": """
m=te.size_var('m')
l=te.size_var('l')
A=te.placeholder((m,l),name='A')
A1=te.compute((m,l),lambda i,j:A[i,j],name='A1')
A2=te.compute((m,l),lambda i,j:A1[i,j]+3,name='A2')
s=te.create_schedule(A2.op)
xo,xi=s[A2].split(A2.op.axis[0],8)
s[A1].compute_at(s[A2],xo)
bounds=te.schedule.InferBound(s)
assert isinstance(bounds, tvm.container.Map)
stmt=te.schedule.ScheduleOps(s,bounds)
func=te.schedule.SchedulePostProcToPrimFunc([A,A2],stmt,None)
mod=tvm.IRModule.from_expr(func)
mod=tir.transform.StorageFlatten(64)(mod)
""",
    "apply": """
func=tir.PrimFunc([te.var('x')],tir.Evaluate(0))
mod=tvm.IRModule({'main':func})
mod=tir.transform.Apply(lambda f:f.with_attr('a',1))(mod)
assert mod['main'].attrs['a']==1
""",
    "prim_func_pass": """
@tir.transform.prim_func_pass(opt_level=1)
class TestReplaceFunc:
    def __init__(self,new_func): self.new_func=new_func
    def transform_function(self,func,mod,ctx): return self.new_func
x=te.var('x')
y=te.var('y')
b=tir.decl_buffer((x,))
stmt=tir.LetStmt(x,10,tir.Evaluate(x+1))
func=tir.PrimFunc([x,y,b],stmt)
new_func=tir.PrimFunc([x,y,b],tir.Evaluate(0))
mod=tvm.IRModule({'main':func})
mod=TestReplaceFunc(new_func)(mod)
assert structural_equal(mod['main'].body,new_func.body)
""",
    "passes w args": """
tir.transform.ThreadSync('shared')
tir.transform.NarrowDataType(32)
tir.transform.StorageFlatten(64)
tir.transform.StorageFlatten(64, True)
tir.transform.VerifyGPUCode({'max_threads_per_block':1})
tir.transform.InjectCopyIntrin
tir.transform.Filter(lambda f: True)
tir.transform.MakePackedAPI(0)
tir.transform.MakePackedAPI()
""",
    "hoist variant": """
tir.transform.HoistIfThenElse('basic')
tir.transform.HoistIfThenElse()
""",
    "substitute": """
x=te.var('x')
y=te.var('y')
r=tir.stmt_functor.substitute(x+y,{x:y})
assert structural_equal(r,y+y)
""",
    "substitute stmt": """
x=te.var('x')
s=tir.stmt_functor.substitute(tir.Evaluate(x+1),{x:tir.const(1)})
assert s.value.value==2
""",
    "ir_transform": """
x=te.var('x')
body=tir.Evaluate(tir.call_extern('int32','TestA',x+1,x*x))
seq=tir.SeqStmt([body,body])
builtin=tvm.ir.Op.get('tir.call_extern')
def preorder(op):
    if op.op.same_as(builtin) and op.args[0].value=='TestC': return tir.const(0,'int32')
def postorder(op):
    assert isinstance(op,tir.Call)
    if op.op.same_as(builtin) and op.args[0].value=='TestA': return tir.call_extern('int32','TestB',op.args[1]+1)
    return op
r=tir.stmt_functor.ir_transform(seq,preorder,postorder,['tir.Call'])
rl=tir.stmt_list(r)
assert rl[0].value.args[0].value=='TestB'
""",
    "expr_deep_equal": """
x=te.var('x')
assert tir.analysis.expr_deep_equal(x+1,x+1)
assert not tir.analysis.expr_deep_equal(x+1,x+2)
y=te.var('x')
assert not tir.analysis.expr_deep_equal(x,y)
""",
    "verify_ssa": """
x=te.var('x')
y=te.var('y')
assert tir.analysis.verify_ssa(tir.PrimFunc([x],tir.LetStmt(y,x+1,tir.Evaluate(y))))
""",
    "verify_memory": """
n=te.var('n')
A=te.placeholder((n,),name='A')
B=te.compute(A.shape,lambda i:A[i]+1.0,name='B')
s=te.create_schedule(B.op)
mod=tvm.lower(s,[A,B])
f=mod['main'].with_attr('target',tvm.target.Target('llvm'))
assert tir.analysis.verify_memory(f)
with pytest.raises(Exception):
    tir.transform.VerifyMemory()(tvm.IRModule.from_expr(mod['main'].with_attr('target',tvm.target.Target('cuda'))))
""",
    "calculate_workspace_bytes": """
ib=tir.ir_builder.create()
a=ib.allocate('float32',10,name='a')
a[0]=1.0
f=tir.PrimFunc([],ib.get())
assert tir.analysis.calculate_workspace_bytes(f,16)>=40
""",
    "lca": """
b=tir.decl_buffer((4,))
i=te.var('i')
st=tir.BufferStore(b,tir.const(1.0),[i])
loop=tir.For(i,0,4,tir.ForKind.SERIAL,st)
f=tir.PrimFunc([b],loop)
l=tir.analysis.detect_buffer_access_lca(f)
assert b in l or len(l)==1
""",
    "get_block": """
with pytest.raises(Exception): tir.analysis.get_block_access_region(None,{})
with pytest.raises(Exception): tir.analysis.get_block_read_write_region(None,{})
""",
    "make packed": """
n=te.size_var('n')
A=te.placeholder((n,),name='A')
B=te.compute((n,),lambda i:A[i],name='B')
s=te.create_schedule(B.op)
mod=tvm.lower(s,[A,B],name='main')
mod=tir.transform.Apply(lambda f:f.with_attr({'target':tvm.target.Target('llvm'),'global_symbol':'main'}))(mod)
f=tir.transform.MakePackedAPI(0)(mod)['main']
assert f is not None
""",
    "layout undefined": """
l=tir.layout('__undef__')
""",
    "bijective": """
b=tir.bijective_layout('NCHW','NCHW16c')
s=b.forward_shape((1,32,7,7))
assert [int(x) for x in s]==[1,2,7,7,16]
s=b.backward_shape(s)
assert [int(x) for x in s]==[1,32,7,7]
i=b.forward_index([0,18,6,6])
assert [int(x) for x in i]==[0,1,6,6,2]
b=tir.bijective_layout('NCHW','NHWC')
assert b.backward_index(b.forward_index([0,1,2,3]))[1].value==1
""",
    "ib basics": """
ib=tir.ir_builder.create()
n=te.size_var('n')
A=ib.pointer('float32',name='A')
with ib.for_range(0,n,name='i') as i:
    with ib.if_scope((i%2)==0): A[i]=A[i]+1
    with ib.else_scope(): A[0]=A[i]+2
body=ib.get()
assert isinstance(body,tir.For)
body=body.body
assert isinstance(body,tir.IfThenElse)
assert isinstance(body.condition,tir.EQ)
assert isinstance(body.then_case.index,tir.Var)
assert list(body.else_case.index.value for _ in [0])==[0] and isinstance(body.then_case, tir.Store)
""",
    "ib extern": """
ib=tir.ir_builder.create()
ib.emit(tir.call_extern('int32','f',1))
assert isinstance(ib.get(),tir.Evaluate)
""",
    "ib scope attr": """
ib=tir.ir_builder.create()
tx=te.thread_axis('threadIdx.x')
ib.scope_attr(tx,'thread_extent',32)
ib.emit(tir.Evaluate(0))
s=ib.get()
assert isinstance(s,tir.AttrStmt) and s.attr_key=='thread_extent' and s.value.value==32 and s.node.var.name=='threadIdx.x'
""",
    "ib thread_binding": """
ib=tir.ir_builder.create()
with ib.new_scope():
    bx=te.thread_axis('blockIdx.x'); ib.scope_attr(bx,'thread_extent',4); A=ib.allocate('float32',4,name='A',scope='local'); A[0]=1.0
s=ib.get(); assert s.attr_key=='thread_extent'
""",
    "ib let": """
ib=tir.ir_builder.create()
v=ib.let('v',tir.const(1))
ib.emit(tir.Evaluate(v))
s=ib.get()
assert isinstance(s,tir.LetStmt) and s.var.same_as(v)
""",
    "ib allocate fields": """
ib=tir.ir_builder.create()
a=ib.allocate('float32',(10,),name='a',scope='shared')
a[0]=0.0
s=ib.get()
assert isinstance(s,tir.Allocate) and s.buffer_var.type_annotation.storage_scope=='shared' and s.extents[0]==10
""",
    "te extern ib": """
n=10; A=te.placeholder((n,),name='A')
def gen(ins,outs):
    ib=tir.ir_builder.create(); a=ib.buffer_ptr(ins[0]); o=ib.buffer_ptr(outs[0])
    with ib.for_range(0,n,'i') as i: o[i]=a[i]+1.0
    return ib.get()
C=te.extern((n,),[A],gen,dtype='float32')
f=tvm.build(te.create_schedule(C.op),[A,C],'llvm')
a=tvm.nd.array(np.zeros(10,'float32'))
c=tvm.nd.empty((10,))
f(a,c)
assert (c.numpy()==1).all()
""",
    "custom int32 loops run": """
n=te.var('n')
A=tir.decl_buffer((n,),'float32','A')
i=te.var('i')
f=tir.PrimFunc([A,n],tir.For(i,0,n,tir.ForKind.SERIAL,tir.BufferStore(A,(i*2).astype('float32'),[n-1-i])))
a=tvm.nd.empty((5,))
tvm.build(f,target='llvm')(a,5)
assert a.numpy().tolist()==[8,6,4,2,0]
""",
    "ssa": """
A=te.placeholder((3,))
f=te.create_prim_func([A,te.compute((3,),lambda i:A[i]*2.0)])
assert isinstance(f,tir.PrimFunc) and len(f.params)==2
""",
    "vload build": """
A=tir.decl_buffer((16,),'float32','A')
B=tir.decl_buffer((16,),'float32','B')
i=te.var('i')
f=tir.PrimFunc([A,B],tir.For(i,0,4,tir.ForKind.SERIAL,B.vstore([i*4],A.vload([i*4],'float32x4')+tir.const(1.0,'float32x4'))))
a=tvm.nd.array(np.arange(16,dtype='float32'))
b=tvm.nd.empty((16,))
tvm.build(f,target='llvm')(a,b)
assert (b.numpy()==a.numpy()+1).all()
""",
    "load store build": """
A=tir.decl_buffer((8,),'float32','A')
B=tir.decl_buffer((8,),'float32','B')
i=te.var('i')
f=tir.PrimFunc([A,B],tir.For(i,0,8,tir.ForKind.SERIAL,tir.Store(B.data,tir.Load('float32',A.data,i)*2.0,i)))
a=tvm.nd.array(np.arange(8,dtype='float32'))
b=tvm.nd.empty((8,))
tvm.build(f,target='llvm')(a,b)
assert (b.numpy()==a.numpy()*2).all()
""",
    "access ptr build": """
A=tir.decl_buffer((4,),'float32','A')
@tvm.register_func('scr.zero',override=True)
def z(a): pass
f=tir.PrimFunc([A],tir.Evaluate(tir.call_extern('int32','bzero',A.access_ptr('w',offset=2),8)))
a=tvm.nd.array(np.ones(4,'float32'))
tvm.build(f,target='llvm')(a)
assert a.numpy().tolist()==[1,1,0,0]
""",
    "strided local": """
A=tir.decl_buffer((4,),'float32','A')
i=te.var('i')
V=tir.decl_buffer((2,),'float32','V',data=A.data,strides=[2],elem_offset=1)
f=tir.PrimFunc([A],tir.For(i,0,2,0,tir.BufferStore(V,tir.const(5.0),[i])))
a=tvm.nd.array(np.zeros(4,'float32'))
tvm.build(f,target='llvm')(a)
assert a.numpy().tolist()==[0,5,0,5]
""",
    "compute dtype": """
C=te.compute((10,),lambda i:i*2)
assert C.dtype=='int32'
f=tvm.build(te.create_schedule(C.op),[C],'llvm')
c=tvm.nd.empty((10,),'int32')
f(c)
assert c.numpy().tolist()==list(range(0,20,2))
""",
    "compute cond": """
C=te.compute((4,4),lambda i,j:tir.Select(i<j, 1.0, tir.const(0.0)))
assert C.dtype=='float32'
""",
    "size var binding": """
n=te.var('n')
m=te.var('m')
A=te.placeholder((n,m))
B=te.compute((m,n),lambda i,j:A[j,i])
f=tvm.build(te.create_schedule(B.op),[A,B,n,m],'llvm')
a=tvm.nd.array(np.arange(6,dtype='float32').reshape(2,3))
b=tvm.nd.empty((3,2))
f(a,b,2,3)
assert (b.numpy()==a.numpy().T).all()
""",
}
# fmt: on


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    from baton.ir import assert_structural_equal, load_json, save_json, structural_equal, structural_hash

    names = {
        "assert_structural_equal": assert_structural_equal, "load_json": load_json, "save_json": save_json, "structural_equal": structural_equal,
        "structural_hash": structural_hash, "np": np, "pytest": pytest, "tvm": tvm, "arith": arith, "relay": relay, "te": te, "tir": tir, "topi": topi,
    }  # fmt: skip
    assert exec(PROGRAMS[name], names) is None, "a program's own assertions hold"
