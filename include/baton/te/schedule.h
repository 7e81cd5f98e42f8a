// SPDX-License-Identifier: Apache-2.0
// Schedules of tensor expressions, as data: the loops of each operation and where it is computed.
#pragma once

#include <baton/te/tensor.h>

namespace baton::te {

/// Kinds of IterVar besides those that `tir::IterVarType` names.
inline constexpr auto kThreadIndex = static_cast<tir::IterVarType>(1);
inline constexpr auto kTensorized = static_cast<tir::IterVarType>(8);

/// A loop, or loops, that became others.
struct IterVarRelationNode : Node<IterVarRelationNode, Object> {
  static constexpr const char* _type_key = "te.IterVarRelation";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 4;
  static constexpr void Describe(auto&) {}
};
class IterVarRelation : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(IterVarRelation, ObjectRef, IterVarRelationNode)
};

/// A split loop: parent == outer * extent of inner + inner.
struct SplitNode : Node<SplitNode, IterVarRelationNode> {
  static constexpr const char* _type_key = "te.Split";
  static constexpr const char* _doc = "A split loop: parent == outer * extent of inner + inner.";
  IterVar parent;
  IterVar outer;
  IterVar inner;
  PrimExpr factor;
  PrimExpr nparts;
  static constexpr void Describe(auto& d) {
    d(F<&SplitNode::parent>, "The loop that was split.");
    d(F<&SplitNode::outer>, "The outer loop.");
    d(F<&SplitNode::inner>, "The inner loop.");
    d(F<&SplitNode::factor>, "Rounds of the inner loop; null where the outer one's are given.", kNullable);
    d(F<&SplitNode::nparts>, "Rounds of the outer loop; null where the inner one's are given.", kNullable);
  }
};
class Split : public RefTo<SplitNode, IterVarRelation> {
 public:
  using RefTo::RefTo;
};

/// Two fused loops: fused == outer * extent of inner + inner.
struct FuseNode : Node<FuseNode, IterVarRelationNode> {
  static constexpr const char* _type_key = "te.Fuse";
  static constexpr const char* _doc = "Two fused loops: fused == outer * extent of inner + inner.";
  IterVar outer;
  IterVar inner;
  IterVar fused;
  static constexpr void Describe(auto& d) {
    d(F<&FuseNode::outer>, "The outer one of both loops.");
    d(F<&FuseNode::inner>, "The inner one.");
    d(F<&FuseNode::fused>, "The loop that they became.");
  }
};
class Fuse : public RefTo<FuseNode, IterVarRelation> {
 public:
  using RefTo::RefTo;
};

/// A loop of one round, of a stage without axes.
struct SingletonNode : Node<SingletonNode, IterVarRelationNode> {
  static constexpr const char* _type_key = "te.Singleton";
  static constexpr const char* _doc = "A loop of one round, of a stage without axes.";
  IterVar iter;
  static constexpr void Describe(auto& d) { d(F<&SingletonNode::iter>, "The loop."); }
};
class Singleton : public RefTo<SingletonNode, IterVarRelation> {
 public:
  using RefTo::RefTo;
};

/// How a computation of a given form is done by a statement, as by an instruction: made by `te.decl_tensor_intrin`.
struct TensorIntrinNode : Node<TensorIntrinNode, Object> {
  static constexpr const char* _type_key = "te.TensorIntrin";
  static constexpr const char* _doc =
      "A computation of a given form, done by a statement; made by `te.decl_tensor_intrin`.";
  static constexpr bool _type_is_value = false;
  String name;
  Operation op;
  Array<Tensor> inputs;
  Array<tir::Buffer> buffers;
  Array<Var> scalar_params;
  ObjectRef body;
  ObjectRef reduce_init;
  ObjectRef reduce_update;
  static constexpr void Describe(auto& d) {
    d(F<&TensorIntrinNode::name>, "Its name.");
    d(F<&TensorIntrinNode::op>, "The computation.");
    d(F<&TensorIntrinNode::inputs>, "The tensors that it reads.");
    d(F<&TensorIntrinNode::buffers>, "Buffers of the inputs, then of the results.", runtime::kBinds);
    d(F<&TensorIntrinNode::scalar_params>, "Numbers that the statements are given.", runtime::kBinds);
    d(F<&TensorIntrinNode::body>, "All of it, a tir.Stmt; null where a reduction has the two others alone.", kNullable);
    d(F<&TensorIntrinNode::reduce_init>, "Sets what a reduction begins with; null: it has none.", kNullable);
    d(F<&TensorIntrinNode::reduce_update>, "Reduces further elements into the results; null: it cannot.", kNullable);
  }
};
class TensorIntrin : public RefTo<TensorIntrinNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// Requests for a loop.
struct IterVarAttrNode : Node<IterVarAttrNode, Object> {
  static constexpr const char* _type_key = "te.IterVarAttr";
  static constexpr const char* _doc = "Requests for a loop.";
  static constexpr bool _type_is_value = false;
  tir::IterVarType iter_type = tir::IterVarType::kDataPar;
  IterVar bind_thread;
  String thread_tag;
  TensorIntrin tensor_intrin;
  Array<PrimExpr> pragma_keys;
  Array<PrimExpr> pragma_values;
  Array<Tensor> prefetch_data;
  Array<PrimExpr> prefetch_offset;
  int64_t dim_align_factor = 0;
  int64_t dim_align_offset = 0;
  static constexpr void Describe(auto& d) {
    d(F<&IterVarAttrNode::iter_type>,
      "How its rounds are run: as `tir.IterVar`'s types, 5 unrolled, 6 as a vector, 7 parallel, 8 by an intrinsic.");
    d(F<&IterVarAttrNode::bind_thread>, "The axis of threads that runs its rounds.", kNullable);
    d(F<&IterVarAttrNode::thread_tag>, "Tag of that axis, as threadIdx.x.");
    d(F<&IterVarAttrNode::tensor_intrin>, "The intrinsic that does all of its rounds at once.", kNullable);
    d(F<&IterVarAttrNode::pragma_keys>, "Hints to passes, by name.");
    d(F<&IterVarAttrNode::pragma_values>, "Their values.");
    d(F<&IterVarAttrNode::prefetch_data>, "Tensors that are asked for ahead.");
    d(F<&IterVarAttrNode::prefetch_offset>, "How many rounds ahead.");
    d(F<&IterVarAttrNode::dim_align_factor>, "The distance of rows is, modulo this, the offset.");
    d(F<&IterVarAttrNode::dim_align_offset>, "See dim_align_factor.");
  }
};
class IterVarAttr : public RefTo<IterVarAttrNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// The steps of a schedule as text: `ReplaySchedule` does them to another one.
struct TraceNode : Node<TraceNode, Object> {
  static constexpr const char* _type_key = "te.Trace";
  static constexpr const char* _doc = "The steps of a schedule as text.";
  static constexpr bool _type_is_value = false;
  Array<String> steps;
  Array<String> labels;
  static constexpr void Describe(auto& d) {
    d(F<&TraceNode::steps>, "A line a step.");
    d(F<&TraceNode::labels>, "Names of stages, each once.");
  }
};
class Trace : public RefTo<TraceNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  TraceNode* mut() const { return const_cast<TraceNode*>(get()); }
};

enum class AttachType : int32_t { kRoot = 1, kInline = 2, kScope = 4 };

/// One operation of a schedule: its loops, from the outside in, and where it is computed. Changed in place.
struct StageNode : Node<StageNode, Object> {
  static constexpr const char* _type_key = "te.Stage";
  static constexpr const char* _doc =
      "One operation of a schedule: its loops, from the outside in, and where it is computed.";
  static constexpr bool _type_is_value = false;
  Operation op;
  Operation origin_op;
  bool is_output = false;
  bool is_input = false;
  Array<PrimExpr> body;
  Array<IterVar> all_iter_vars;
  Array<IterVar> leaf_iter_vars;
  Array<IterVarRelation> relations;
  Map<IterVar, IterVarAttr> iter_var_attrs;
  AttachType attach_type = AttachType::kRoot;
  ObjectRef attach_stage;
  IterVar attach_ivar;
  String scope;
  ObjectRef group;
  Array<IterVar> env_threads;
  PrimExpr store_predicate;
  bool double_buffer = false;
  Array<ObjectRef> cells;
  String label;
  Trace trace;
  static constexpr void Describe(auto& d) {
    d(F<&StageNode::op>, "The operation that is computed now.");
    d(F<&StageNode::origin_op>, "The operation that the program wrote.");
    d(F<&StageNode::is_output>, "Whether it is a result of the schedule.");
    d(F<&StageNode::is_input>, "Whether it is given.");
    d(F<&StageNode::body>, "Value of an element of each output, with the reads that caches serve changed.");
    d(F<&StageNode::all_iter_vars>, "All loops that it ever had.");
    d(F<&StageNode::leaf_iter_vars>, "Its loops, from the outside in.");
    d(F<&StageNode::relations>, "How its loops became of its axes, in the order in which it was asked for.");
    d(F<&StageNode::iter_var_attrs>, "Requests for loops.");
    d(F<&StageNode::attach_type>,
      "Where it is computed: 1 as a whole, 2 where it is read, 4 in a loop of another stage.");
    d(F<&StageNode::attach_stage>, "The te.Stage of that loop.", kNullable);
    d(F<&StageNode::attach_ivar>, "That loop.", kNullable);
    d(F<&StageNode::scope>, "The memory that its tensor is kept in.");
    d(F<&StageNode::group>, "The te.Group that it was put into last.", kNullable);
    d(F<&StageNode::env_threads>, "Threads that run around all of it.");
    d(F<&StageNode::store_predicate>, "Results are stored where this holds.", kNullable);
    d(F<&StageNode::double_buffer>, "Whether the next round's values are written while this one's are read.");
    d(F<&StageNode::cells>, "The schedules of the first and of the further rows of a scan.");
    d(F<&StageNode::label>, "Its name in the trace, unlike all others.");
    d(F<&StageNode::trace>, "The trace of its schedule.", kNullable);
  }
};
class BATON_DLL Stage : public RefTo<StageNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  StageNode* mut() const { return const_cast<StageNode*>(get()); }
  bool is_statement() const { return (*this)->op.as<ExternOpNode>() && !(*this)->is_input; }
  bool is_reduction() const;
};

/// Stages that are put into a loop together.
struct GroupNode : Node<GroupNode, Object> {
  static constexpr const char* _type_key = "te.Group";
  static constexpr const char* _doc = "Stages that are put into a loop together; made by `Schedule.create_group`.";
  static constexpr bool _type_is_value = false;
  Array<Operation> operations;
  Array<Stage> stages;
  static constexpr void Describe(auto& d) {
    d(F<&GroupNode::operations>, "The operations of its stages.");
    d(F<&GroupNode::stages>, "Its stages; none in what a stage says of its group, as objects do not own each other.");
  }
};
class Group : public RefTo<GroupNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

struct ScheduleNode : Node<ScheduleNode, Object> {
  static constexpr const char* _type_key = "te.Schedule";
  static constexpr const char* _doc =
      "How operations are computed; `schedule[tensor]` is the stage of a tensor. Made by `create_schedule`.";
  static constexpr bool _type_is_value = false;
  Array<Operation> outputs;
  Array<Stage> stages;
  Array<Operation> given;
  Map<Operation, Stage> stage_map;
  Array<Group> groups;
  Trace trace;
  static constexpr void Describe(auto& d) {
    d(F<&ScheduleNode::outputs>, "Operations whose tensors are the results.");
    d(F<&ScheduleNode::stages>, "A stage for each operation, producers first.");
    d(F<&ScheduleNode::given>, "Operations whose tensors are inputs, whatever computes them.");
    d(F<&ScheduleNode::stage_map>, "The stage of each operation, of those too that it computed before.");
    d(F<&ScheduleNode::groups>, "Groups of stages.");
    d(F<&ScheduleNode::trace>, "Its steps.");
  }
};
class BATON_DLL Schedule : public RefTo<ScheduleNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  ScheduleNode* mut() const { return const_cast<ScheduleNode*>(get()); }
  /// The stage of an operation, of the rows of its scans too; null if it has none.
  Stage Find(const Operation& op) const;
  /// The same; throws ValueError if it has none.
  Stage operator[](const Operation& op) const;
};

/// A schedule of operations and their producers, each in its own loops, in the order of its axes. Tensors of `given`
/// are inputs.
BATON_DLL Schedule CreateSchedule(const Array<Operation>& outputs, const Array<Operation>& given = {});

/// The axes of an operation, those of its reduction last. For a script: its loops, in the order in which they are
/// written.
BATON_DLL Array<IterVar> AxesOf(const Operation& op);
/// The tensors that an operation reads, in order, once each.
BATON_DLL Array<Tensor> InputTensors(const Operation& op);
/// The tensors that the expressions of a body read, in order, once each.
BATON_DLL Array<Tensor> TensorsRead(const Array<PrimExpr>& body);
/// These operations and all their producers, producers first; what those in `given` read is left out.
BATON_DLL Array<Operation> PostOrder(const Array<Operation>& outputs, const Array<Operation>& given = {});
bool SameTensor(const Tensor& a, const Tensor& b);

/// The loops of a stage whose axes have given extents: of each loop its extent, of each axis, and each loop that became
/// others, its value.
struct StageLoopsNode : Node<StageLoopsNode, Object> {
  static constexpr const char* _type_key = "te.StageLoops";
  static constexpr const char* _doc = "Extents of a stage's loops, and its axes as expressions of them.";
  static constexpr bool _type_is_value = false;
  Map<Var, PrimExpr> extents;
  Map<Var, PrimExpr> values;
  Array<IterVar> inexact;
  static constexpr void Describe(auto& d) {
    d(F<&StageLoopsNode::extents>, "Number of rounds of each loop.");
    d(F<&StageLoopsNode::values>,
      "Each axis, and each loop that became others, as an expression of the loops; counted from 0.");
    d(F<&StageLoopsNode::inexact>, "Loops that were split by what does not divide them.");
  }
};
class StageLoops : public RefTo<StageLoopsNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  /// Conditions on the loops of the reduction, or on the others, where factors do not divide.
  Array<PrimExpr> Conditions(bool reduce) const;
};
/// The loops of a stage, its axes having these extents.
BATON_DLL StageLoops LoopsOf(const Stage& stage, const Map<Var, PrimExpr>& extents);
/// The loops of a stage that is computed as a whole.
BATON_DLL StageLoops LoopsOf(const Stage& stage);

}  // namespace baton::te
