// SPDX-License-Identifier: Apache-2.0
// What all executors do alike: they refuse a second caller, and say what their model takes and gives.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>

#include <atomic>
#include <string_view>
#include <vector>

namespace baton::runtime {

/// One caller at a time: the second one is told, not made to wait, since results would be mixed up all the same. Throws
/// RuntimeError where `busy` is set; null asks for nothing.
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

/// The place of an input or output that is given by number or name. `kind` is "input" or "output", for the IndexError
/// or KeyError.
BATON_DLL size_t FindTensor(const ArgValue& v, const std::vector<TensorInfo>& list, const char* kind);

/// Queries that never change and need no lock.
inline constexpr std::string_view kExecutorQueries[] = {"get_num_inputs", "get_num_outputs", "get_input_index",
                                                        "get_input_name", "get_output_name", "get_input_info",
                                                        "get_output_info"};
/// The number of a query of that name; -1 if it is none.
BATON_DLL int FindExecutorQuery(std::string_view name);
/// Answers it. Shapes have -1 for an extent that is open.
BATON_DLL void AnswerExecutorQuery(int query, const std::vector<TensorInfo>& inputs,
                                   const std::vector<TensorInfo>& outputs, Args args, RetValue* rv);

/// Throws RuntimeError unless `tree` (ExecutableDesc::result_tree) is empty, or one tree of so many outputs.
BATON_DLL void CheckResultTree(const std::vector<int64_t>& tree, size_t outputs);
/// The value that a model gives, from its outputs in a row; `tree` has been checked.
BATON_DLL ObjectRef ResultValue(const std::vector<int64_t>& tree, const std::vector<NDArray>& outputs);

}  // namespace baton::runtime
