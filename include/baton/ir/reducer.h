// SPDX-License-Identifier: Apache-2.0
// Arguments of a class's own SEqualReduce and SHashReduce, as in Relay. By default Baton derives both from the field
// table.
#pragma once

#include <baton/runtime/reflection.h>

namespace baton {

/// Compares two values: objects structurally, floats by their bits (all NaN are one), others by value.
class BATON_DLL SEqualReducer {
 public:
  explicit SEqualReducer(bool map_free_vars = false) : map_free_vars_(map_free_vars) {}
  bool operator()(double a, double b) const;
  bool operator()(int64_t a, int64_t b) const { return a == b; }
  bool operator()(uint64_t a, uint64_t b) const { return a == b; }
  bool operator()(int a, int b) const { return a == b; }
  bool operator()(bool a, bool b) const { return a == b; }
  bool operator()(const std::string& a, const std::string& b) const { return a == b; }
  bool operator()(const DataType& a, const DataType& b) const { return a == b; }
  bool operator()(const ObjectRef& a, const ObjectRef& b) const;
  /// Compares all fields of two objects of one type that belong to their value.
  bool Fields(const Object* a, const Object* b) const;

 private:
  bool map_free_vars_;
};

/// Combines values into a hash; equal values give equal hashes.
class BATON_DLL SHashReducer {
 public:
  explicit SHashReducer(uint64_t* hash, bool map_free_vars = false) : hash_(hash), map_free_vars_(map_free_vars) {}
  void operator()(double x) const;
  void operator()(int64_t x) const { Mix(static_cast<uint64_t>(x)); }
  void operator()(uint64_t x) const { Mix(x); }
  void operator()(int x) const { Mix(static_cast<uint64_t>(static_cast<int64_t>(x))); }
  void operator()(bool x) const { Mix(x); }
  void operator()(const std::string& x) const;
  void operator()(const DataType& x) const;
  void operator()(const ObjectRef& x) const;
  /// Hashes all fields of an object that belong to its value.
  void Fields(const Object* obj) const;

 private:
  void Mix(uint64_t x) const;
  uint64_t* hash_;
  bool map_free_vars_;
};

}  // namespace baton
