// SPDX-License-Identifier: Apache-2.0
// `contrib_set_row` of a program: the rows that a loop collects are written in place. The function copies once, into
// an array that it knows again; an array that it made and that nothing else refers to is written to.
#include <baton/runtime/error.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace baton::vm {
namespace {

using runtime::NDArray;
using runtime::NDArrayObj;
using runtime::PackedFunc;

/// Arrays that own their elements, which no view shares.
struct Made {
  std::mutex mutex;
  std::unordered_set<const NDArrayObj*> arrays;

  bool Has(const NDArrayObj* a) {
    std::lock_guard lock(mutex);
    return arrays.count(a) > 0;
  }
  static Made& Get() {
    static Made* made = new Made;  // arrays may outlive statics
    return *made;
  }
};

/// Lives as long as the array does.
struct Mark {
  const NDArrayObj* array = nullptr;
  ~Mark() {
    std::lock_guard lock(Made::Get().mutex);
    Made::Get().arrays.erase(array);
  }
};

NDArray Fresh(const NDArray& from) {
  const NDArray memory = from.Copy(runtime::Cpu());
  auto mark = std::make_shared<Mark>();
  // The array refers to this function, which holds its elements.
  const PackedFunc owner([memory, mark](runtime::Args, runtime::RetValue*) {});
  NDArray made = NDArray::Wrap(memory.data(), memory.shape(), memory.dtype(), owner);
  mark->array = static_cast<const NDArrayObj*>(made.get());
  std::lock_guard lock(Made::Get().mutex);
  Made::Get().arrays.insert(mark->array);
  return made;
}

void SetRow(runtime::Args args, runtime::RetValue* rv) {
  if (args.size() != 3) throw runtime::RuntimeError("contrib_set_row takes 3 tensors");
  const auto data = args[0].As<NDArray>(), row = args[1].As<NDArray>();
  const auto* d = static_cast<const NDArrayObj*>(data.get());
  const int64_t at = args[2].As<NDArray>().Contiguous().GetInt(0);
  const size_t bytes = row.nbytes();
  const int64_t rows = data.ndim() ? data.tensor()->shape[0] : 0;
  if (at < 0 || at >= rows || data.nbytes() != bytes * static_cast<size_t>(rows)) {
    throw runtime::RuntimeError(support::Cat("contrib_set_row: row ", at, " of ", rows, " rows"));
  }
  // Two references: the caller's and `data`.
  const bool ours = d->use_count() == 2 && Made::Get().Has(d);
  const NDArray out = ours ? data : Fresh(data);
  if (bytes)
    std::memcpy(static_cast<char*>(out.data()) + static_cast<size_t>(at) * bytes, row.Contiguous().data(), bytes);
  *rv = out;
}

BATON_REGISTER_GLOBAL("host.contrib_set_row").set_body_typed([](runtime::String) { return PackedFunc(SetRow); });

}  // namespace
}  // namespace baton::vm
