// SPDX-License-Identifier: Apache-2.0
// The steps from a PrimFunc as written to one that code generators and the interpreter take, as plain functions.
// Each has a pass of its name in tir/transform.h.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/tir/stmt.h>

namespace baton::tir {

/// The function with another body; the same object if the body is unchanged.
BATON_DLL PrimFunc WithBody(const PrimFunc& f, const Stmt& body);

/// Rewrites programs into forms that the steps below take: loops and indices of narrow integers become int64 (their
/// arithmetic, too, so that it does not wrap around), tvm_access_ptr becomes an address.
BATON_DLL PrimFunc CanonicalForm(const PrimFunc& f);
BATON_DLL Stmt CanonicalForm(const Stmt& s);
/// Every buffer becomes one-dimensional; `buffer_map` keeps the shapes of the parameters.
BATON_DLL PrimFunc FlattenStorage(const PrimFunc& f);
/// Canonical index arithmetic, branches and loops that cannot run removed.
BATON_DLL PrimFunc SimplifyFunc(const PrimFunc& f);
/// kVectorized loops become vector expressions (conditions become masks); what has no vector form becomes a serial
/// loop. Wants flat storage.
BATON_DLL PrimFunc VectorizeLoops(const PrimFunc& f);
/// Statements up to which a serial loop that indexes registers is written out.
constexpr int64_t kUnrollSteps = 64;
/// kUnrolled loops are written out, and short serial ones that index registers ("local" buffers) by their variable.
BATON_DLL PrimFunc UnrollLoops(const PrimFunc& f, int64_t max_auto_steps = kUnrollSteps);
/// float16 and bfloat16 are storage only: arithmetic and local buffers are float32, loads and stores convert.
BATON_DLL PrimFunc ComputeHalfInFloat(const PrimFunc& f);
/// exp, exp2, log, log2, log10, log1p, tanh, erf, sigmoid of float32 become polynomials (<= 4 ulp, special values as in
/// IEEE 754), rsqrt a division, pow with a small literal exponent products.
BATON_DLL PrimFunc LowerIntrinsics(const PrimFunc& f);
/// The function's workspace allocations share one arena by their life times.
BATON_DLL PrimFunc PlanStorage(const PrimFunc& f);

/// All of the above, in the order that works. Idempotent.
BATON_DLL PrimFunc LowerPipeline(const PrimFunc& f, const Target& target);
/// The same for each PrimFunc of a module.
BATON_DLL IRModule LowerPipeline(const IRModule& mod, const Target& target);

/// Throws UnsupportedError for the mark "thread_extent", for code generators that take parallel loops.
BATON_DLL void CheckNoThreadAxes(const AttrStmtNode* mark);

/// The workspace of a planned function as one more handle parameter, the last: its arena, and allocations of more than
/// `least` bytes, or of a size that the parameters give, outside of branches and parallel loops. Returns a function
/// without such workspace as it is.
BATON_DLL PrimFunc WorkspaceToParameter(const PrimFunc& f, int64_t least = 0);
/// Bytes that such a function takes as its last parameter, by its other parameters; 0 for none.
BATON_DLL PrimExpr WorkspaceBytes(const PrimFunc& f);

/// A function and the way to call it from a PackedFunc.
struct PackedApi {
  PrimFunc func;    ///< with all sizes as parameters, for lowering
  PrimFunc caller;  ///< (slots): reads pointers, numbers and sizes (see BatonFunctionSpec), checks shapes, calls
  int64_t num_required = 0;
};
/// Whether the function gives a value by `tir.ret`; 0 where it ends without.
BATON_DLL bool GivesValue(const PrimFunc& f);
/// Such a function with one more parameter, the last: a buffer of one int64, or float64, to which `tir.ret` writes.
/// Throws CompileError for integers beside floats, UnsupportedError for non-numbers and for `tir.ret` in parallel
/// loops.
BATON_DLL PrimFunc ResultToParameter(const PrimFunc& f);
/// Sizes in shapes that are not parameters become parameters at the end; those need not be given in a call. `var` names
/// the function that the caller calls. Throws CompileError where a size cannot be read from any argument.
BATON_DLL PackedApi MakePackedApi(const GlobalVar& var, const PrimFunc& func);
/// The function on pointers to data, as other code calls it: no buffers are bound to parameters, and sizes in shapes
/// that are not parameters become parameters at the end.
BATON_DLL PrimFunc MakeUnpackedApi(const PrimFunc& func);
/// The symbol of a caller is this and the function's.
inline constexpr const char* kPackedCallPrefix = "baton_call_";

namespace attr {
constexpr const char* kPackedOf = "packed_of";        ///< PrimFunc: what this caller calls
constexpr const char* kNumRequired = "num_required";  ///< int: arguments that a call must have
constexpr const char* kResultKind = "result_kind";    ///< int: kBatonParamInt or kBatonParamFloat; without, no result
constexpr const char* kDisplayName = "display_name";  ///< String: what a profiler shows, as "nn.conv2d + nn.relu"
}  // namespace attr

}  // namespace baton::tir
