// SPDX-License-Identifier: Apache-2.0
#include "device/functions.h"

#include <baton/runtime/ndarray.h>
#include <baton/support/text.h>

#include <algorithm>

namespace baton::device {

using runtime::Args;
using runtime::TypeError;
using runtime::ValueError;
using support::Cat;
using support::Json;

namespace {

constexpr int64_t kMostSizes = 1024, kMostItems = int64_t{1} << 40;

/// Where sizes that are not given are read: (parameter, dimension) of each.
void ReadPlaces(const std::vector<Json>& places, Function* f) {
  for (const Json& place : places) {
    const std::vector<Json>& at = place.AsArray();
    const int64_t param = at.size() == 2 ? at[0].AsInt() : -1, dim = at.size() == 2 ? at[1].AsInt() : -1;
    if (param < 0 || param >= static_cast<int64_t>(f->params.size()) || dim < 0 ||
        dim >= static_cast<int64_t>(f->params[static_cast<size_t>(param)].shape.size())) {
      throw ValueError(Cat("`", f->name, "` reads a size where there is none"));
    }
    f->read.emplace_back(static_cast<size_t>(param), static_cast<size_t>(dim));
  }
}
/// The order of arguments: as it is written, else parameters and then the sizes that are given.
void ReadOrder(const Json* order, Function* f) {
  const auto params = static_cast<int64_t>(f->params.size()), given = static_cast<int64_t>(f->given());
  std::vector<int64_t> plain;
  for (int64_t i = 0; i < params; ++i) plain.push_back(i);
  for (int64_t i = 0; i < given; ++i) plain.push_back(-1 - i);
  if (order) {
    for (const Json& a : order->AsArray()) f->order.push_back(a.AsInt());
  } else {
    f->order = plain;
  }
  if (!std::is_permutation(f->order.begin(), f->order.end(), plain.begin(), plain.end())) {
    throw ValueError(Cat("the order of the arguments of `", f->name, "` does not name each once"));
  }
}
std::vector<Formula> Extents(const Json& j, const Function& f) {
  std::vector<Formula> extents;
  for (const Json& e : j.AsArray()) extents.push_back(Formula(e, f.sizes));
  if (extents.size() != 3) throw ValueError(Cat("`", f.name, "` has a kernel whose groups have not three dimensions"));
  return extents;
}

}  // namespace

std::vector<int64_t> Param::ShapeFor(const int64_t* sizes) const {
  std::vector<int64_t> out;
  for (const Formula& extent : shape) out.push_back(extent(sizes));
  return out;
}

std::vector<int64_t> Function::WorkspaceFor(const int64_t* sizes) const {
  std::vector<int64_t> offsets{0};
  for (const Formula& piece : workspace) {
    const int64_t bytes = piece(sizes);
    if (bytes < 0 || bytes > kMostItems || offsets.back() > kMostItems) {
      throw ValueError(Cat("`", name, "` asks for more workspace than there is"));
    }
    offsets.push_back(offsets.back() + (bytes + 63) / 64 * 64);
  }
  return offsets;
}

Program::Program(const std::string& text, std::string_view word, std::string_view kind) {
  if (text.compare(0, word.size(), word) != 0) {
    throw ValueError(
        Cat("this is not a program of Baton for ", kind, ": its first line does not say what functions it has"));
  }
  const std::string head = text.substr(word.size(), text.find('\n') - word.size());
  try {
    head_ = Json::Parse(head, (std::string(kind) + " program").c_str());
    for (const Json& n : head_.At("needs").AsArray()) needs_.push_back(n.AsString());
    for (const Json& f : head_.At("functions").AsArray()) Read(f);
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& e) {
    throw ValueError(e.what());
  }
}

const Function* Program::Find(std::string_view name) const {
  const bool only = name == "main" && functions_.size() == 1;
  for (const Function& f : functions_) {
    if (f.name == name || only) return &f;
  }
  return nullptr;
}

void Program::Read(const Json& j) {
  Function f;
  f.name = j.At("name").AsString();
  f.first = num_kernels_;
  const int64_t workspace = static_cast<int64_t>(j.At("workspace").AsArray().size());
  const int64_t given = j.At("sizes").AsInt();
  if (given < 0 || given > kMostSizes) throw ValueError("a number of sizes that is not possible");
  const Json* read = j.Find("read");
  f.sizes = static_cast<size_t>(given) + (read ? read->AsArray().size() : 0);
  if (f.sizes > kMostSizes) throw ValueError("a number of sizes that is not possible");
  for (const Json& piece : j.At("workspace").AsArray()) f.workspace.push_back(Formula(piece, f.sizes));
  for (const Json& p : j.At("params").AsArray()) {
    Param t{p.At("name").AsString(), String2DataType(p.At("dtype").AsString()), {}};
    bool literal = true;
    for (const Json& d : p.At("shape").AsArray()) {
      t.shape.push_back(Formula(d, f.sizes));
      literal = literal && t.shape.back().IsLiteral();
    }
    if (literal) runtime::TensorBytes(t.ShapeFor(nullptr), t.dtype);  // refuses what overflows, or is negative
    f.params.push_back(std::move(t));
  }
  if (read) ReadPlaces(read->AsArray(), &f);
  ReadOrder(j.Find("order"), &f);
  for (const Json& k : j.At("kernels").AsArray()) {
    Kernel kernel;
    kernel.name = k.At("name").AsString();
    if (const Json* groups = k.Find("groups")) {
      kernel.groups = Extents(*groups, f);
      kernel.threads = Extents(k.At("threads"), f);
    } else {
      kernel.items = Formula(k.At("items"), f.sizes);
      if (!f.sizes && kernel.items(nullptr) < 1) throw ValueError("a kernel without work-items");
    }
    for (const Json& a : k.At("args").AsArray()) {
      const int64_t v = a.AsInt();
      if (v >= static_cast<int64_t>(f.params.size()) || (v < 0 && -1 - v >= workspace)) {
        throw ValueError(Cat("kernel `", kernel.name, "` has an argument that its function lacks"));
      }
      kernel.args.push_back(v);
    }
    f.kernels.push_back(std::move(kernel));
  }
  num_kernels_ += f.kernels.size();
  functions_.push_back(std::move(f));
}

CallPlaces PlacesOf(const Function& f, const Args& args, DLDeviceType type, std::string_view kind) {
  if (args.size() != static_cast<int>(f.order.size())) {
    throw TypeError(Cat("`", f.name, "` takes ", f.params.size(), " tensors",
                        f.given() ? Cat(" and ", f.given(), " sizes") : std::string(), ", got ", args.size()));
  }
  std::vector<int64_t> sizes(f.given());
  std::vector<const DLTensor*> tensors(f.params.size());
  std::vector<std::string> wheres(f.params.size());
  for (int i = 0; i < args.size(); ++i) {
    const int64_t at = f.order[static_cast<size_t>(i)];
    if (at < 0) {
      sizes[static_cast<size_t>(-1 - at)] = args[i].As<int64_t>();
      continue;
    }
    const auto param = static_cast<size_t>(at);
    const Param& want = f.params[param];
    const std::string where = Cat("`", f.name, "`: argument ", i, " (`", want.name, "`) must ");
    if (args[i].is_null() || !args[i].Is<DLTensor*>()) {
      throw TypeError(Cat(where, "be a tensor, got ", runtime::ValueKindName(args[i].raw())));
    }
    tensors[param] = args[i].As<DLTensor*>();
    if (tensors[param]->ndim != static_cast<int>(want.shape.size())) {
      throw ValueError(Cat(where, "have ", want.shape.size(), " dimensions, got ", tensors[param]->ndim));
    }
    wheres[param] = where;
  }
  for (const auto& [param, dim] : f.read) sizes.push_back(tensors[param]->shape[dim]);
  std::vector<void*> places;
  int number = -1;
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Param& want = f.params[i];
    const std::string& where = wheres[i];
    const DLTensor* t = tensors[i];
    if (t->device.device_type != type || (number >= 0 && t->device.device_id != number)) {
      throw ValueError(Cat(where, "be on ", number < 0 ? std::string(kind) : runtime::Device2String({type, number}),
                           ", it is on ", runtime::Device2String(t->device)));
    }
    number = t->device.device_id;
    const std::vector<int64_t> shape = want.ShapeFor(sizes.data());
    const auto ndim = static_cast<int>(shape.size());
    if (t->ndim != ndim || DataType(t->dtype) != want.dtype || !std::equal(shape.begin(), shape.end(), t->shape)) {
      throw ValueError(Cat(where, "be ", runtime::TensorTypeString(shape.data(), ndim, want.dtype), ", got ",
                           runtime::TensorTypeString(t->shape, t->ndim, t->dtype)));
    }
    if (!runtime::IsContiguous(t)) throw ValueError(Cat(where, "be dense: give a copy"));
    places.push_back(static_cast<char*>(t->data) + t->byte_offset);
  }
  return {std::move(places), std::move(sizes), number};
}

CallPlaces AddressesOf(const Function& f, const Args& args) {
  CallPlaces call;
  const size_t params = f.params.size();
  if (args.size() != static_cast<int>(params + f.sizes)) {
    throw runtime::InternalError(Cat("`", f.name, "` takes ", params, " addresses and ", f.sizes, " sizes"));
  }
  for (size_t i = 0; i < params; ++i) call.places.push_back(args[static_cast<int>(i)].As<void*>());
  for (size_t i = 0; i < f.sizes; ++i) call.sizes.push_back(args[static_cast<int>(params + i)].As<int64_t>());
  return call;
}

Range RangeOf(const Function& f, const Kernel& kernel, const int64_t* sizes, size_t group, size_t most,
              std::string_view name) {
  Range range;
  if (kernel.groups.empty()) {
    const int64_t items = kernel.items(sizes);
    if (items < 0 || items > kMostItems) throw ValueError(Cat("`", f.name, "` asks for ", items, " work-items"));
    range.empty = items == 0;
    if (range.empty) return range;
    // Kernels pass over what is beyond their items, so that groups are full.
    const auto all = static_cast<size_t>(items);
    range.threads[0] = all < group ? all : group;
    range.groups[0] = (all + range.threads[0] - 1) / range.threads[0];
    return range;
  }
  int64_t all = 1, threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t blocks = kernel.groups[axis](sizes), thread = kernel.threads[axis](sizes);
    if (blocks < 0 || thread < 0 || blocks > kMostItems || thread > kMostItems ||
        (blocks && all > kMostItems / blocks) || (thread && threads > kMostItems / thread)) {
      throw ValueError(Cat("`", f.name, "` asks for ", blocks, " groups of ", thread, " work-items in kernel `",
                           kernel.name, "`, along ", std::string(1, "xyz"[axis])));
    }
    all *= blocks, threads *= thread;
    range.threads[axis] = static_cast<size_t>(thread);
    range.groups[axis] = static_cast<size_t>(blocks);
  }
  range.empty = all == 0 || threads == 0;
  if (threads > static_cast<int64_t>(most) && most > 0) {
    throw ValueError(Cat("kernel `", kernel.name, "` of `", f.name, "` has blocks of ", threads, " threads, ", name,
                         " takes at most ", static_cast<int64_t>(most),
                         "; split the axes that are bound to threadIdx"));
  }
  return range;
}

}  // namespace baton::device
