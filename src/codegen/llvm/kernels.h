// SPDX-License-Identifier: Apache-2.0
// Kernels of a device whose processor LLVM knows, out of the bodies that codegen/kernels cuts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/kernels/kernel.h"

namespace baton::codegen {

/// A device's processor as LLVM knows it.
struct DeviceProcessor {
  std::string triple, cpu, features;
};

/// LLVM's module of kernels. A kernel takes a pointer of the device's memory for each buffer, then an int64 for each
/// size, and has no result.
class KernelModule {
 public:
  KernelModule(const DeviceProcessor& processor, const Target& target);
  KernelModule(const KernelModule&) = delete;
  ~KernelModule();

  /// `*args` gets the data variables of the buffers in the order of the parameters. Throws UnsupportedError that names
  /// `function` for what a kernel cannot do.
  void Add(const kernels::KernelBody& kernel, const std::vector<tir::Var>& sizes, const std::string& function,
           std::vector<const Object*>* args);
  /// Runs LLVM's passes. Called once, behind all `Add`.
  void Optimize();
  /// LLVM IR, or the assembly text of the processor.
  std::string Ir() const;
  std::string Assembly() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace baton::codegen
