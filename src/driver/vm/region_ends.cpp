// SPDX-License-Identifier: Apache-2.0
// Where regions end, and why: read by `baton explain-pipeline`, decided by the predicates that translation asks.
#include <baton/relay/device.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>

#include "driver/debug_source.h"
#include "driver/lower_graph.h"
#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::CallNode;
using relay::Expr;
using relay::FunctionNode;

std::string RegionFormer::WhyOutside(Node* n) const {
  if (As<relay::IfNode>(n)) return "control goes one of two ways";
  if (As<relay::MatchNode>(n)) return "the constructor of a value decides where control goes";
  if (As<relay::RefCreateNode>(n) || As<relay::RefReadNode>(n) || As<relay::RefWriteNode>(n)) {
    return "references are read and written in the order of the program";
  }
  if (As<FunctionNode>(n)) return "a closure is made";
  const auto* call = As<CallNode>(n);
  if (!call) return "";
  const Expr op = IsPrimitive(call->op) ? call->op : Resolve(call->op);
  if (op.as<ConstructorNode>()) return "it makes a value of a data type";
  if (!op.as<OpNode>() && !IsPrimitive(op)) return "it is a call of a function";
  if (relay::AsDeviceCopy(op, call->attrs)) return "it copies a value from one device to another";
  const relay::OpDef* def = relay::DefOf(op);
  if (op.as<OpNode>() && !def) return "it has no loops";
  if (def && def->stateful) return "it keeps a state from call to call";
  if (def && def->host) return "it runs on the host";
  if (!IsOpenTensors(n)) return "its result is no tensor";
  for (const Expr& a : call->args) {
    if (!IsOpenTensors(a.get()) && !IsOpenTensors(Resolve(a).get())) return "it reads a value that is no tensor";
  }
  if (const std::string* why = refused_.Find(n)) return *why;
  return relay::IsView(op) ? "a change of shape alone is no kernel" : "it has no loops";
}

/// Notes where a region of a block ends. `branch`: whether the block is part of the function's.
void FunctionBuilder::NoteEnd(int32_t kernel, const Region& region, const std::vector<Node*>& list, bool branch) {
  std::vector<RegionNote>* notes = program_->notes();
  if (!notes) return;
  RegionNote note{lambda_.name, kernel, "", "", "", region.why};
  for (Node* n : region.nodes) {
    if (As<CallNode>(n)) note.operators += (note.operators.empty() ? "" : ", ") + Describe(n);
  }
  if (region.end < list.size()) {
    Node* n = list[region.end];
    note.at = Describe(n);
    note.span = SpanText(n->span);
    if (note.why.empty()) note.why = former_.WhyOutside(n);
    told_.Add(n);
  } else {
    note.at = branch ? "the end of a branch" : "the end of the function";
  }
  notes->push_back(std::move(note));
}

/// Notes a node that is in no region, where no region has ended at it.
void FunctionBuilder::NoteOutside(Node* n) {
  std::vector<RegionNote>* notes = program_->notes();
  if (!notes || told_.Has(n)) return;
  const std::string why = former_.WhyOutside(n);
  if (!why.empty()) notes->push_back({lambda_.name, -1, "", Describe(n), SpanText(n->span), why});
}

namespace {

/// Returns a row of strings a boundary: function, number of the region ("" outside of regions), its operators, the
/// expression at the boundary, its place, the reason. The first row says why the program is not one function; its other
/// fields are empty. A model that is one function has no rows.
Array<Any> ExplainRegions(IRModule mod) {
  mod = relay::transform::InferType()(mod);
  std::string why;
  Array<Any> out;
  if (CanLowerGraph(MainOf(mod), &why)) return out;
  std::vector<RegionNote> notes{{"", -1, "", "", "", why}};
  TranslateToVm(mod, {}, kDLCPU, &notes);
  for (const RegionNote& note : notes) {
    Array<String> row;
    const std::string number = note.kernel < 0 ? "" : std::to_string(note.kernel);
    for (const std::string& field : {note.function, number, note.operators, note.at, note.span, note.why}) {
      row.push_back(String(field));
    }
    out.push_back(Any(row));
  }
  return out;
}

BATON_REGISTER_GLOBAL("driver.ExplainRegions").set_body_typed(ExplainRegions);

}  // namespace

}  // namespace baton::driver
