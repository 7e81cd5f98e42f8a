// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

using namespace baton::runtime;

namespace {

NDArray Iota(const std::vector<int64_t>& shape) {
  NDArray a = NDArray::Empty(shape, DataType::Float(32));
  float* p = static_cast<float*>(a.data());
  for (int64_t i = 0; i < a.numel(); ++i) p[i] = static_cast<float>(i);
  return a;
}

/// A tensor of ours as a foreign library would give it, which counts its releases.
template <class M>
struct Foreign {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  int released = 0;
  M managed{};
  Foreign() {
    managed.dl_tensor = DLTensor{data, Cpu(), 2, DataType::Float(32), shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](M* m) { ++static_cast<Foreign*>(m->manager_ctx)->released; };
  }
};

}  // namespace

TEST_CASE("an array has shape, type and aligned elements") {
  for (auto shape : std::vector<std::vector<int64_t>>{{}, {0}, {1}, {2, 3}, {3, 0, 2}, {1 << 20, 2}}) {
    NDArray a = NDArray::Zeros(shape, DataType::Float(32));
    CHECK(a.shape() == shape);
    CHECK(a.IsContiguous());
    CHECK(a.data() != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(a.data()) % 64 == 0);
    CHECK(a.nbytes() == size_t(a.numel()) * 4);
  }
  CHECK(NDArray::Empty({3}, DataType(kDLFloat4_e2m1fn, 4)).nbytes() == 3);  // one element a byte
  CHECK(NDArray::Empty({2, 3}, DataType::BFloat16()).Summary() == "bfloat16[2, 3] on cpu(0)");
  CHECK(NDArray::Scalar(2.5, DataType::Float(16)).ToString() == "2.5");
  CHECK(NDArray::Scalar(1, DataType::Float(64)).GetDouble(0) == 1);  // converted, not copied byte by byte
  CHECK(NDArray::Scalar(int64_t(7), DataType::Int(64)).ToString() == "7");
}

TEST_CASE("what cannot be is an error") {
  CHECK_THROWS_WITH(NDArray::Empty({2, -1}, DataType::Float(32)), "negative extent -1 in dimension 1");
  CHECK_THROWS_AS(NDArray::Empty({1ll << 40, 1ll << 40}, DataType::Float(32)), ValueError);
  CHECK_THROWS_AS(NDArray::Empty({1ll << 62}, DataType::Float(32)), ValueError);
  CHECK(NDArray::Empty({0, 1ll << 62, 8}, DataType::Float(32)).numel() == 0);
  CHECK_THROWS_AS(NDArray::Empty({1ll << 50}, DataType::Float(32)), Error);  // no machine has 4 PiB
  CHECK_THROWS_AS(NDArray::Empty({1}, DataType::Void()), ValueError);
  CHECK_THROWS_AS(NDArray::Empty({1}, DataType::Float(32), Device{kDLMAIA, 0}), RuntimeError);
  CHECK_THROWS_AS(NDArray::Empty(std::vector<int64_t>(65, 1), DataType::Float(32)), ValueError);
}

TEST_CASE("copies: bytes, arrays, strides") {
  NDArray a = Iota({2, 3});
  NDArray b = NDArray::Empty({2, 3}, DataType::Float(32));
  b.CopyFrom(a);
  CHECK(std::memcmp(a.data(), b.data(), 24) == 0);
  CHECK_THROWS_WITH(b.CopyFrom(Iota({3, 2})), "cannot copy float32[3, 2] into float32[2, 3]");
  CHECK_THROWS_AS(b.CopyFromBytes("abc", 3), ValueError);
  float out[6];
  b.CopyToBytes(out, sizeof(out));
  CHECK(out[5] == 5);
  // The transpose of a 2x3 array, read through strides and written through strides.
  int64_t shape[] = {3, 2}, strides[] = {1, 3};
  DLTensor t{a.data(), Cpu(), 2, DataType::Float(32), shape, strides, 0};
  CHECK_FALSE(IsContiguous(&t));
  NDArray c = NDArray::Empty({3, 2}, DataType::Float(32));
  c.CopyFrom(&t);
  const float* p = static_cast<const float*>(c.data());
  CHECK(std::vector<float>(p, p + 6) == std::vector<float>{0, 3, 1, 4, 2, 5});
  NDArray d = NDArray::Zeros({2, 3}, DataType::Float(32));
  DLTensor into = t;
  into.data = d.data();
  c.CopyTo(&into);
  CHECK(std::memcmp(a.data(), d.data(), 24) == 0);
  // Negative strides and dense inner blocks, in more dimensions.
  NDArray e = Iota({2, 3, 4});
  int64_t shape3[] = {2, 3, 4}, reversed[] = {-12, -4, 1};
  DLTensor r{static_cast<float*>(e.data()) + 20, Cpu(), 3, DataType::Float(32), shape3, reversed, 0};
  NDArray f = NDArray::Empty({2, 3, 4}, DataType::Float(32));
  f.CopyFrom(&r);
  CHECK(static_cast<const float*>(f.data())[0] == 20);
  CHECK(static_cast<const float*>(f.data())[4] == 16);
  CHECK(static_cast<const float*>(f.data())[23] == 3);
}

TEST_CASE("views share memory and keep it alive") {
  NDArray v;
  {
    NDArray a = Iota({2, 3});
    v = a.CreateView({6}, DataType::Float(32));
    CHECK(v.data() == a.data());
    CHECK_THROWS_AS(a.CreateView({7}, DataType::Float(32)), ValueError);
    CHECK_THROWS_AS(a.CreateView({4}, DataType::Float(64)), ValueError);
  }
  CHECK(v.ptr<float>()[5] == 5);
  CHECK_THROWS_AS(v.View({5}, DataType::Float(32)), ValueError);
  CHECK(v.View({3}, DataType::Float(64)).data() == v.data());
  CHECK(v.GetInt(4) == 4);
  CHECK_THROWS_AS(v.GetDouble(6), Error);
  CHECK(v.ToInts() == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("DLPack in: no copy, one release, faults leave the tensor to the caller") {
  Foreign<DLManagedTensor> f;
  {
    NDArray a = NDArray::FromDLPack(&f.managed);
    CHECK(a.data() == f.data);
    CHECK(a.shape() == std::vector<int64_t>{2, 3});
    NDArray b = a;
    NDArray view = a.CreateView({3, 2}, DataType::Float(32));
    a = NDArray();
    b = NDArray();
    CHECK(f.released == 0);
  }
  CHECK(f.released == 1);
  Foreign<DLManagedTensorVersioned> g;
  g.managed.version = {1, 7};
  g.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  {
    NDArray a = NDArray::FromDLPackVersioned(&g.managed);
    CHECK_THROWS_AS(a.CopyFrom(Iota({2, 3})), ValueError);
    CHECK_THROWS_AS(a.ToDLPack(), ValueError);
  }
  CHECK(g.released == 1);
  Foreign<DLManagedTensorVersioned> h;
  h.managed.version = {2, 0};
  CHECK_THROWS_AS(NDArray::FromDLPackVersioned(&h.managed), ValueError);
  h.managed.version = {1, 0};
  h.shape[0] = -1;
  CHECK_THROWS_AS(NDArray::FromDLPackVersioned(&h.managed), ValueError);
  h.shape[0] = 2;
  h.managed.dl_tensor.data = nullptr;
  CHECK_THROWS_AS(NDArray::FromDLPackVersioned(&h.managed), ValueError);
  h.managed.dl_tensor.ndim = 1 << 20;
  CHECK_THROWS_AS(NDArray::FromDLPackVersioned(&h.managed), ValueError);
  CHECK(h.released == 0);
  CHECK_THROWS_AS(NDArray::FromDLPack(static_cast<DLManagedTensor*>(nullptr)), ValueError);
}

TEST_CASE("an offset in bytes is taken into the pointer, and an array with strides comes in as it is") {
  Foreign<DLManagedTensor> f;
  f.managed.dl_tensor.byte_offset = 4;
  f.shape[0] = 1;
  NDArray a = NDArray::FromDLPack(&f.managed);
  CHECK(a.data() == f.data + 1);
  Foreign<DLManagedTensor> g;
  g.shape[0] = 3, g.shape[1] = 2, g.strides[0] = 1, g.strides[1] = 3;
  NDArray b = NDArray::FromDLPack(&g.managed);
  CHECK_FALSE(b.IsContiguous());
  NDArray c = b.Contiguous();
  CHECK(static_cast<float*>(c.data())[1] == 3);
  CHECK(b.ToString() == "[[0, 3],\n [1, 4],\n [2, 5]]");
}

TEST_CASE("DLPack out: a reference until the deleter runs") {
  NDArray a = Iota({2, 3});
  DLManagedTensor* m = a.ToDLPack();
  DLManagedTensorVersioned* v = a.ToDLPackVersioned();
  CHECK(a.obj()->use_count() == 3);
  CHECK(m->dl_tensor.data == a.data());
  CHECK(m->dl_tensor.strides[0] == 3);
  CHECK(v->version.major == 1);
  m->deleter(m);
  v->deleter(v);
  CHECK(a.obj()->use_count() == 1);
  NDArray back = NDArray::FromDLPackVersioned(a.ToDLPackVersioned());
  CHECK(back.data() == a.data());
}

TEST_CASE("the C functions") {
  NDArray a = Iota({2, 3});
  auto* handle = reinterpret_cast<BatonObject*>(ObjectAccess::Get(a));
  DLTensor* view = nullptr;
  CHECK(BatonTensorView(handle, &view) == 0);
  CHECK(view->data == a.data());
  DLManagedTensorVersioned* m = nullptr;
  CHECK(BatonTensorToDLPack(handle, &m) == 0);
  BatonObject* out = nullptr;
  CHECK(BatonTensorFromDLPack(m, &out) == 0);
  BatonObjectRelease(out);
  CHECK(a.obj()->use_count() == 1);
  CHECK(BatonTensorView(nullptr, &view) == -1);
  CHECK(BatonTensorToDLPack(nullptr, &m) == -1);
  CHECK(BatonTensorFromDLPack(nullptr, &out) == -1);
  CHECK(std::string(BatonErrorKind()) == "ValueError");
  BatonErrorPut(nullptr);
  // A function that takes a tensor takes an array; None is refused, not followed.
  CHECK_THROWS_AS((*Registry::Get("runtime.NDArrayToString"))(nullptr), Error);
  CHECK((*Registry::Get("runtime.NDArrayShape"))(a).As<Array<int64_t>>().size() == 2);
}

TEST_CASE("elements that are made when they are asked for") {
  int made = 0;
  const PackedFunc source([&made](Args, RetValue* rv) { ++made, *rv = Iota({2, 3}); });
  const NDArray a = NDArray::Later({2, 3}, DataType::Float(32), source);
  CHECK(a.Away());
  CHECK(a.nbytes() == 24);
  CHECK(made == 0);
  CHECK(a.GetDouble(5) == 5);
  CHECK(!a.Away());
  CHECK(made == 1);
  a.GiveBack();
  CHECK(a.Away());
  CHECK(a.ToString() == Iota({2, 3}).ToString());
  CHECK(made == 2);
  // What lends them keeps them.
  const NDArray view = a.View({6}, DataType::Float(32));
  a.GiveBack();
  CHECK(!a.Away());
  CHECK(view.data() == a.data());

  const NDArray b = NDArray::Later({2, 3}, DataType::Float(32), source);
  const NDArray room = NDArray::Empty({6}, DataType::Float(32));
  b.MoveTo(room.data(), room);
  CHECK(b.data() == room.data());
  CHECK(b.GetDouble(4) == 4);
  CHECK(!b.HasSource());

  const NDArray c =
      NDArray::Later({2, 3}, DataType::Float(32), PackedFunc([](Args, RetValue* rv) { *rv = Iota({6}); }));
  CHECK_THROWS_AS(c.data(), Error);
  CHECK(c.Away());
}

TEST_CASE("text of an array") {
  CHECK(Iota({3}).ToString() == "[0, 1, 2]");
  CHECK(Iota({0}).ToString() == "[]");
  CHECK(Iota({2, 2, 2}).ToString() == "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
  const std::string long_text = Iota({5000}).ToString();
  CHECK(long_text == "[0, 1, 2, 3, 4, 5, 6, 7, ..., 4992, 4993, 4994, 4995, 4996, 4997, 4998, 4999]");
  NDArray h = NDArray::Empty({2}, DataType::Bool());
  h.CopyFromBytes("\0\1", 2);
  CHECK(h.ToString() == "[false, true]");
}

TEST_CASE("devices have names") {
  CHECK(Device2String(Cpu(1)) == "cpu(1)");
  CHECK(String2Device("cuda(2)") == Device{kDLCUDA, 2});
  CHECK(String2Device("cpu") == Cpu());
  CHECK(String2Device("cpu:3") == Cpu(3));
  for (const char* bad : {"", "x", "cpu(", "cpu()", "cpu(x)", "cpu(-1)", "cpu:"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(String2Device(bad), ValueError);
  }
}
