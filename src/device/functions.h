// SPDX-License-Identifier: Apache-2.0
// The functions of a device's program, as its first line describes them: each is a row of kernels that takes a tensor
// for each parameter, then the sizes that its shapes follow from, and has no result.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/module.h>
#include <baton/support/json.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/formula.h"

namespace baton::device {

struct Kernel {
  std::string name;
  std::vector<int64_t> args;             ///< parameter, or -1 - (number in the workspace)
  Formula items;                         ///< of one dimension, where there are no groups
  std::vector<Formula> groups, threads;  ///< of three dimensions each: blocks, and threads of one
};
struct Param {
  std::string name;
  DataType dtype;
  std::vector<Formula> shape;
  std::vector<int64_t> ShapeFor(const int64_t* sizes) const;
};
struct Function {
  std::string name;
  std::vector<Param> params;
  size_t sizes = 0;                             ///< all of them: those given, then those read
  std::vector<std::pair<size_t, size_t>> read;  ///< parameter and dimension of each that its shape says
  std::vector<int64_t> order;                   ///< parameters, and -1 - (number of a size), as arguments come
  std::vector<Formula> workspace;               ///< bytes of each piece
  std::vector<Kernel> kernels;
  size_t first = 0;  ///< number of its first kernel in the program
  size_t given() const { return sizes - read.size(); }
  /// Offsets of the pieces of the workspace, and behind them its bytes. Throws ValueError for more than there can be.
  std::vector<int64_t> WorkspaceFor(const int64_t* sizes) const;
};

/// The blocks and threads of a launch.
struct Range {
  bool empty = false;
  size_t groups[3] = {1, 1, 1}, threads[3] = {1, 1, 1};
};
/// `group`: threads of a block where the kernel leaves it open; `most`: those that the device `name` takes, 0 for any.
/// Throws ValueError for a launch that is not possible.
Range RangeOf(const Function& f, const Kernel& kernel, const int64_t* sizes, size_t group, size_t most,
              std::string_view name);

/// The arguments of a call.
struct CallPlaces {
  std::vector<void*> places;   ///< of the parameters
  std::vector<int64_t> sizes;  ///< all
  int number = -1;             ///< of the device; -1 without parameters
};

class Program {
 public:
  /// Reads the head of a program: the line behind `word`. Throws ValueError for one that is damaged; `kind` names it
  /// in errors.
  Program(const std::string& text, std::string_view word, std::string_view kind);
  const std::vector<std::string>& needs() const { return needs_; }
  const std::vector<Function>& functions() const { return functions_; }
  /// The rest of the head, for what a device says there.
  const support::Json& head() const { return head_; }
  /// Null where there is none. A program of one function has it as "main", too.
  const Function* Find(std::string_view name) const;

 private:
  void Read(const support::Json& j);
  support::Json head_;
  std::vector<std::string> needs_;
  std::vector<Function> functions_;
  size_t num_kernels_ = 0;
};

/// Tensors and sizes that a function is called with. Throws TypeError or ValueError where they do not fit it: other
/// dtypes, shapes or devices. `kind`: "an OpenCL device".
CallPlaces PlacesOf(const Function& f, const runtime::Args& args, DLDeviceType type, std::string_view kind);
/// The same of a call by addresses, then all sizes.
CallPlaces AddressesOf(const Function& f, const runtime::Args& args);

}  // namespace baton::device
