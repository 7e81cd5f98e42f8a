// SPDX-License-Identifier: Apache-2.0
// The order of a block's expressions in a program for several devices: work of one device stands together, so that it
// becomes few kernels, and devices with a queue have work while the CPU computes.
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>

#include <algorithm>
#include <set>

#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::CallNode;
using relay::Expr;

/// Whether an expression may trade places with others: its value is all that it does.
bool FunctionValues::Moves(Node* n) const {
  if (n->IsInstance<relay::TupleNode>() || n->IsInstance<relay::TupleGetItemNode>()) return true;
  const auto* call = As<CallNode>(n);
  if (!call) return false;
  if (IsPrimitive(call->op)) return true;
  const relay::OpDef* def = call->op.as<OpNode>() ? relay::DefOf(call->op) : nullptr;
  return def && !def->stateful;
}

void FunctionValues::GatherDevices(std::vector<Node*>* list) {
  std::vector<Node*>& all = *list;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && Moves(all[end])) ++end;
    if (end - begin > 2) GatherDevices(all.data() + begin, end - begin);
    begin = std::max(end, begin + 1);
  }
}

/// The same of expressions without effects: in rounds, of which each takes all of one device that is ready.
void FunctionValues::GatherDevices(Node** list, size_t count) {
  PointerMap<size_t> number;
  for (size_t i = 0; i < count; ++i) number[list[i]] = i;
  std::vector<std::vector<size_t>> readers(count);
  std::vector<size_t> waits(count);
  std::vector<int32_t> device(count);
  std::vector<bool> copy(count);
  for (size_t i = 0; i < count; ++i) {
    const auto* call = As<CallNode>(list[i]);
    copy[i] = call && relay::AsDeviceCopy(call->op, call->attrs);
    device[i] = program_->DeviceOf(list[i]);
    relay::ForEachChild(list[i], [&](const relay::ExprNode* p) {
      const size_t* at = number.Find(Resolve(p));
      if (!at || *at == i) return;
      readers[*at].push_back(i);
      ++waits[i];
    });
  }
  // Ready expressions in the program's order: work of each device, copies to it.
  const size_t devices = program_->NumDevices();
  std::vector<std::set<size_t>> work(devices), copies(devices);
  auto add = [&](size_t i) { (copy[i] ? copies : work)[static_cast<size_t>(device[i])].insert(i); };
  for (size_t i = 0; i < count; ++i) {
    if (!waits[i]) add(i);
  }
  std::vector<Node*> order;
  auto take = [&](std::set<size_t>* from) {
    const size_t i = *from->begin();
    from->erase(from->begin());
    order.push_back(list[i]);
    for (size_t r : readers[i]) {
      if (--waits[r] == 0) add(r);
    }
  };
  while (order.size() < count) {
    bool any = false;
    // Other devices first: they go on by themselves. What they wait for comes before what the CPU waits for.
    for (size_t d = devices; d-- > 0 && !any;) {
      any = !work[d].empty();
      while (!work[d].empty()) take(&work[d]);
    }
    for (size_t d = devices; d-- > 0 && !any;) {
      any = !copies[d].empty();
      while (!copies[d].empty()) take(&copies[d]);
    }
    if (!any) throw InternalError("expressions of a block that wait for each other");
  }
  std::copy(order.begin(), order.end(), list);
}

}  // namespace baton::driver
