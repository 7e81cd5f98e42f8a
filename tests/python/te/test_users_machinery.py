# SPDX-License-Identifier: Apache-2.0
"""Programs of 0.8 about tensors, objects, modules, targets and helpers below Relay."""

import numpy as np
import pytest

import baton as tvm
import baton.contrib.utils
import baton.testing
from baton import arith, relay, te, tir, topi

# fmt: off
PROGRAMS = {
    "var text": """
x,y=te.var('x'),te.var('y')
assert str(x*2+y)=="((x*2) + y)"
assert str([x,y+1])=="[x, (y + 1)]"
assert str(tir.exp(te.var('z','float32')))=="tir.exp(z)"
""",
    "call str": """
assert str(tir.call_extern('int32','f',1,te.var('x')))=='tir.call_extern("f", 1, x)'
""",
    "placeholder shape str": """
A=te.placeholder((4,5),name='A')
assert str(A.shape)=="[4, 5]"
""",
    "shape compare": """
A=te.placeholder((4,5))
assert A.shape[0]==4 and A.shape[1].value==5 and tuple(int(x) for x in A.shape)==(4,5) and list(A.shape)==[4,5]
""",
    "tensor basics": """
m=te.size_var('m')
n=te.size_var('n')
l=te.size_var('l')
A=te.placeholder((m,l),name='A')
B=te.placeholder((n,l),name='B')
T=te.compute((m,n,l),lambda i,j,k:A[i,k]*B[j,k])
assert T.op.axis is not None
assert tuple(T.shape)==(m,n,l)
assert isinstance(A.op,te.PlaceholderOp)
assert A==A
assert T.op.output(0)==T
assert T.op.output(0).__hash__()==T.__hash__()
d={T.op.output(0):1}
assert d[T]==1
assert T[0][0][0].astype('float16').dtype=='float16'
""",
    "rank zero": """
m=te.size_var('m')
A=te.placeholder((m,),name='A')
k=te.reduce_axis((0,m),'k')
T=te.compute((),lambda: te.sum(A[k]*2.0,axis=k))
assert tuple(T.shape)==()
""",
    "tensor slice": """
n=te.size_var('n')
A=te.compute((n,n),lambda i,j:1)
B=te.compute((n,),lambda i:A[0][i]+A[0][i])
""",
    "reduce combiner simplify": """
k=te.reduce_axis((0,10))
A=te.placeholder((10,))
e=te.sum(A[k],axis=k)
assert isinstance(e.combiner,tir.CommReducer) and e.axis[0].same_as(k) or e.axis[0].var.same_as(k.var)
""",
    "extern fields": """
m=te.size_var('m'); A=te.placeholder((m,),name='A')
def ext(ins,outs): assert isinstance(ins[0],tir.Buffer); return tir.call_packed('myadd',ins[0].data,outs[0].data,m)
B=te.extern((m,),[A],ext)
assert tuple(B.shape)==(m,)
assert isinstance(B.op,te.ExternOp)
assert len(B.op.input_tensors)==1
""",
    "compute attrs": """
A=te.placeholder((4,))
B=te.compute((4,),lambda i:A[i],attrs={'a':1,'b':'c'})
assert B.op.attrs['a']==1 and B.op.attrs['b']=='c'
""",
    "tag": """
A=te.placeholder((4,))
with tvm.te.tag_scope(tag='conv'): B=te.compute((4,),lambda i:A[i])
assert B.op.tag=='conv'; assert 'conv' in B.op.tag
""",
    "reduce_axis fields": """
k=te.reduce_axis((0,5),name='k')
assert k.var.name=='k' and k.dom.extent==5 and k.iter_type==2
""",
    "te create_schedule": """
A=te.placeholder((4,))
B=te.compute((4,),lambda i:A[i])
s=te.create_schedule(B.op)
assert s[B].op.same_as(B.op) and len(s.stages)==2 and s.outputs[0].same_as(B.op)
assert str(s)
""",
    "schedule split fields": """
A=te.placeholder((16,))
B=te.compute((16,),lambda i:A[i])
s=te.create_schedule(B.op)
xo,xi=s[B].split(B.op.axis[0],factor=4)
assert tuple(s[B].leaf_iter_vars)==(xo,xi)
""",
    "lower returns IRModule": """
A=te.placeholder((16,),name='A')
B=te.compute((16,),lambda i:A[i])
s=te.create_schedule(B.op)
m=tvm.lower(s,[A,B],name='f')
assert isinstance(m,tvm.IRModule) and 'f' in [g.name_hint for g in m.get_global_vars()] and m['f'].attrs['global_symbol']=='f'
str(m)
""",
    "lower primfunc": """
f=tir.PrimFunc([],tir.Evaluate(0)).with_attr('global_symbol','main')
m=tvm.lower(f)
assert isinstance(m,tvm.IRModule)
""",
    "get_source": """
A=te.placeholder((16,),name='A')
B=te.compute((16,),lambda i:A[i]*2.0)
s=te.create_schedule(B.op)
f=tvm.build(s,[A,B],'llvm',name='myadd')
assert 'myadd' in f.get_source()
assert f.get_source('asm')
""",
    "time_evaluator": """
A=te.placeholder((16,),name='A')
B=te.compute((16,),lambda i:A[i]*2.0)
s=te.create_schedule(B.op)
f=tvm.build(s,[A,B],'llvm')
a=tvm.nd.array(np.zeros(16,'float32'))
e=f.time_evaluator(f.entry_name,tvm.cpu(),number=2,repeat=2)
r=e(a,a)
assert len(r.results)==2 and r.mean>0 and r.min<=r.max and r.std>=0 and r.median>0
""",
    "export load": """
import tempfile,os
A=te.placeholder((16,),name='A')
B=te.compute((16,),lambda i:A[i]*2.0)
s=te.create_schedule(B.op)
f=tvm.build(s,[A,B],'llvm',name='a1')
d=tvm.contrib.utils.tempdir()
p=d.relpath('a.so')
f.export_library(p)
g=tvm.runtime.load_module(p)
a=tvm.nd.array(np.ones(16,'float32'))
b=tvm.nd.empty((16,))
g['a1'](a,b)
assert (b.numpy()==2).all()
""",
    "llvm bc": """
A=te.placeholder((16,),name='A')
B=te.compute((16,),lambda i:A[i]*2.0)
s=te.create_schedule(B.op)
f=tvm.build(s,[A,B],'llvm',name='a1')
d=tvm.contrib.utils.tempdir()
f.save(d.relpath('a.o'))
f.save(d.relpath('a.ll')); f.save(d.relpath('a.s'))
""",
    "packed func": """
f=tvm.runtime.convert(lambda *a: a[0])
assert isinstance(f,tvm.runtime.PackedFunc)
assert f(3)==3
""",
    "register get": """
@tvm.register_func('scr.f1')
def f1(x): return x+1
assert tvm.get_global_func('scr.f1')(1)==2
with pytest.raises(Exception): tvm.register_func('scr.f1',f1)
tvm.register_func('scr.f1',f1,override=True)
assert tvm.get_global_func('nope',allow_missing=True) is None
with pytest.raises(ValueError): tvm.get_global_func('nope')
""",
    "list names": """
from baton._ffi import registry
assert 'scr.f1' in registry.list_global_func_names() if tvm.get_global_func('scr.f1',True) else True
from baton._ffi.registry import remove_global_func
tvm.register_func('scr.rm',lambda: 1)
remove_global_func('scr.rm')
assert tvm.get_global_func('scr.rm',True) is None
""",
    "return func": """
def addy(y):
    def add(x): return tvm.runtime.convert(x+y)
    return add
f=tvm.runtime.convert(addy); assert f(10)(11)==21
""",
    "device": """
d=tvm.device('cpu',0)
assert d.device_type==1 and d.device_id==0 and str(d)=='cpu(0)' and d==tvm.cpu(0) and d.exist
assert tvm.device('cuda',1).device_type==2
assert tvm.device('llvm').device_type==1
""",
    "device attrs": """
d=tvm.cpu()
d.max_threads_per_block
d.warp_size
d.compute_version
d.sync()
""",
    "ndarray": """
a=tvm.nd.array(np.arange(6).reshape(2,3).astype('float32'))
assert a.shape==(2,3) and a.dtype=='float32' and a.device==tvm.cpu(0)
b=tvm.nd.empty((2,3))
a.copyto(b)
np.testing.assert_equal(a.numpy(),b.numpy())
a[:]=np.ones((2,3))
assert a.asnumpy().sum()==6
assert str(a.dtype)=='float32'
assert a.handle is not None
assert a.same_as(a)
""",
    "ndarray fp16": """
a=tvm.nd.array(np.ones((2,),'float16'))
assert a.dtype=='float16' and a.numpy().dtype==np.float16
""",
    "ndarray dlpack": """
a=tvm.nd.array(np.ones((2,),'float32'))
b=tvm.nd.from_dlpack(a.to_dlpack())
assert (b.numpy()==1).all()
""",
    "ndarray list": """
a=tvm.nd.array([1,2,3]); assert a.shape==(3,)
""",
    "ndarray numpyasarray": """
from baton.runtime.ndarray import NDArray, empty, array, cpu, numpyasarray
x,_,_ = numpyasarray(np.ones(3,'float32')) if isinstance(numpyasarray(np.ones(3,'float32')),tuple) else (1,2,3)
""",
    "string": """
s=tvm.runtime.String('a')
assert s=='a' and isinstance(s,str)
assert tvm.runtime.convert('b')=='b'
s=tvm.runtime.container.String('xy')
assert len(s)==2 and s.startswith('x')
""",
    "string echo": """
f=tvm.get_global_func('testing.echo')
assert f('s')=='s' and f(1)==1 and f(None) is None
""",
    "array containers": """
a=tvm.runtime.convert([1,2,3])
assert isinstance(a,tvm.container.Array)
assert tvm.ir.Array is not None and tvm.ir.container.Array is not None
assert str(a)=='[1, 2, 3]'
assert a==a
b=load_json(save_json(a))
assert b[1].value==2
""",
    "map str": """
m=tvm.runtime.convert({'a':1})
assert isinstance(m,tvm.container.Map) and m['a']==1
b=load_json(save_json(m))
assert b['a'].value==1
assert list(iter(m))==['a']
""",
    "make_node str": """
x=tvm.ir.make_node('tir.StringImm',value='xyz')
assert x.value=='xyz'
""",
    "attrs str": """
d=tvm.ir.make_node('DictAttrs',x=1); assert 'x' in str(d)
""",
    "env func": """
@tvm.register_func('scr.env')
def t(x): return x+1
f=tvm.ir.EnvFunc.get('scr.env')
assert f.name=='scr.env' and f(1)==2
g=load_json(save_json(f))
assert g.name=='scr.env' and g(1)==2 and f.func is not None
""",
    "structural hash": """
x=te.var('x')
y=te.var('y')
assert structural_hash(x+1)==structural_hash(x+1)
assert structural_equal(x+1,y+1,map_free_vars=True) and not structural_equal(x+1,y+1)
assert structural_hash(tir.Evaluate(x),map_free_vars=True)==structural_hash(tir.Evaluate(y),map_free_vars=True)
""",
    "assert_structural_equal": """
x=te.var('x')
with pytest.raises(ValueError): assert_structural_equal(x+1,x+2)
""",
    "structural primfunc": """
x=te.var('x')
y=te.var('y')
f0=tir.PrimFunc([x,y],tir.Evaluate(x+y))
f1=tir.PrimFunc([y,x],tir.Evaluate(y+x))
assert structural_equal(f0,f1)
f2=tir.PrimFunc([x,y],tir.Evaluate(y+x))
assert not structural_equal(f0,f2)
assert structural_hash(f0)==structural_hash(f1)
assert not structural_equal(f0,f0.with_attr('a',1))
""",
    "structural buffer store": """
b=tir.decl_buffer((10,))
i=te.var('i')
c=tir.decl_buffer((10,))
f=tir.PrimFunc([b],tir.BufferStore(b,tir.const(1.0),[0]))
g=tir.PrimFunc([c],tir.BufferStore(c,tir.const(1.0),[0]))
assert structural_equal(f,g)
""",
    "const node json": """
for v in (tir.const(3), tir.const(2.5), tir.StringImm('q')): assert structural_equal(load_json(save_json(v)),v)
""",
    "types symbolic": """
n=te.size_var('n')
t=tvm.ir.TensorType((n,3),'float32')
assert t.shape[0]==n
assert t.shape[1]==3
u=tvm.ir.TensorType((n,3),'float32')
assert t==u and structural_equal(t,u)
str(t)
""",
    "relay symbolic": """
n=te.size_var('n')
x=relay.var('x',relay.TensorType((n,4)))
f=relay.Function([x],relay.add(x,x))
m=tvm.IRModule.from_expr(f)
m=relay.transform.InferType()(m)
assert m['main'].ret_type==relay.TensorType((n,4))
assert m['main'].checked_type.ret_type.shape[0]==n
""",
    "relay symbolic mul": """
n=te.var('n')
c,h,w=te.var('c'),10,te.var('w')
x=relay.var('x',relay.TensorType((n,c,h,w),'float32'))
y=relay.nn.max_pool2d(x,pool_size=(2,2),strides=(2,2))
m=relay.transform.InferType()(tvm.IRModule.from_expr(y))
assert m['main'].ret_type.shape[0]==n
""",
    "type relation": """
f=tvm.ir.EnvFunc.get('tvm.relay.type_relation.Broadcast') if tvm.get_global_func('tvm.relay.type_relation.Broadcast',True) else None
tv=tvm.ir.TypeVar('a')
r=tvm.ir.TypeRelation(None,[tv],1,None)
assert r.num_inputs==1
""",
    "irmodule": """
x=relay.var('x',shape=(2,))
f=relay.Function([x],x)
m=tvm.IRModule()
m['main']=f
g=m.get_global_var('main')
assert m[g]==m['main'] or structural_equal(m[g],m['main'])
m.update({g:f})
assert len(m.functions)==1
m2=tvm.IRModule({'f':f})
m.update(m2)
assert 'f' in m.astext()
""",
    "get_global_vars error": """
m=tvm.IRModule({})
with pytest.raises(Exception): m.get_global_var('nope')
with pytest.raises(Exception): m['nope']
""",
    "op": """
o=tvm.ir.Op.get('add')
assert o.name=='add'
o.get_attr('FTVMStrategy')
with pytest.raises(Exception): tvm.ir.Op.get('nope.nope')
""",
    "register_op_attr": """
@tvm.ir.register_op_attr('tir.exp','scr.attr')
def fa(x): return x+1
assert tvm.ir.Op.get('tir.exp').get_attr('scr.attr')(1)==2
""",
    "span": """
s=tvm.ir.Span(tvm.ir.SourceName('a'),1,2,3,4)
assert s.line==1 and s.end_line==2 and s.column==3 and s.end_column==4 and s.source_name.name=='a'
""",
    "passcontext errors": """
with pytest.raises(AttributeError): tvm.transform.PassContext(config={'nope.nope':1})
with pytest.raises(tvm.error.TVMError): tvm.transform.PassContext(config={'tir.UnrollLoop':1})
with pytest.raises(TypeError): tvm.transform.PassContext(required_pass=1)
""",
    "target basics": """
t=tvm.target.Target('llvm')
assert t.kind.name=='llvm' and str(t).startswith('llvm') and 'cpu' in t.keys
t=tvm.target.Target('llvm -mcpu=skylake')
assert t.mcpu=='skylake' and t.attrs['mcpu']=='skylake'
""",
    "target attrs": """
t=tvm.target.Target('llvm -device=arm_cpu -keys=a,b -libs=cblas')
assert t.device_name=='arm_cpu' and 'cblas' in t.libs and 'a' in t.keys
""",
    "target dict": """
t=tvm.target.Target({'kind':'llvm','mcpu':'skylake','keys':['cpu']})
assert t.kind.name=='llvm' and t.mcpu=='skylake'
assert t.export()['kind']=='llvm'
""",
    "target scope": """
with tvm.target.Target('llvm') as t: assert tvm.target.Target.current().kind.name=='llvm'
assert tvm.target.Target.current(allow_none=True) is None
with pytest.raises(Exception): tvm.target.Target.current(allow_none=False)
""",
    "target host": """
t=tvm.target.Target('cuda',host='llvm')
assert t.host.kind.name=='llvm'
t=tvm.target.Target({'kind':'cuda','host':{'kind':'llvm'}})
assert t.host.kind.name=='llvm'
""",
    "target errors": """
for bad in ('nope','llvm -nope=1',{'kind':'nope'}):
    with pytest.raises((ValueError,tvm.TVMError)): tvm.target.Target(bad)
""",
    "target tags": """
assert len(tvm.target.list_tags() or {})>=1
""",
    "target equality": """
assert str(tvm.target.Target('llvm'))==str(tvm.target.Target('llvm'))
assert structural_equal(tvm.target.Target('llvm'),tvm.target.Target('llvm'))
t=load_json(save_json(tvm.target.Target('llvm -mcpu=skylake')))
assert t.mcpu=='skylake'
""",
    "target pickle": """
import pickle
t=pickle.loads(pickle.dumps(tvm.target.Target('llvm')))
assert t.kind.name=='llvm'
""",
    "generic func": """
@tvm.target.generic_func
def f(x): return x+1
@f.register('cuda')
def _c(x): return x+2
@f.register(['llvm','cpu'])
def _l(x): return x+3
assert f(1)==2
with tvm.target.Target('llvm'): assert f(1)==4
with tvm.target.Target('cuda'): assert f(1)==3
""",
    "override native": """
@tvm.target.override_native_generic_func('scr.gf')
def g(x): return x
@g.register('llvm')
def _(x): return x*10
with tvm.target.Target('llvm'): assert g(2)==20
""",
    "GenericFunc": """
gf=tvm.target.get_native_generic_func('scr.gf2')
gf.set_default(lambda x: x)
gf.register(lambda x: x+1,['llvm'])
with tvm.target.Target('llvm'): assert gf(1)==2
""",
    "intrin rule": """
from baton.ir import register_intrin_lowering
register_intrin_lowering('tir.scr_mylog','llvm',f=lambda op: tir.log(op.args[0]))
A=te.placeholder((4,))
B=te.compute((4,),lambda i: tir.call_intrin('float32','tir.scr_mylog',A[i]))
f=tvm.build(te.create_schedule(B.op),[A,B],'llvm')
b=tvm.nd.empty((4,))
f(tvm.nd.array(np.ones(4,'float32')),b)
assert (b.numpy()==0).all()
""",
    "testing allclose": """
tvm.testing.assert_allclose(np.ones(3),np.ones(3)+1e-9)
with pytest.raises(AssertionError): tvm.testing.assert_allclose(np.ones(3),np.zeros(3))
""",
    "testing grads": """
tvm.testing.check_numerical_grads(lambda x: float((x**2).sum()),[np.array([1.0,2.0])],[np.array([2.0,4.0])])
""",
    "testing targets": """
ts=tvm.testing.enabled_targets()
assert any(t=='llvm' for t,_ in ts)
assert tvm.testing.device_enabled('llvm')
""",
    "testing bool": """
x=te.var('x')
y=te.var('y')
tvm.testing.check_bool_expr_is_true(x+y<x+y+1,{x:tvm.ir.Range(0,5),y:tvm.ir.Range(0,5)})
""",
    "testing constraints": """
x=te.var('x')
y=te.var('y')
s=arith.solve_linear_equations([tir.EQ(x+y,10)],[x,y],{x:tvm.ir.Range(0,11),y:tvm.ir.Range(0,11)})
tvm.testing.check_int_constraints_trans_consistency(s)
""",
    "support": """
i=tvm.support.libinfo()
assert 'LLVM_VERSION' in i or 'USE_LLVM' in i
tvm.support.FrontendTestModule
m=tvm.support.FrontendTestModule()
m.add_function('f',lambda x: x+1)
assert m['f'](1)==2
""",
    "contrib clang": """
from baton.contrib import clang
clang.find_clang(required=False)
""",
    "contrib tar": """
from baton.contrib import tar
d=tvm.contrib.utils.tempdir()
open(d.relpath('a.o'),'w').write('1')
tar.tar(d.relpath('a.tar'),[d.relpath('a.o')])
t=d.relpath('out')
tar.untar(d.relpath('a.tar'),t)
import os
assert os.listdir(t)
""",
    "contrib pickle": """
from baton.contrib.pickle_memoize import memoize
@memoize('scr.memo', save_at_exit=False)
def g(): return 3
assert g()==3
""",
    "contrib sparse": """
from baton.contrib import sparse
a=np.array([[0,1.0],[2.0,0]],'float32')
s=sparse.array(a,device=tvm.cpu())
assert (s.numpy()==a).all()
n=te.var('n')
p=sparse.placeholder((n,3),name='p')
assert p.stype=='csr'
""",
    "contrib random": """
from baton.contrib import random
r=random.uniform(0,1,(4,))
f=tvm.build(te.create_schedule(r.op),[r],'llvm')
b=tvm.nd.empty((4,))
f(b)
assert (b.numpy()<=1).all()
""",
    "contrib cblas": """
from baton.contrib import cblas
A=te.placeholder((3,4))
B=te.placeholder((4,5))
C=cblas.matmul(A,B)
f=tvm.build(te.create_schedule(C.op),[A,B,C],'llvm')
c=tvm.nd.empty((3,5))
f(tvm.nd.array(np.ones((3,4),'float32')),tvm.nd.array(np.ones((4,5),'float32')),c)
assert (c.numpy()==4).all()
""",
    "contrib rpc names": """
from baton.contrib import graph_executor, debugger
from baton.contrib.debugger import debug_executor
graph_executor.create
graph_executor.GraphModule
""",
    "vm names": """
from baton.runtime.vm import VirtualMachine, Executable
from baton.runtime import vm
vm.VirtualMachine
""",
    "csource": """
m=tvm.get_global_func('runtime.CSourceModuleCreate')('int f(){return 0;}','c',['f'],[])
assert m.type_key=='c' and 'int f' in m.get_source()
assert isinstance(m,tvm.runtime.Module)
""",
    "csource api": """
m=tvm.runtime._ffi_api.CSourceModuleCreate('int f(int x){return x;}','cc',['f'],[])
assert m.type_key=='c'
d=tvm.contrib.utils.tempdir()
m.save(d.relpath('m.cc'),'cc')
assert 'int f' in open(d.relpath('m.cc')).read()
""",
    "enabled": """
assert tvm.runtime.enabled('llvm') and tvm.runtime.enabled('cpu')
assert not tvm.runtime.enabled('nope')
""",
    "driver build dict": """
A=te.placeholder((4,),name='A')
B=te.compute((4,),lambda i:A[i]+1.0)
s=te.create_schedule(B.op)
m=tvm.lower(s,[A,B],name='f')
lib=tvm.build({'llvm':m})
assert lib['f']
lib=tvm.build(m,target='llvm')
lib=tvm.driver.build(m,target='llvm')
m2=tvm.driver.lower(s,[A,B])
""",
    "build target obj host": """
A=te.placeholder((4,),name='A')
B=te.compute((4,),lambda i:A[i]+1.0)
s=te.create_schedule(B.op)
tvm.build(s,[A,B],tvm.target.Target('llvm'),'llvm')
tvm.build(s,[A,B],target='llvm',target_host='llvm')
""",
    "build errors": """
A=te.placeholder((4,),name='A')
B=te.compute((4,),lambda i:A[i]+1.0)
s=te.create_schedule(B.op)
f=tvm.build(s,[A,B],'llvm')
with pytest.raises(tvm.TVMError): f(tvm.nd.empty((5,)),tvm.nd.empty((4,)))
with pytest.raises(tvm.TVMError): f(tvm.nd.empty((4,),'int32'),tvm.nd.empty((4,)))
with pytest.raises(tvm.TVMError): f(tvm.nd.empty((4,)))
with pytest.raises(AttributeError): f['nope']
""",
    "binds": """
A=te.placeholder((4,),name='A')
B=te.compute((4,),lambda i:A[i]+1.0)
s=te.create_schedule(B.op)
Ab=tir.decl_buffer(A.shape,A.dtype,name='Ab')
m=tvm.lower(s,[A,B],binds={A:Ab})
assert m
""",
    "te gradient": """
x=te.placeholder((3,))
y=te.compute((3,),lambda i:x[i]*x[i])
g=te.gradient(y,[x])
assert len(g)==1
""",
    "gemm sym": """
n=te.var('n')
m=te.var('m')
l=te.var('l')
A=te.placeholder((n,l))
B=te.placeholder((l,m))
k=te.reduce_axis((0,l))
C=te.compute((n,m),lambda i,j: te.sum(A[i,k]*B[k,j],axis=k))
s=te.create_schedule(C.op)
xo,yo,xi,yi=s[C].tile(C.op.axis[0],C.op.axis[1],4,4)
ko,ki=s[C].split(k,factor=2)
s[C].reorder(xo,yo,ko,xi,ki,yi)
s[C].unroll(ki)
f=tvm.build(s,[A,B,C],'llvm')
a=np.random.rand(5,7).astype('float32')
b=np.random.rand(7,9).astype('float32')
c=tvm.nd.empty((5,9))
f(tvm.nd.array(a),tvm.nd.array(b),c)
np.testing.assert_allclose(c.numpy(),a@b,rtol=1e-5)
""",
    "cache_write read": """
A=te.placeholder((16,))
B=te.compute((16,),lambda i:A[i]*2.0)
s=te.create_schedule(B.op)
AA=s.cache_read(A,'local',[B])
BB=s.cache_write(B,'local')
f=tvm.build(s,[A,B],'llvm')
b=tvm.nd.empty((16,))
f(tvm.nd.array(np.ones(16,'float32')),b)
assert (b.numpy()==2).all()
""",
    "scan sym": """
m=te.var('m')
n=te.var('n')
X=te.placeholder((m,n))
st=te.placeholder((m,n))
i0=te.compute((1,n),lambda _,i:X[0,i])
up=te.compute((m,n),lambda t,i: st[t-1,i]+X[t,i])
r=te.scan(i0,up,st,inputs=[X])
f=tvm.build(te.create_schedule(r.op),[X,r],'llvm')
a=np.random.rand(4,3).astype('float32')
c=tvm.nd.empty((4,3))
f(tvm.nd.array(a),c)
np.testing.assert_allclose(c.numpy(),np.cumsum(a,0),rtol=1e-5)
""",
    "compute int idx math": """
n=te.var('n')
C=te.compute((n,),lambda i: (i*3+1)%4)
f=tvm.build(te.create_schedule(C.op),[C],'llvm')
c=tvm.nd.empty((6,),'int32')
f(c)
assert c.numpy().tolist()==[(i*3+1)%4 for i in range(6)]
""",
    "select idx": """
A=te.placeholder((8,))
C=te.compute((8,),lambda i: tir.if_then_else(tir.all(i>=1,i<7),A[i-1]+A[i+1],0.0))
f=tvm.build(te.create_schedule(C.op),[A,C],'llvm')
c=tvm.nd.empty((8,))
f(tvm.nd.array(np.arange(8,dtype='float32')),c)
assert c.numpy().tolist()==[0,2,4,6,8,10,12,0]
""",
    "indirect index": """
A=te.placeholder((8,))
I=te.placeholder((4,),dtype='int32')
C=te.compute((4,),lambda i:A[I[i]])
f=tvm.build(te.create_schedule(C.op),[A,I,C],'llvm')
c=tvm.nd.empty((4,))
f(tvm.nd.array(np.arange(8,dtype='float32')),tvm.nd.array(np.array([3,1,0,7],'int32')),c)
assert c.numpy().tolist()==[3,1,0,7]
""",
    "scalar params": """
n=te.var('n')
a=te.var('a','float32')
A=te.placeholder((n,))
C=te.compute((n,),lambda i:A[i]*a+n.astype('float32'))
f=tvm.build(te.create_schedule(C.op),[A,a,C,n],'llvm')
c=tvm.nd.empty((3,))
f(tvm.nd.array(np.ones(3,'float32')),2.0,c,3)
assert c.numpy().tolist()==[5,5,5]
""",
    "int arith semantics": """
A=te.placeholder((6,),dtype='int32')
B=te.compute((6,),lambda i: tir.floordiv(A[i],3)*10+tir.truncmod(A[i],3))
f=tvm.build(te.create_schedule(B.op),[A,B],'llvm')
b=tvm.nd.empty((6,),'int32')
x=np.array([-4,-3,-1,1,4,5],'int32')
f(tvm.nd.array(x),b)
assert b.numpy().tolist()==[int(np.floor(v/3))*10+int(np.fmod(v,3)) for v in x]
""",
    "te var default": """
assert te.var('n').dtype=='int32'
assert te.size_var('m').dtype=='int32'
assert te.var('n','int64').dtype=='int64'
assert te.var().name=='tindex'
assert te.size_var().name=='size'
""",
    "for ranges of ints": """
i=te.var('i')
f=tir.For(i,0,10,0,tir.Evaluate(i))
assert f.min.dtype=='int32' and f.extent.dtype=='int32'
""",
    "ib index dtype": """
ib=tir.ir_builder.create()
A=ib.pointer('float32',name='A')
with ib.for_range(0,10) as i: A[i]=1.0
s=ib.get()
assert s.loop_var.dtype=='int32' and s.body.index.same_as(s.loop_var)
""",
    "ib for dtype": """
ib=tir.ir_builder.create()
with ib.for_range(0,10,dtype='int64') as i: ib.emit(tir.Evaluate(i))
assert ib.get().loop_var.dtype=='int64'
""",
    "comparison int64 int32": """
x=te.var('x','int32')
y=te.var('y','int64')
e=x<y
assert e.a.dtype=='int64' and isinstance(e.a,tir.Cast)
""",
    "literal takes dtype": """
y=te.var('y','int64')
assert (y+1).b.dtype=='int64'
z=te.var('z','int8')
assert (z*2).dtype=='int8'
""",
    "unroll writes literals": """
A=tir.decl_buffer((4,),'int32','A')
i=te.var('i')
f=tir.PrimFunc([A],tir.For(i,0,4,tir.ForKind.UNROLLED,tir.BufferStore(A,i,[i])))
s=tir.transform.UnrollLoop()(tvm.IRModule({'main':f}))['main'].body
assert len(s)==4 and [int(x.value) for x in s.seq]==[0,1,2,3] and s[2].value.dtype=='int32' and s[2].indices[0]==2
""",
    "vectorize ramp of int32": """
A=tir.decl_buffer((16,),'float32','A')
i=te.var('i')
f=tir.PrimFunc([A],tir.For(i,0,16,tir.ForKind.VECTORIZED,tir.BufferStore(A,tir.BufferLoad(A,[i])+1.0,[i])))
s=tir.transform.VectorizeLoop()(tvm.IRModule({'main':f}))['main'].body
assert s.index.lanes==16 and s.index.dtype=='int32x16' and s.value.dtype=='float32x16'
""",
    "partition": """
n=te.var('n')
A=tir.decl_buffer((n,),'float32','A')
i=te.var('i')
f=tir.PrimFunc([A,n],tir.For(i,0,20,0,tir.IfThenElse(tir.likely(i<n),tir.BufferStore(A,tir.const(1.0),[i]))))
m=tir.transform.LoopPartition()(tvm.IRModule({'main':f}))
assert tir.analysis.verify_well_formed(m['main'])
""",
    "cse": """
x,y=te.var('x'),te.var('y')
A=tir.decl_buffer((100,),'int32','A')
f=tir.PrimFunc([A,x,y],tir.SeqStmt([tir.BufferStore(A,x*y+1,[x*y]),tir.BufferStore(A,x*y+2,[x*y+3])]))
b=tir.transform.CommonSubexprElimTIR()(tvm.IRModule({'main':f}))['main'].body
assert isinstance(b,tir.LetStmt) and structural_equal(b.value,x*y) and b.var.name.startswith('cse_var')
assert b.body[0].indices[0].same_as(b.var)
""",
    "cse off and none": """
x=te.var('x')
A=tir.decl_buffer((100,),'int32','A')
f=tir.PrimFunc([A,x],tir.BufferStore(A,x+1,[x]))
m=tvm.IRModule({'main':f})
assert structural_equal(tir.transform.CommonSubexprElimTIR()(m),m)
g=tir.PrimFunc([A,x],tir.BufferStore(A,x*2+1,[x*2]))
m=tvm.IRModule({'main':g})
assert structural_equal(tir.transform.CommonSubexprElimTIR(enable_cse_tir=False)(m),m)
""",
    "cse within loops": """
x=te.var('x')
i=te.var('i')
A=tir.decl_buffer((100,),'int32','A')
f=tir.PrimFunc([A,x],tir.For(i,0,4,0,tir.BufferStore(A,(i*x)+(i*x)*2,[i*x])))
b=tir.transform.CommonSubexprElimTIR()(tvm.IRModule({'main':f}))['main']
assert isinstance(b.body,tir.For) and isinstance(b.body.body,tir.LetStmt)
a=tvm.nd.array(np.zeros(100,'int32'))
tvm.build(b,target='llvm')(a,3)
assert a.numpy()[:10].tolist()==[0,0,0,9,0,0,18,0,0,27]
""",
    "workspace": """
p=tir.Var('p',tvm.ir.PointerType(tvm.ir.PrimType('float32')))
f=tir.PrimFunc([],tir.Allocate(p,'float32',[10],tir.const(1,'uint1'),tir.Evaluate(0)))
assert tir.analysis.calculate_workspace_bytes(f,1)==40 and tir.analysis.calculate_workspace_bytes(f,64)==64
""",
    "lca of loops": """
A=tir.decl_buffer((4,4))
B=tir.decl_buffer((4,))
i,j=te.var('i'),te.var('j')
inner=tir.For(j,0,4,0,tir.BufferStore(A,tir.const(1.0),[i,j]))
outer=tir.For(i,0,4,0,tir.SeqStmt([inner,tir.BufferStore(B,tir.const(1.0),[i])]))
l=tir.analysis.detect_buffer_access_lca(tir.PrimFunc([A,B],outer))
assert l[A].same_as(inner) and l[B].same_as(outer)
""",
    "domain touched of stores": """
n=te.var('n')
i=te.var('i')
A=tir.decl_buffer((n,))
B=tir.decl_buffer((n,))
f=tir.For(i,0,10,0,tir.BufferStore(A,tir.BufferLoad(B,[i+2]),[i]))
r=tvm.arith._ffi_api.DomainTouched(f,A,False,True)
assert r[0].min==0 and r[0].extent==10
r=tvm.arith._ffi_api.DomainTouched(f,B,True,False)
assert r[0].min==2 and r[0].extent==10
assert len(tvm.arith._ffi_api.DomainTouched(f,B,False,True))==0
""",
    "strided parameter is refused": """
A=tir.decl_buffer((3,4),'float32','A',strides=[8,1])
f=tir.PrimFunc([A],tir.BufferStore(A,tir.const(1.0),[0,0]))
with pytest.raises(tvm.error.UnsupportedError,match='strides'): tvm.build(f,target='llvm')
""",
    "predicate of store is refused": """
p=tir.Var('p',tvm.ir.PointerType(tvm.ir.PrimType('float32')))
with pytest.raises(tvm.error.UnsupportedError): tir.Store(p,1.0,0,te.var('b','bool'))
""",
    "relation of none": """
t=relay.TensorType((2,))
r=relay.ty.TypeRelation(None,[t,t],1,None)
assert r.func is None and r.num_inputs==1 and list(r.args)==[t,t]
assert structural_equal(load_json(save_json(r)),r)
""",
    "relay dims of vars": """
n=te.var('n')
x=relay.var('x',shape=(n,3))
y=relay.var('y',shape=(n,3))
f=relay.Function([x,y],x+y)
m=relay.transform.InferType()(tvm.IRModule.from_expr(f))
assert m['main'].ret_type.shape[0]==n and m['main'].params[0].checked_type==m['main'].params[1].checked_type
""",
    "relay dims run": """
n=te.size_var('n')
x=relay.var('x',shape=(n,3))
f=relay.Function([x],relay.nn.relu(x))
m=tvm.IRModule.from_expr(f)
r=relay.create_executor('vm',mod=m,device=tvm.cpu(),target='llvm').evaluate()(np.array([[-1,2,3]],'float32'))
assert r.numpy().tolist()==[[0,2,3]]
""",
    "relay dims arithmetic": """
n=te.var('n')
t=relay.TensorType((n*2,n+1))
u=relay.TensorType((n*2,n+1))
assert t==u and structural_equal(t,u)
""",
    "global var call": """
g=tvm.ir.GlobalVar('f')
c=g(1,te.var('x'))
assert isinstance(c,tir.Call) and c.op.same_as(g) and c.args[0].value==1
r=g(relay.var('x'))
assert isinstance(r,relay.Call)
""",
    "generic func by function first": """
gf=tvm.target.get_native_generic_func('users.first')
gf.set_default(lambda x: x)
gf.register(lambda x: x+1,['llvm'])
assert gf(1)==1
with tvm.target.Target('llvm'): assert gf(1)==2
""",
    "csource kinds": """
m=tvm.get_global_func('runtime.CSourceModuleCreate')('int f() { return 0; }','c',['f'],[])
assert m.type_key=='c' and m.get_source()=='int f() { return 0; }'
d=baton.contrib.utils.tempdir() if False else tvm.contrib.utils.tempdir()
m.save(d.relpath('a.c'),'c')
assert open(d.relpath('a.c')).read()==m.get_source()
""",
    "csource cc built": """
import ctypes
from baton.contrib import cc
m=tvm.get_global_func('runtime.CSourceModuleCreate')('extern "C" int f(int x) { return x + 1; }','cc',['f'],[])
d=tvm.contrib.utils.tempdir()
m.save(d.relpath('a.cc'),'cc')
cc.create_shared(d.relpath('a.so'),[d.relpath('a.cc')])
assert ctypes.CDLL(d.relpath('a.so')).f(1)==2
""",
    "config names": """
names=tvm.transform.PassContext.list_configs()
assert {'tir.noalias','tir.disable_vectorize','tir.UnrollLoop','relay.FuseOps.max_depth'}<=set(names)
""",
    "disabled by tir name": """
f=tir.PrimFunc([],tir.For(te.var('i'),0,4,tir.ForKind.UNROLLED,tir.Evaluate(tir.call_extern('int32','f',1))))
with tvm.transform.PassContext(disabled_pass=['tir.UnrollLoop']): m=tvm.transform.Sequential([tir.transform.UnrollLoop()])(tvm.IRModule({'main':f}))
""",
    "intset text": """
x=te.var('x')
s=arith.Analyzer().int_set(x+1,{x:arith.IntervalSet(0,9)})
assert str(s)=='IntervalSet[1, 10]'
assert str(tvm.ir.Range(0,4))=='range(min=0, ext=4)'
""",
    "itervar text": """
assert str(te.reduce_axis((0,4),'k'))=='iter_var(k, range(min=0, ext=4))'
assert 'threadIdx.x' in str(te.thread_axis((0,32),'threadIdx.x'))
""",
    "numbers beside tensors": """
A=te.placeholder((4,))
C=topi.add(topi.multiply(2,A),1)
f=tvm.build(te.create_schedule(C.op),[A,C],'llvm')
c=tvm.nd.empty((4,))
f(tvm.nd.array(np.arange(4,dtype='float32')),c)
assert c.numpy().tolist()==[1,3,5,7]
assert topi.greater(A,0).dtype=='bool'
assert topi.add(te.placeholder((2,),'int32'),3).dtype=='int32'
""",
    "one hot of literals": """
I=te.placeholder((3,),dtype='int32')
O=topi.one_hot(I,tir.const(1,'int32'),tir.const(0,'int32'),5,-1,'int32')
assert tuple(int(d) for d in O.shape)==(3,5)
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
