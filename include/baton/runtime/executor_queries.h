// SPDX-License-Identifier: Apache-2.0
// Common to all executors: rejection of concurrent calls, and queries about inputs and outputs.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/dynamic_shapes.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>

#include <atomic>
#include <string_view>
#include <vector>

namespace baton::runtime {

/// Guards against concurrent calls. Throws RuntimeError if `busy` is set: waiting would not help, since results of two
/// callers would still be mixed up. A null `busy` checks nothing.
class BATON_DLL ExecutorLock {
 public:
  explicit ExecutorLock(std::atomic<bool>* busy);
  ~ExecutorLock() {
    if (busy_) busy_->store(false, std::memory_order_release);
  }
  ExecutorLock(const ExecutorLock&) = delete;
  ExecutorLock& operator=(const ExecutorLock&) = delete;

 private:
  std::atomic<bool>* busy_;
};

/// The index of an input or output given by index or name. `kind` is "input" or "output", for the IndexError
/// or KeyError.
BATON_DLL size_t FindTensor(const ArgValue& v, const std::vector<TensorInfo>& list, const char* kind);

/// Queries that never change and need no lock.
inline constexpr std::string_view kExecutorQueries[] = {"get_num_inputs", "get_num_outputs", "get_input_index",
                                                        "get_input_name", "get_output_name", "get_input_info",
                                                        "get_output_info"};
/// The id of the query of this name; -1 if there is none.
BATON_DLL int FindExecutorQuery(std::string_view name);
/// Answers a query. Shapes have -1 for a dynamic extent.
BATON_DLL void AnswerExecutorQuery(int query, const std::vector<TensorInfo>& inputs,
                                   const std::vector<TensorInfo>& outputs, Args args, RetValue* rv);

/// Four fields a dimension: name, least, largest, multiple.
BATON_DLL Array<Any> DimFields(const std::vector<Dim>& dims);

/// Whether nothing but the array leads to its elements: it is no view, and no memory of another library.
BATON_DLL bool OwnsElements(const NDArray& a);

/// Throws RuntimeError unless `tree` (ExecutableDesc::result_tree) is empty, or one tree of so many outputs.
BATON_DLL void CheckResultTree(const std::vector<int64_t>& tree, size_t outputs);
/// The result of a model, built from its flat outputs; `tree` has been checked.
BATON_DLL ObjectRef ResultValue(const std::vector<int64_t>& tree, const std::vector<NDArray>& outputs);

}  // namespace baton::runtime
