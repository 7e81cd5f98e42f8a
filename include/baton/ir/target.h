// SPDX-License-Identifier: Apache-2.0
// Compilation targets: "llvm -mcpu=sapphirerapids -mattr=+avx512f,-amx-tile -mtriple=... -opt-level=2".
#pragma once

#include <baton/ir/attrs.h>
#include <baton/support/with.h>

#include <string>
#include <vector>

namespace baton {

/// Answers of a kind of target to passes, schedules and the driver. The folder of code generation
/// that makes the code registers it: a new device adds a folder.
struct TargetKind {
  std::string name;
  std::vector<int64_t> devices;  ///< that run its code, by DLPack's ids, the usual one first
  bool on_host = false;          ///< machine code of this process; else the text of a device's program
  bool vector_kernels = false;   ///< kernels for registers and caches: blocked layouts, packed weights, tiles
  bool plain_loops = false;      ///< loops as people write them: one thread, no vectors
  bool work_items = false;       ///< the rounds of parallel loops are work-items of a device of many threads
  std::string no_processor;      ///< why it takes no options of a processor (-mcpu, ...); empty: it does
  std::string labels = {};       ///< further options, by spaces, that programs read and code does not depend on
};
/// Adds a kind; throws InternalError for a name that is taken.
BATON_DLL void RegisterTargetKind(TargetKind kind);
/// The registered ones, by name.
BATON_DLL std::vector<const TargetKind*> TargetKinds();
/// The kind whose code runs on a device of this type; null if there is none.
BATON_DLL const TargetKind* TargetKindFor(int64_t device_type);

struct BATON_DLL TargetNode : Node<TargetNode, Object> {
  static constexpr const char* _type_key = "Target";
  String kind = "llvm";
  String mcpu;
  String mtriple;
  String mattr;
  int64_t opt_level = 2;
  int64_t num_cores = 0;
  String options;
  Array<String> features;
  static constexpr void Describe(auto& d) {
    d(F<&TargetNode::kind>, "Code generator, \"llvm\" for one; or a kind that only programs ask about.");
    d(F<&TargetNode::mcpu>, "Processor by LLVM's name; \"\" is this machine's.");
    d(F<&TargetNode::mtriple>, "LLVM triple; \"\" is this machine's.");
    d(F<&TargetNode::mattr>, "Further features, as \"+avx512f,-amx-tile\".");
    d(F<&TargetNode::opt_level>, "LLVM's optimisation level, 0 to 3.", AtLeast(0), AtMost(3));
    d(F<&TargetNode::num_cores>, "Cores to plan parallel loops for; 0 is this machine's.", AtLeast(0));
    d(F<&TargetNode::options>, "Further options as they were written: words that programs look for.");
    d(F<&TargetNode::features>, "Features it has, by LLVM's names, sorted; filled by Make.", runtime::kIgnored);
  }
  bool Has(std::string_view feature) const;
  /// Width of the vectors to use, in bits: 512, 256 or 128.
  int64_t vector_bits() const;
  /// Lanes of one vector of `dtype`.
  int64_t Lanes(DataType dtype) const { return vector_bits() / dtype.bits(); }
  /// Number of vector registers: 32 or 16.
  int64_t vector_registers() const { return vector_bits() == 512 ? 32 : 16; }
  /// Throws UnsupportedError for a kind without a code generator.
  void CheckCode() const;
  /// Throws as CheckCode does.
  const TargetKind& traits() const;
  /// DLPack's id of the device type.
  int device_type() const;
  bool is_host() const { return mcpu.empty() && mtriple.empty(); }
};
class BATON_DLL Target : public RefTo<TargetNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  /// Reads a target string; unknown kinds and options are errors that list the known ones. "llvm" is this machine.
  static Target Make(std::string_view text);
  static Target Host() { return Make("llvm"); }
  /// The target string; Make reads it back.
  std::string str() const;
  /// The innermost target entered on this thread, else the host.
  static Target Current();

 private:
  /// C++ enters a target by With<Target>, which leaves it too; other languages by registered functions.
  friend class With<Target>;
  friend struct TargetScopes;
  void EnterWithScope();
  void ExitWithScope();
};

}  // namespace baton
