// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

namespace baton::runtime {
using support::Cat;

ExecutorLock::ExecutorLock(std::atomic<bool>* busy) : busy_(busy) {
  if (busy && busy->exchange(true, std::memory_order_acquire)) [[unlikely]] {
    throw RuntimeError(
        "this executor is in use by another thread (or by itself, from a callback); make one for each thread, they "
        "share "
        "code and weights");
  }
}

size_t FindTensor(const ArgValue& v, const std::vector<TensorInfo>& list, const char* kind) {
  if (v.type_code() == kBatonInt) {
    const int64_t i = v.As<int64_t>();
    if (i < 0 || i >= static_cast<int64_t>(list.size())) {
      throw Error("IndexError", Cat("there is no ", kind, " ", i, ": the model has ", list.size()));
    }
    return static_cast<size_t>(i);
  }
  const std::string name = v.As<std::string>();
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  std::string known;
  for (size_t i = 0; i < list.size() && i < 20; ++i) known += Cat(i ? ", `" : "`", list[i].name, "`");
  throw Error("KeyError",
              Cat("the model has no ", kind, " `", name, "`; it has ", known, list.size() > 20 ? ", ..." : ""));
}

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

Array<Any> DimFields(const std::vector<Dim>& dims) {
  Array<Any> fields;
  for (const Dim& d : dims) {
    fields.push_back(Any(d.name));
    for (int64_t bound : {d.min, d.max, d.multiple}) fields.push_back(Any(bound));
  }
  return fields;
}

int FindExecutorQuery(std::string_view name) {
  int i = 0;
  for (std::string_view known : kExecutorQueries) {
    if (name == known) return i;
    ++i;
  }
  return -1;
}

void AnswerExecutorQuery(int query, const std::vector<TensorInfo>& inputs, const std::vector<TensorInfo>& outputs,
                         Args args, RetValue* rv) {
  const auto tensor = [&](bool out) -> const TensorInfo& {
    const std::vector<TensorInfo>& list = out ? outputs : inputs;
    return list[FindTensor(args[0], list, out ? "output" : "input")];
  };
  switch (query) {
    case 0:
    case 1:
      *rv = (query ? outputs : inputs).size();
      return;
    case 2: {
      const std::string want = args[0].As<std::string>();
      int64_t found = -1;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name == want) found = static_cast<int64_t>(i);
      }
      *rv = found;
      return;
    }
    case 3:
    case 4:
      *rv = tensor(query == 4).name;
      return;
    default: {
      const TensorInfo& t = tensor(query == 6);
      Array<Any> out;
      out.push_back(Any(t.name));
      out.push_back(Any(Array<int64_t>(t.shape)));
      out.push_back(Any(t.dtype));
      Array<String> extents;
      for (const std::string& e : t.extents) extents.push_back(String(e));
      out.push_back(Any(extents));
      *rv = out;
    }
  }
}

}  // namespace baton::runtime
