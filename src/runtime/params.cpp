// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/bytes.h>
#include <baton/runtime/params.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/file.h>
#include <baton/support/text.h>

#include <stdexcept>

namespace baton::runtime {
using support::Cat;
namespace {

constexpr uint64_t kListMagic = 0xF7E58D4F05049CB7u, kArrayMagic = 0xDD5E40F096B4A13Fu;

Map<String, NDArray> Load(support::ByteReader* r) {
  if (r->remaining() < 8 || r->Read<uint64_t>("magic number") != kListMagic) {
    r->Fail("not a parameter file: its first 8 bytes are others");
  }
  r->Read<uint64_t>("reserved");
  // A name takes at least its length.
  const uint64_t count = r->ReadCount(8, "number of names");
  std::vector<String> names;
  for (uint64_t i = 0; i < count; ++i) names.emplace_back(r->ReadString("name"));
  const uint64_t arrays = r->Read<uint64_t>("number of arrays");
  if (arrays != count) r->Fail(Cat(count, " names but ", arrays, " arrays"));
  Map<String, NDArray> out;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name(names[i].view());
    if (r->Read<uint64_t>("array's magic number") != kArrayMagic)
      r->Fail(Cat("array `", name, "` does not begin as one"));
    r->Read<uint64_t>("reserved");
    r->Read<int32_t>("device type");  // where it was does not matter
    r->Read<int32_t>("device id");
    const int32_t ndim = r->Read<int32_t>("rank");
    DLDataType type;
    type.code = r->Read<uint8_t>("dtype");
    type.bits = r->Read<uint8_t>("dtype");
    type.lanes = r->Read<uint16_t>("dtype");
    if (ndim < 0 || ndim > 64) r->Fail(Cat("array `", name, "` has rank ", ndim));
    // Booleans were unsigned integers of one bit, kept in a byte.
    if (type.code == kDLUInt && type.bits == 1) type = DataType::Bool(type.lanes);
    if (type.bits == 0 || type.lanes == 0 || type.code > kDLFloat4_e2m1fn || type.code == kDLOpaqueHandle) {
      r->Fail(Cat("array `", name, "` has a dtype that is not known: code ", type.code, ", ", type.bits, " bits, ",
                  type.lanes, " lanes"));
    }
    std::vector<int64_t> shape;
    for (int32_t d = 0; d < ndim; ++d) shape.push_back(r->Read<int64_t>("shape"));
    size_t bytes = 0;
    try {
      bytes = TensorBytes(shape, type);
    } catch (const Error& e) {
      r->Fail(Cat("array `", name, "`: ", e.message()));
    }
    const int64_t stored = r->Read<int64_t>("size in bytes");
    if (stored < 0 || static_cast<uint64_t>(stored) != bytes) {
      r->Fail(Cat("array `", name, "` says ", stored, " bytes, its shape takes ", bytes));
    }
    const uint8_t* data = r->ReadBytes(bytes, "elements");
    if (out.count(names[i])) r->Fail(Cat("two arrays are called `", name, "`"));
    out.Set(names[i], NDArray::FromBytes(data, shape, type));
  }
  r->ExpectEnd();
  return out;
}

}  // namespace

std::string SaveParams(const Map<String, NDArray>& params) {
  support::ByteWriter w;
  w.Write(kListMagic);
  w.Write<uint64_t>(0);
  w.Write<uint64_t>(params.size());
  for (const auto& [name, array] : params) w.WriteString(name.view());
  w.Write<uint64_t>(params.size());
  for (const auto& [name, value] : params) {
    if (!value.defined()) throw ValueError(Cat("parameter `", name.view(), "` is None"));
    const NDArray a = value.Contiguous();
    DLDataType type = a.dtype();
    if (DataType(type).is_bool()) type = DataType::UInt(1, type.lanes);
    w.Write(kArrayMagic);
    w.Write<uint64_t>(0);
    w.Write<int32_t>(kDLCPU);
    w.Write<int32_t>(0);
    w.Write<int32_t>(a.ndim());
    w.Write<uint8_t>(type.code);
    w.Write<uint8_t>(type.bits);
    w.Write<uint16_t>(type.lanes);
    for (int i = 0; i < a.ndim(); ++i) w.Write<int64_t>(a.dim(i));
    w.Write<int64_t>(static_cast<int64_t>(a.nbytes()));
    w.WriteBytes(a.data(), a.nbytes());
  }
  return w.Take();
}

Map<String, NDArray> LoadParams(std::string_view bytes, const char* what) {
  support::ByteReader r(bytes.data(), bytes.size(), what);
  try {
    return Load(&r);
  } catch (const std::runtime_error& e) {
    throw RuntimeError(e.what());
  }
}

namespace {
BATON_REGISTER_GLOBAL("runtime.SaveParams").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = Bytes(SaveParams(args[0].As<Map<String, NDArray>>()));
}));
BATON_REGISTER_GLOBAL("runtime.LoadParams").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = LoadParams(args[0].As<Bytes>().view());
}));
BATON_REGISTER_GLOBAL("runtime.SaveParamsToFile").set_body(PackedFunc([](Args args, RetValue*) {
  support::WriteFileAtomic(args[1].As<std::string>(), SaveParams(args[0].As<Map<String, NDArray>>()));
}));
BATON_REGISTER_GLOBAL("runtime.LoadParamsFromFile").set_body(PackedFunc([](Args args, RetValue* rv) {
  const std::string path = args[0].As<std::string>();
  const support::MappedFile file(path);
  *rv = LoadParams(file.text(), path.c_str());
}));
}  // namespace

}  // namespace baton::runtime
