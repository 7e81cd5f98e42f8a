// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/executor_queries.h>
#include <baton/support/text.h>

namespace baton::runtime {
using support::Cat;

void CheckResultTree(const std::vector<int64_t>& tree, size_t outputs) {
  if (tree.empty()) return;
  // How many values are still to come. A tuple's fields come behind it.
  uint64_t open = 1;
  size_t leaves = 0;
  for (int64_t n : tree) {
    if (open == 0 || n < -1 || n > INT32_MAX) leaves = outputs + tree.size() + 1;
    --open;
    if (n < 0) {
      ++leaves;
    } else {
      open += static_cast<uint64_t>(n);
    }
  }
  if (open || leaves != outputs) throw RuntimeError("the results make no tree of the outputs");
}

ObjectRef ResultValue(const std::vector<int64_t>& tree, const std::vector<NDArray>& outputs) {
  if (tree.empty()) return outputs.size() == 1 ? ObjectRef(outputs[0]) : ObjectRef(Array<NDArray>(outputs));
  // From the end, where fields come before their tuple: those that are made and not yet taken lie on the stack, the
  // first of them on top.
  std::vector<ObjectRef> made(tree.size());
  size_t leaf = outputs.size(), top = tree.size();
  for (size_t i = tree.size(); i-- > 0;) {
    if (tree[i] < 0) {
      made[--top] = outputs[--leaf];
    } else {
      const auto fields = made.begin() + static_cast<std::ptrdiff_t>(top);
      Array<ObjectRef> tuple(fields, fields + tree[i]);
      top += static_cast<size_t>(tree[i]);
      made[--top] = std::move(tuple);
    }
  }
  return made[top];
}

}  // namespace baton::runtime
