# SPDX-License-Identifier: Apache-2.0
"""Paths and names of Relay's time, and where they lead. `PACKAGES` has the packages and modules that moved, with all below them; `MODULES` the modules
that are known by another path; `NAMES` the names that a module shows and does not have; `ABSENT` the modules that do not exist here."""

# Path that a package or module had -> where it is, with all below it.
PACKAGES = {
    "baton.compat": "baton.tvm",
    "baton.contrib.clang": "baton.tvm.contrib.clang",
    "baton.contrib.cuda_graph": "baton.tvm.contrib.cuda_graph",
    "baton.contrib.debugger": "baton.tvm.contrib.debugger",
    "baton.contrib.dlpack": "baton.tvm.contrib.dlpack",
    "baton.contrib.download": "baton.tvm.contrib.download",
    "baton.contrib.graph_executor": "baton.tvm.contrib.graph_executor",
    "baton.contrib.ndk": "baton.tvm.contrib.ndk",
    "baton.contrib.pickle_memoize": "baton.tvm.contrib.pickle_memoize",
    "baton.contrib.popen_pool": "baton.tvm.contrib.popen_pool",
    "baton.contrib.popen_worker": "baton.tvm.contrib.popen_worker",
    "baton.contrib.sparse": "baton.tvm.contrib.sparse",
    "baton.contrib.utils": "baton.tvm.contrib.utils",
    "baton.relay.annotated_regions": "baton.tvm.annotated_regions",
    "baton.relay.data_dep_optimization": "baton.tvm.data_dep_optimization",
    "baton.relay.quantize": "baton.tvm.quantize",
    "baton.relay.testing": "baton.tvm.relay_testing",
    "baton.tir.absent": "baton.tvm.tir_absent",
    "baton.topi": "baton.tvm.topi",
}

# Path of a module -> the module.
MODULES = {
    "baton._ffi.libinfo": "baton.tvm.libinfo",
    "baton._ffi.object_generic": "baton.runtime.object",
    "baton._ffi.runtime_ctypes": "baton.tvm.runtime_ctypes",
    "baton.arith._ffi_api": "baton.tvm.ffi_apis",
    "baton.arith.pattern": "baton.arith.bound",
    "baton.compat.type_keys": "baton.ir.attrs",
    "baton.container": "baton.runtime.container",
    "baton.contrib.cblas": "baton.tvm.cblas",
    "baton.contrib.debugger.debug_runtime": "baton.tvm.contrib.debugger.debug_executor",
    "baton.contrib.dnnl": "baton.tvm.cblas",
    "baton.contrib.graph_runtime": "baton.tvm.contrib.graph_executor",
    "baton.contrib.mkl": "baton.tvm.cblas",
    "baton.contrib.mkldnn": "baton.tvm.cblas",
    "baton.contrib.nvcc": "baton.tvm.nvcc",
    "baton.contrib.pipeline_executor": "baton.tvm.pipeline_executor",
    "baton.contrib.random": "baton.tvm.contrib_random",
    "baton.contrib.util": "baton.tvm.contrib.utils",
    "baton.ir.adt": "baton.relay.adt",
    "baton.ir.affine_type": "baton.ir",
    "baton.ir.container": "baton.runtime.container",
    "baton.ir._ffi_instrument_api": "baton.tvm.ffi_apis",
    "baton.ir._ffi_transform_api": "baton.tvm.ffi_apis",
    "baton.ir.json_compact": "baton.ir.json_upgrade",
    "baton.module": "baton.runtime.module",
    "baton.ndarray": "baton.runtime.ndarray",
    "baton.parser": "baton.relay.parser",
    "baton.relay.analysis.analysis": "baton.relay.analysis",
    "baton.relay.analysis.annotated_regions": "baton.tvm.annotated_regions",
    "baton.relay.analysis.call_graph": "baton.relay.call_graph",
    "baton.relay.analysis.sparse_dense": "baton.tvm.sparse_dense",
    "baton.relay.analysis._ffi_api": "baton.tvm.relay_analysis_api",
    "baton.relay._build_module": "baton.tvm.relay_backend",
    "baton.relay._ffi_api": "baton.tvm.relay_backend",
    "baton.relay._make": "baton.relay.op",
    "baton.relay.backend._aot": "baton.tvm.relay_backend",
    "baton.relay.backend._backend": "baton.tvm.relay_backend",
    "baton.relay.backend._vm": "baton.tvm.relay_backend",
    "baton.relay.backend.runtime": "baton.tvm.backend_options",
    "baton.relay.backend.compile_engine": "baton.driver.te_compiler",
    "baton.relay.backend.executor": "baton.driver.executors",
    "baton.relay.backend.executor_factory": "baton.tvm.executor_factory",
    "baton.relay.backend.graph_executor_codegen": "baton.driver.graph_executor_codegen",
    "baton.relay.backend.graph_runtime_codegen": "baton.driver.graph_executor_codegen",
    "baton.relay.backend.name_transforms": "baton.tvm.name_transforms",
    "baton.relay.backend.options": "baton.tvm.backend_options",
    "baton.relay.backend.te_compiler": "baton.driver.te_compiler",
    "baton.relay.backend.utils": "baton.tvm.backend_utils",
    "baton.relay.backend.vm": "baton.driver.vm",
    "baton.relay.build_module": "baton.driver.relay_build",
    "baton.relay.feature": "baton.relay.analysis",
    "baton.relay.frontend.change_datatype": "baton.tvm.change_datatype",
    "baton.relay.frontend.common": "baton.tvm.frontend_common",
    "baton.relay.op._make": "baton.relay.op",
    "baton.relay.op._reduce": "baton.relay.op",
    "baton.relay.op._tensor": "baton.relay.op",
    "baton.relay.op._transform": "baton.relay.op",
    "baton.relay.op.algorithm": "baton.relay.op",
    "baton.relay.op.reduce": "baton.relay.op",
    "baton.relay.op.strategy": "baton.tvm.op_strategy",
    "baton.relay.op.tensor": "baton.relay.op",
    "baton.relay.op.transform": "baton.relay.op",
    "baton.relay.param_dict": "baton.runtime.params",
    "baton.rpc.client": "baton.rpc",
    "baton.rpc.minrpc": "baton.rpc",
    "baton.relay.qnn.op.layout_conversions": "baton.relay.qnn.op",
    "baton.relay.qnn.op.legalizations": "baton.relay.qnn.op",
    "baton.relay.qnn.op.qnn": "baton.relay.qnn.op",
    "baton.relay.testing.byoc": "baton.tvm.byoc",
    "baton.relay.transform.fake_quantization_to_integer": "baton.relay.op",
    "baton.relay.transform.infer_layout_utils": "baton.tvm.infer_layout_utils",
    "baton.relay.transform.mixed_precision": "baton.tvm.mixed_precision",
    "baton.relay.vm": "baton.driver.vm",
    "baton.runtime._ffi_api": "baton.tvm.ffi_apis",
    "baton.runtime._ffi_node_api": "baton.tvm.ffi_apis",
    "baton.runtime.object_generic": "baton.runtime.object",
    "baton.support": "baton.tvm.support",
    "baton.target.tag": "baton.target",
    "baton.te.tag": "baton.te.operation",
    "baton.testing._ffi_api": "baton.testing",
    "baton.testing.popen_pool": "baton.testing",
    "baton.testing.utils": "baton.testing",
    "baton.tir.generic": "baton.tvm.tir_generic",
    "baton.topi.arm_cpu": "baton.tvm.topi_targets",
    "baton.topi.bifrost": "baton.tvm.topi_targets",
    "baton.topi.broadcast": "baton.tvm.topi",
    "baton.topi.cuda": "baton.tvm.topi_targets",
    "baton.topi.cuda.conv2d_nhwc_winograd": "baton.tvm.topi_winograd_tiles",
    "baton.topi.cuda.conv2d_winograd": "baton.tvm.topi_winograd_tiles",
    "baton.topi.cuda.conv3d_winograd": "baton.tvm.topi_winograd_tiles",
    "baton.topi.generic": "baton.tvm.topi_targets",
    "baton.topi.hexagon": "baton.tvm.topi_targets",
    "baton.topi.hls": "baton.tvm.topi_targets",
    "baton.topi.intel_graphics": "baton.tvm.topi_targets",
    "baton.topi.mali": "baton.tvm.topi_targets",
    "baton.topi.math": "baton.tvm.topi",
    "baton.topi.nn.qnn": "baton.tvm.topi_qnn",
    "baton.topi.nn.utils": "baton.tvm.topi_nn_utils",
    "baton.topi.nn.winograd_util": "baton.tvm.topi_winograd",
    "baton.topi.reduction": "baton.tvm.topi",
    "baton.topi.rocm": "baton.tvm.topi_targets",
    "baton.topi.sparse.utils": "baton.tvm.topi_sparse_utils",
    "baton.topi.tensor": "baton.tvm.topi",
    "baton.topi.transform": "baton.tvm.topi",
    "baton.topi.vision.rcnn": "baton.tvm.topi_vision",
    "baton.topi.vision.ssd": "baton.tvm.topi_vision",
    "baton.topi.x86": "baton.tvm.topi_targets",
}

# Package -> its names that `baton` has too: the package had them itself before 0.7.
OF_THE_PACKAGE = {
    "baton.te": "comm_reducer compute create_schedule decl_tensor_intrin extern gradient hybrid max min placeholder prod reduce_axis scan schedule size_var sum tag_scope tensor "
    "tensor_intrin thread_axis var",
    "baton.tir": "abs acos acosh all any asin asinh atan atan2 atanh call_extern call_intrin call_packed ceil const cos cosh decl_buffer "
    "div erf exp exp10 exp2 floor floordiv floormod fmod hypot if_then_else indexdiv indexmod ir_builder isfinite isinf isnan ldexp "
    "likely log log10 log1p log2 max_value min_value nearbyint nextafter popcount power q_multiply_shift round rsqrt sigmoid sin sinh sqrt tan tanh "
    "trace trunc truncdiv truncmod",
}

# Module -> name -> "module:name" of what it is, or the path of a module.
NAMES = {
    "baton": {
        "context": "baton.tvm.names:context",
        "cl": "baton.runtime.devices:opencl",
        "expr": "baton.tir",
        "gpu": "baton.runtime.devices:cuda",
        "module": "baton.runtime.module",
        "mtl": "baton.runtime.devices:metal",
        "pow": "baton.tir:power",
        "select": "baton.tir:Select",
        "stmt": "baton.tir",
    },
    "baton.runtime.module": {"load": "baton.runtime.module:load_module"},
    "baton._ffi.base": {
        "__version__": "baton:__version__",
        "c_str": "baton.tvm.ffi_base:c_str",
        "integer_types": "baton.tvm.ffi_base:integer_types",
        "numeric_types": "baton.tvm.ffi_base:numeric_types",
        "py_str": "baton.tvm.ffi_base:py_str",
        "string_types": "baton.tvm.ffi_base:string_types",
    },
    "baton.driver.relay_build": {"build_config": "baton.tvm.names:build_config"},
    "baton.ir": {
        "Constructor": "baton.relay.adt:Constructor",
        "Node": "baton.runtime:Object",
        "TypeData": "baton.relay.adt:TypeData",
    },
    "baton.ir.json_upgrade": {"upgrade_json": "baton.ir.json_upgrade:upgrade"},
    "baton.ir.base": {"EnvFunc": "baton.ir:EnvFunc", "Node": "baton.runtime:Object"},
    "baton.relay": {
        "Feature": "baton.relay.analysis:Feature",
        "Module": "baton.ir:IRModule",
        "Prelude": "baton.relay.prelude:Prelude",
        "TypeConstraint": "baton.ir:TypeConstraint",
        "bind_params_by_name": "baton.driver.relay_build:bind_params_by_name",
        "build": "baton.driver.relay_build:build",
        "build_config": "baton.tvm.names:build_config",
        "create_executor": "baton.driver.relay_build:create_executor",
        "debug": "baton.relay.op:debug",
        "feature": "baton.relay.analysis",
        "load_param_dict": "baton.runtime.params:load_param_dict",
        "optimize": "baton.driver.relay_build:optimize",
        "pretty_print": "baton.tvm.names:pretty_print",
        "save_param_dict": "baton.runtime.params:save_param_dict",
        "setrecursionlimit": "sys:setrecursionlimit",
    },
    "baton.relay.analysis": {
        "AnnotatedRegion": "baton.tvm.annotated_regions:AnnotatedRegion",
        "AnnotatedRegionSet": "baton.tvm.annotated_regions:AnnotatedRegionSet",
        "_ffi_api": "baton.tvm.relay_analysis_api",
        "get_calibration_data": "baton.driver.calibration:get_calibration_data",
    },
    "baton.relay.backend": {
        "Executor": "baton.tvm.backend_options:Executor",
        "Runtime": "baton.tvm.backend_options:Runtime",
    },
    "baton.relay.backend.interpreter": {
        "Executor": "baton.driver.executors:Executor",
        "Interpreter": "baton.driver.executors:Interpreter",
    },
    "baton.relay.expr": {"Function": "baton.relay.function:Function"},
    "baton.relay.base": {
        "Node": "baton.runtime:Object",
        "NodeBase": "baton.runtime:Object",
        "RelayNode": "baton.runtime:Object",
        "SourceName": "baton.ir.base:SourceName",
        "Span": "baton.ir.base:Span",
        "astext": "baton.ir.base:astext",
        "register_relay_node": "baton._ffi:register_object",
    },
    "baton.relay.op": {
        "OpStrategy": "baton.relay.op.implementations:OpStrategy",
        "contrib": "baton.relay.op.contrib",
        "elemwise_shape_func": "baton.tvm.names:elemwise_shape_func",
    },
    "baton.relay.op.op": {
        "OpImplementation": "baton.relay.op.implementations:OpImplementation",
        "OpSpecialization": "baton.relay.op.implementations:OpSpecialization",
        "OpStrategy": "baton.relay.op.implementations:OpStrategy",
        "register_strategy": "baton.relay.op.implementations:register_strategy",
    },
    "baton.relay.transform": {
        "ManifestAlloc": "baton.relay.transform.memory_alloc:ManifestAlloc",
        "MemoryPlan": "baton.relay.transform.memory_plan:MemoryPlan",
    },
    "baton.target.codegen": {"build_module": "baton.driver:build"},
    "baton.target": {
        "VirtualDevice": "baton.target:SEScope",
        "build_config": "baton.tvm.names:build_config",
    },
    "baton.te": {
        "BaseComputeOp": "baton.tvm.te_absent:BaseComputeOp",
        "HybridOp": "baton.tvm.te_absent:HybridOp",
        "ScanOp": "baton.tvm.te_absent:ScanOp",
        "SpecializedCondition": "baton.te.specialized:SpecializedCondition",
        "TensorComputeOp": "baton.tvm.te_absent:TensorComputeOp",
        "TensorIntrinCall": "baton.tvm.te_absent:TensorIntrinCall",
    },
    "baton.te.operation": {
        "create_schedule": "baton.te:create_schedule",
        "scan": "baton.te:scan",
        "thread_axis": "baton.te:thread_axis",
    },
    "baton.tvm.relay_testing": {"Prelude": "baton.relay.prelude:Prelude"},
    "baton.testing": {"FrontendTestModule": "baton.tvm.support:FrontendTestModule"},
    "baton.tvm.topi": {
        "InvalidShapeError": "baton.tvm.topi.utils:InvalidShapeError",
        "const_vector": "baton.tvm.topi.utils:const_vector",
        "extern": "baton.te:extern",
    },
    "baton.tvm.topi.nn": {
        "conv2d_winograd_weight_transform": "baton.tvm.topi_winograd:conv2d_winograd_weight_transform",
        "conv3d_winograd_weight_transform": "baton.tvm.topi_winograd:conv3d_winograd_weight_transform",
        "concatenate": "baton.tvm.topi:concatenate",
        "equal_const_int": "baton.tvm.topi.utils:equal_const_int",
        "get_const_int": "baton.tvm.topi.utils:get_const_int",
        "get_const_tuple": "baton.tvm.topi.utils:get_const_tuple",
        "get_pad_tuple": "baton.tvm.topi_nn_utils:get_pad_tuple",
        "get_pad_tuple1d": "baton.tvm.topi_nn_utils:get_pad_tuple1d",
        "get_pad_tuple3d": "baton.tvm.topi_nn_utils:get_pad_tuple3d",
        "add": "baton.tvm.topi:add",
        "simplify": "baton.tvm.topi.utils:simplify",
        "simulated_dequantize": "baton.tvm.topi_qnn:simulated_dequantize",
        "simulated_quantize": "baton.tvm.topi_qnn:simulated_quantize",
        "strided_slice": "baton.tvm.topi:strided_slice",
    },
    "baton.tvm.topi.testing": {"compare_numpy_tvm": "baton.tvm.topi_testing:compare_numpy_tvm"},
    "baton.tvm.topi.vision": {"reorg": "baton.tvm.topi_vision:reorg"},
    "baton.tir": {
        "Block": "baton.tvm.tir_absent:Block",
        "BlockRealize": "baton.tvm.tir_absent:BlockRealize",
        "BlockScope": "baton.tvm.tir_absent:BlockScope",
        "BufferRealize": "baton.tvm.tir_absent:BufferRealize",
        "BufferRegion": "baton.tvm.tir_absent:BufferRegion",
        "DataProducer": "baton.tvm.tir_absent:DataProducer",
        "MatchBufferRegion": "baton.tvm.tir_absent:MatchBufferRegion",
        "Prefetch": "baton.tvm.tir_absent:Prefetch",
        "ProducerRealize": "baton.tvm.tir_absent:ProducerRealize",
        "ProducerStore": "baton.tvm.tir_absent:ProducerStore",
        "Schedule": "baton.tvm.tir_absent:Schedule",
        "ScheduleState": "baton.tvm.tir_absent:ScheduleState",
        "StmtSRef": "baton.tvm.tir_absent:StmtSRef",
        "TensorIntrin": "baton.tvm.tir_absent:TensorIntrin",
        "comm_reducer": "baton.te:comm_reducer",
        "sum": "baton.te:sum",
    },
    "baton.runtime": {
        "TVMContext": "baton.runtime.devices:Device",
        "context": "baton.tvm.names:context",
        "const": "baton.tir:const",
        "TypeCode": "baton.tvm.runtime_ctypes:ArgTypeCode",
        "cl": "baton.runtime.devices:opencl",
        "gpu": "baton.runtime.devices:cuda",
        "mtl": "baton.runtime.devices:metal",
    },
    "baton.runtime.devices": {
        "cl": "baton.runtime.devices:opencl",
        "gpu": "baton.runtime.devices:cuda",
        "mtl": "baton.runtime.devices:metal",
    },
    "baton.runtime.ndarray": {
        "TVMContext": "baton.runtime.devices:Device",
        "context": "baton.tvm.names:context",
        "cl": "baton.runtime.devices:opencl",
        "gpu": "baton.runtime.devices:cuda",
        "mtl": "baton.runtime.devices:metal",
        "numpyasarray": "baton.tvm.names:numpyasarray",
    },
}
NAMES["baton"].update({name: f"{package}:{name}" for package, names in OF_THE_PACKAGE.items() for name in names.split()})

# Modules that are not there, with what is below them -> what to use instead. They import; using what they have is an UnsupportedError.
_NO_TUNING = "the compiler schedules kernels itself, and relay.build needs no tuning"
_BY_ONNX = "export the model to ONNX and read it with relay.frontend.from_onnx"
_NO_LIBRARY = "the compiler has its own kernels; te.compute and topi say what they compute"
_NO_LIBRARY_TAKES = "kernels are the compiler's own; relay.op.contrib.register_pattern_table and PartitionGraph divide a program for a compiler of yours"
_NO_SUCH_DEVICE = "there is code for the targets c, llvm and opencl"
_SHIP_IT = "compile for the other machine with target=\"llvm -mtriple=...\", export_library() and load it there"
ABSENT = {
    "baton.auto_scheduler": _NO_TUNING,
    "baton.autotvm": _NO_TUNING,
    "baton.contrib.blocksparse": _NO_LIBRARY,
    "baton.contrib.binutil": "target=\"c\" writes C code for small machines",
    "baton.contrib.binutils": "target=\"c\" writes C code for small machines",
    "baton.contrib.coreml_runtime": _NO_LIBRARY,
    "baton.contrib.cublas": _NO_LIBRARY,
    "baton.contrib.cublaslt": _NO_LIBRARY,
    "baton.contrib.cudnn": _NO_LIBRARY,
    "baton.contrib.cutlass": _NO_LIBRARY,
    "baton.contrib.debugger.debug_result": "contrib.debugger.debug_executor has the times of kernels",
    "baton.contrib.emcc": _NO_SUCH_DEVICE,
    "baton.contrib.ethosu": _NO_SUCH_DEVICE,
    "baton.contrib.hexagon": _NO_SUCH_DEVICE,
    "baton.contrib.micro": "target=\"c\" writes C code for small machines",
    "baton.contrib.miopen": _NO_LIBRARY,
    "baton.contrib.mps": _NO_LIBRARY,
    "baton.contrib.mxnet": _BY_ONNX,
    "baton.contrib.nnpack": _NO_LIBRARY,
    "baton.contrib.peak": "bench/ in the repository measures kernels",
    "baton.contrib.relay_viz": "the command `baton explore` draws programs; print(mod) and relay.analysis.post_order_visit tell of them",
    "baton.contrib.rocblas": _NO_LIBRARY,
    "baton.contrib.rocm": _NO_SUCH_DEVICE,
    "baton.contrib.rpc": _SHIP_IT,
    "baton.contrib.sdaccel": _NO_SUCH_DEVICE,
    "baton.contrib.spirv": _NO_SUCH_DEVICE,
    "baton.contrib.stackvm": _NO_SUCH_DEVICE,
    "baton.contrib.target": _NO_LIBRARY_TAKES,
    "baton.contrib.tedd": "te.schedule shows stages and iterations, baton.lower the loops",
    "baton.contrib.tf_op": _BY_ONNX,
    "baton.contrib.tflite_runtime": _BY_ONNX,
    "baton.contrib.thrust": _NO_LIBRARY,
    "baton.contrib.tvmjs": _NO_SUCH_DEVICE,
    "baton.contrib.verilator": _NO_SUCH_DEVICE,
    "baton.contrib.xcode": _NO_SUCH_DEVICE,
    "baton.driver.tvmc": "baton.compile(\"model.onnx\") compiles a file, baton.load loads what was saved, and the command `baton` does both",
    "baton.exec.autotvm_log_editor": _NO_TUNING,
    "baton.exec.measure_peak": "bench/ in the repository measures kernels",
    "baton.exec.popen_worker": "testing.PopenPoolExecutor runs functions in processes",
    "baton.ir.memory_pools": "memory is planned by the compiler",
    "baton.meta_schedule": _NO_TUNING,
    "baton.micro": "target=\"c\" writes C code for small machines",
    "baton.relay.analysis.sparse_conv2d": "relay.analysis.sparse_dense converts weights of nn.dense",
    "baton.relay.backend.contrib": _NO_SUCH_DEVICE,
    "baton.relay.collage": "relay.op.contrib and MergeComposite choose what other compilers take",
    "baton.relay.frontend.caffe": _BY_ONNX,
    "baton.relay.frontend.caffe2": _BY_ONNX,
    "baton.relay.frontend.coreml": _BY_ONNX,
    "baton.relay.frontend.darknet": _BY_ONNX,
    "baton.relay.frontend.keras": _BY_ONNX,
    "baton.relay.frontend.mxnet": _BY_ONNX,
    "baton.relay.frontend.oneflow": _BY_ONNX,
    "baton.relay.frontend.paddlepaddle": _BY_ONNX,
    "baton.relay.frontend.qnn_torch": _BY_ONNX,
    "baton.relay.frontend.tensorflow": _BY_ONNX,
    "baton.relay.frontend.tensorflow2": _BY_ONNX,
    "baton.relay.frontend.tensorflow_parser": _BY_ONNX,
    "baton.relay.frontend.tflite": _BY_ONNX,
    "baton.relay.frontend.tflite_flexbuffer": _BY_ONNX,
    "baton.relay.frontend.tensorflow_ops": _BY_ONNX,
    "baton.relay.frontend.tensorflow2_ops": _BY_ONNX,
    "baton.relay.frontend.pytorch_utils": _BY_ONNX,
    "baton.relay.frontend.nnvm_common": _BY_ONNX,
    "baton.relay.frontend.mxnet_qnn_op_utils": _BY_ONNX,
    "baton.relay.op.contrib.bnns": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.clml": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.cmsisnn": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.coreml": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.cublas": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.cudnn": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.cutlass": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.ethosn": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.ethosu": _NO_LIBRARY_TAKES,
    "baton.relay.op.contrib.vitis_ai": _NO_LIBRARY_TAKES,
    "baton.relay.op.strategy": "operators have one computation, which the compiler schedules; relay.op.register_compute sets that of a program's own",
    "baton.relay.testing.darknet": _BY_ONNX,
    "baton.relay.testing.tf": _BY_ONNX,
    "baton.relay.testing.tflite": _BY_ONNX,
    "baton.relay.testing.yolo_detection": _BY_ONNX,
    "baton.relay.transform.memory_alloc": "relay.vm.compile plans memory itself",
    "baton.relay.transform.memory_plan": "relay.vm.compile plans memory itself",
    "baton.rpc.server_ios_launcher": _NO_SUCH_DEVICE,
    "baton.runtime.executor": "contrib.graph_executor runs what relay.build gives",
    "baton.script": "loops are written with tir.ir_builder, or with te",
    "baton.target.arm_isa": _NO_SUCH_DEVICE,
    "baton.target.compilation_config": "relay.build takes a target for each device",
    "baton.target.datatype": "dtypes are those of baton.DataType; casts and lookups of others are operators of a program",
    "baton.target.intrin": "tir has functions for what processors compute: tir.exp, tir.sqrt, tir.popcount",
    "baton.target.x86": "Target(...).attrs and baton.support.libinfo tell of a target",
    "baton.testing.auto_scheduler": _NO_TUNING,
    "baton.testing.tir": "loops are written with tir.ir_builder, or with te",
    "baton.tir.block_scope": "te.create_schedule schedules tensor expressions, relay.build whole programs",
    "baton.tir.schedule": "te.create_schedule schedules tensor expressions, relay.build whole programs",
    "baton.tir.tensor_intrin": _NO_LIBRARY,
    "baton.tir.usmp": "memory is planned by the compiler",
    "baton.vta": _NO_SUCH_DEVICE,
}
NAMES["baton.relay.frontend"] = {"ChangeDatatype": "baton.tvm.change_datatype:ChangeDatatype"} | {
    f"from_{_name}": f"baton.relay.frontend.{_path}:from_{_name}"
    for _name, _path in {
        "caffe": "caffe",
        "caffe2": "caffe2",
        "coreml": "coreml",
        "darknet": "darknet",
        "keras": "keras",
        "mxnet": "mxnet",
        "oneflow": "oneflow",
        "paddle": "paddlepaddle",
        "tensorflow": "tensorflow",
        "tflite": "tflite",
    }.items()
}

# Module -> name that it does not have -> what to use instead.
INSTEAD = {
    "baton.arith": {
        "inverse_affine_iter_map": "detect_iter_map gives scales, factors and extents",
        "iter_map_simplify": "Analyzer().simplify() cancels divisions and remainders",
        "subspace_divide": "detect_iter_map says whether indices are independent",
    },
}
# Module -> one that registers what programs of it call by name.
REGISTERS = {"baton.te": "baton.tvm.packed_functions"}
# Packages whose files have paths: `deep_paths` has them.
WITH_FILES = frozenset(
    "baton.tvm.op_strategy baton.tvm.topi_targets baton.tvm.topi_vision baton.ir.diagnostics baton.relay baton.relay.analysis baton.tvm.data_dep_optimization "
    "baton.relay.dataflow_pattern baton.relay.op baton.relay.qnn.op baton.tvm.quantize baton.tvm.relay_testing baton.rpc baton.target baton.te.hybrid "
    "baton.tir.analysis baton.tir.transform baton.tvm.topi baton.tvm.topi.image baton.tvm.topi.nn baton.tvm.topi.random baton.tvm.topi.sparse baton.tvm.topi.testing "
    "baton.tvm.topi.vision".split()
)


def current(path):
    """The path that a module of `PACKAGES`, or one below it, has today; any other path as it is."""
    head = path
    while head:
        if head in PACKAGES:
            return PACKAGES[head] + path[len(head) :]
        head = head.rpartition(".")[0]
    return path


def former(path):
    """The path by which programs know a module; the inverse of `current`. The floor's own package is known by its own path."""
    known = [(new, old) for old, new in PACKAGES.items() if new != "baton.tvm" and (path == new or path.startswith(new + "."))]
    new, old = max(known, default=("", ""))
    return old + path[len(new) :]


def paths():
    """(path, module) of every path by which a program may import a module that has another."""
    from importlib.util import find_spec
    from pkgutil import walk_packages

    yield from MODULES.items()
    for old, new in PACKAGES.items():
        yield old, new
        found = find_spec(new)
        for _, name, _ in walk_packages(found.submodule_search_locations or (), new + "."):
            if former(name) not in MODULES and (old != "baton.compat" or former(name) == name):
                yield old + name.removeprefix(new), name


def instead_of(module):
    """Returns the replacement of a module that is not there, or of the one around it; None for others."""
    while module not in ABSENT and "." in module:
        module = module.rpartition(".")[0]
    return ABSENT.get(module)


for _path in (*WITH_FILES, *INSTEAD):
    NAMES.setdefault(_path, {})
for _path in (*PACKAGES, *MODULES, *ABSENT):
    _parent, _, _last = _path.rpartition(".")
    NAMES.setdefault(MODULES.get(_parent) or current(_parent), {})[_last] = _path
