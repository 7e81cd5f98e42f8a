// SPDX-License-Identifier: Apache-2.0
// Objects, references, counting and the memory that they come from.
#include <baton/runtime/array.h>
#include <baton/runtime/block.h>
#include <baton/runtime/map.h>
#include <baton/runtime/reflection.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "../support/on_stack.h"

using namespace baton;           // NOLINT
using namespace baton::runtime;  // NOLINT

namespace {

int alive = 0;

class BaseObj : public Object {
 public:
  static constexpr const char* _type_key = "test.Base";
  static constexpr uint32_t _type_child_slots = 1;
  BATON_DECLARE_BASE_OBJECT_INFO(BaseObj, Object)
};
class FirstObj : public BaseObj {
 public:
  static constexpr const char* _type_key = "test.First";
  BATON_DECLARE_FINAL_OBJECT_INFO(FirstObj, BaseObj)
};
class SecondObj : public BaseObj {
 public:
  static constexpr const char* _type_key = "test.Second";
  BATON_DECLARE_FINAL_OBJECT_INFO(SecondObj, BaseObj)
};
class StrictObj : public Object {
 public:
  static constexpr const char* _type_key = "test.Strict";
  static constexpr uint32_t _type_child_slots = 1;
  static constexpr bool _type_child_slots_can_overflow = false;
  BATON_DECLARE_BASE_OBJECT_INFO(StrictObj, Object)
};
class StrictOneObj : public StrictObj {
 public:
  static constexpr const char* _type_key = "test.StrictOne";
  BATON_DECLARE_FINAL_OBJECT_INFO(StrictOneObj, StrictObj)
};
class StrictTwoObj : public StrictObj {
 public:
  static constexpr const char* _type_key = "test.StrictTwo";
  BATON_DECLARE_FINAL_OBJECT_INFO(StrictTwoObj, StrictObj)
};
class CountedObj : public Object {
 public:
  static constexpr const char* _type_key = "test.Counted";
  ObjectRef next;
  CountedObj() { ++alive; }
  ~CountedObj() { --alive; }
  BATON_DECLARE_FINAL_OBJECT_INFO(CountedObj, Object)
};
class Counted : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Counted, ObjectRef, CountedObj)
};
class ThrowingObj : public Object {
 public:
  static constexpr const char* _type_key = "test.Throwing";
  ThrowingObj() { throw ValueError("no"); }
  BATON_DECLARE_FINAL_OBJECT_INFO(ThrowingObj, Object)
};
struct alignas(64) WideObj : public Object {
  static constexpr const char* _type_key = "test.Wide";
  char bytes[64] = {};
  BATON_DECLARE_FINAL_OBJECT_INFO(WideObj, Object)
};

/// States its members in VisitAttrs, of every kind that there is.
class VisitedObj : public Object {
 public:
  double d = 0.5;
  int64_t i64 = -1;
  uint64_t u64 = 7;
  int i = 3;
  bool b = true;
  std::string s = "text";
  void* p = nullptr;
  DataType t = DataType::Float(32);
  Array<int64_t> list;
  ObjectRef any;
  void VisitAttrs(AttrVisitor* v) {
    v->Visit("d", &d), v->Visit("i64", &i64), v->Visit("u64", &u64), v->Visit("i", &i), v->Visit("b", &b);
    v->Visit("s", &s), v->Visit("p", &p), v->Visit("t", &t), v->Visit("list", &list), v->Visit("any", &any);
  }
  static constexpr const char* _type_key = "test.Visited";
  BATON_DECLARE_FINAL_OBJECT_INFO(VisitedObj, Object)
};
/// The same in Baton's own style.
struct DescribedObj : Node<DescribedObj, Object> {
  static constexpr const char* _type_key = "test.Described";
  int64_t first = 1;
  String second = "two";
  static constexpr void Describe(auto& d) {
    d(F<&DescribedObj::first>, "A number.");
    d(F<&DescribedObj::second>, "A text.");
  }
};
const RegisterNodes<VisitedObj, DescribedObj> registered;

struct Names : AttrVisitor {
  std::string seen;
  void Add(const char* key, const char* kind) { seen += std::string(key) + ":" + kind + " "; }
  void Visit(const char* key, double*) final { Add(key, "double"); }
  void Visit(const char* key, int64_t*) final { Add(key, "int64"); }
  void Visit(const char* key, uint64_t*) final { Add(key, "uint64"); }
  void Visit(const char* key, int*) final { Add(key, "int"); }
  void Visit(const char* key, bool*) final { Add(key, "bool"); }
  void Visit(const char* key, std::string*) final { Add(key, "string"); }
  void Visit(const char* key, void**) final { Add(key, "handle"); }
  void Visit(const char* key, DataType*) final { Add(key, "dtype"); }
  void Visit(const char* key, ObjectRef*) final { Add(key, "object"); }
};

/// On the stack, so that what is protected can be looked at.
struct Bare : Object {
  int32_t count() const { return ref_counter_.load(); }
  FDeleter deleter() const { return deleter_; }
  void Up() { IncRef(); }
  void Down() { DecRef(); }
  void Deletes(FDeleter f) { deleter_ = f; }
};

}  // namespace

TEST_CASE("OB-001 OB-004 every object knows its type's key, index and hash") {
  auto o = make_object<CountedObj>();
  CHECK(o->GetTypeKey() == "test.Counted");
  CHECK(o->type_index() == CountedObj::RuntimeTypeIndex());
  CHECK(o->GetTypeKeyHash() == Object::TypeIndex2KeyHash(o->type_index()));
}

TEST_CASE("OB-002 OB-003 OB-005 keys and indices map to each other, unknown ones are errors") {
  for (const char* key : {"runtime.Object", "runtime.Array", "test.Base", "test.First"}) {
    (void)FirstObj::RuntimeTypeIndex();
    CHECK(Object::TypeIndex2Key(Object::TypeKey2Index(key)) == key);
  }
  CHECK_THROWS_WITH(Object::TypeKey2Index("no.such.type"), doctest::Contains("no.such.type"));
  CHECK_THROWS_WITH(Object::TypeIndex2Key(1u << 30), doctest::Contains("unknown type index"));
  CHECK(Object::FindTypeKey("no.such.type") == -1);
}

TEST_CASE("OB-006 OB-008 one key, one index, always") {
  const uint32_t index = FirstObj::RuntimeTypeIndex();
  CHECK(FirstObj::_GetOrAllocRuntimeTypeIndex() == index);
  CHECK(Object::GetOrAllocRuntimeTypeIndex("test.First", TypeIndex::kDynamic, 0, 0, true) == index);
  CHECK(Object::RuntimeTypeIndex() == Object::_GetOrAllocRuntimeTypeIndex());
}

TEST_CASE("OB-007 defaults of Object") {
  CHECK(std::string(Object::_type_key) == "runtime.Object");
  CHECK_FALSE(Object::_type_final);
  CHECK(Object::_type_child_slots == 0);
  CHECK(Object::_type_child_slots_can_overflow);
  CHECK(Object::_type_has_method_visit_attrs);
  CHECK_FALSE(Object::_type_has_method_sequal_reduce);
  CHECK_FALSE(Object::_type_has_method_shash_reduce);
  CHECK(Object::_type_index == TypeIndex::kDynamic);
}

TEST_CASE("OB-009 OB-010 OB-012 child slots, overflow, and types that forbid it") {
  auto a = make_object<FirstObj>();
  auto b = make_object<SecondObj>();
  CHECK(a->type_index() == BaseObj::RuntimeTypeIndex() + 1);
  CHECK(b->type_index() > BaseObj::RuntimeTypeIndex() + BaseObj::_type_child_slots);
  CHECK(a->IsInstance<BaseObj>());
  CHECK(b->IsInstance<BaseObj>());
  CHECK(a->IsInstance<Object>());
  CHECK_FALSE(a->IsInstance<SecondObj>());
  CHECK_FALSE(make_object<CountedObj>()->IsInstance<BaseObj>());
  (void)StrictOneObj::RuntimeTypeIndex();
  CHECK_THROWS_WITH(StrictTwoObj::RuntimeTypeIndex(), doctest::Contains("no child slot left"));
}

TEST_CASE("OB-011 fixed indices stay, others start after them") {
  CHECK(ArrayObj::RuntimeTypeIndex() == TypeIndex::kRuntimeArray);
  CHECK(MapObj::RuntimeTypeIndex() == TypeIndex::kRuntimeMap);
  CHECK(CountedObj::RuntimeTypeIndex() >= TypeIndex::kDynamic);
}

TEST_CASE("OB-013 OB-014 OB-018 references count, the count starts at 0") {
  Bare bare;
  CHECK(bare.count() == 0);
  CHECK(std::is_same_v<Object::RefCounterType, std::atomic<int32_t>>);
  alive = 0;
  Counted one(make_object<CountedObj>());
  CHECK(one.unique());
  {
    ObjectRef two = one;
    CHECK_FALSE(one.unique());
    CHECK(one->use_count() == 2);
    CHECK(two.same_as(one));
  }
  CHECK(one.unique());
  CHECK(alive == 1);
  one = Counted();
  CHECK(alive == 0);
  CHECK_FALSE(one.defined());
}

TEST_CASE("OB-015 OB-016 the deleter runs at zero; without one nothing is deleted; a bare object's type is 0") {
  static int deleted;
  deleted = 0;
  Bare bare;
  CHECK(bare.type_index() == 0);
  CHECK_FALSE(static_cast<bool>(bare.deleter()));
  bare.Up(), bare.Down();
  bare.Deletes([](Object*) { ++deleted; });
  bare.Up(), bare.Up(), bare.Down();
  CHECK(deleted == 0);
  bare.Down();
  CHECK(deleted == 1);
}

TEST_CASE("OB-017 copies and moves carry neither count nor deleter nor type") {
  auto o = make_object<CountedObj>();
  Object copy(*o), moved(std::move(*o));
  CHECK(copy.type_index() == 0);
  CHECK(moved.use_count() == 0);
  Object target;
  target = *o;
  CHECK(target.type_index() == 0);
  CHECK(o.unique());
  CHECK(o->type_index() == CountedObj::RuntimeTypeIndex());
}

TEST_CASE("OB-019 macros declare types and references") {
  CHECK(std::is_same_v<Counted::ContainerType, CountedObj>);
  CHECK(FirstObj::_type_final);
  CHECK(std::is_same_v<FirstObj::ParentType, BaseObj>);
}

TEST_CASE("OB-020 references made and dropped in 8 threads leave exactly one deletion") {
  alive = 0;
  Counted shared(make_object<CountedObj>());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([shared] {
      std::vector<ObjectRef> mine;
      for (int i = 0; i < 2000; ++i) {
        mine.push_back(shared);
        if (i % 3 == 0) mine.clear();
      }
    });
  }
  shared = Counted();
  for (auto& t : threads) t.join();
  CHECK(alive == 0);
}

TEST_CASE("OB-022 a chain of a million objects ends without recursion, in whatever thread") {
  alive = 0;
  auto chain = [] {
    ObjectRef head;
    for (int i = 0; i < 1'000'000; ++i) {
      auto n = make_object<CountedObj>();
      n->next = head;
      head = ObjectRef(n);
    }
    return head;
  };
  ObjectRef head = chain();
  CHECK(alive == 1'000'000);
  std::thread([&] { head = ObjectRef(); }).join();
  CHECK(alive == 0);
  head = chain();
  head = ObjectRef();
  CHECK(alive == 0);
}

TEST_CASE("OB-022 wide, deep and tangled objects end with 256 KiB of stack") {
  alive = 0;
  on_stack::OnStack(256 << 10, [] {
    // A tree of arrays within arrays, each with chains and with what others have too.
    std::vector<ObjectRef> level;
    for (int i = 0; i < 100'000; ++i) {
      auto n = make_object<CountedObj>();
      if (i % 3) n->next = level[i - 1];
      level.push_back(ObjectRef(n));
    }
    for (int depth = 0; level.size() > 1; ++depth) {
      std::vector<ObjectRef> above;
      for (size_t i = 0; i < level.size(); i += 50) {
        Array<ObjectRef> part;
        for (size_t k = i; k < std::min(level.size(), i + 60); ++k) part.push_back(level[k]);
        above.push_back(part);
      }
      level = std::move(above);
    }
    CHECK(alive == 100'000);
    level.clear();
    CHECK(alive == 0);
  });
}

TEST_CASE("a deleter that drops many objects does not hold them all until it ends") {
  struct Dropping : Object {
    int left = -1;
    ~Dropping() {
      for (int i = 0; i < 1000; ++i) make_object<CountedObj>();
      left = alive;
      seen() = left;
    }
    static int& seen() {
      static int n = -1;
      return n;
    }
  };
  alive = 0;
  {
    ObjectRef r(make_object<Dropping>());
  }
  CHECK(Dropping::seen() >= 0);
  CHECK(Dropping::seen() < 100);
  CHECK(alive == 0);
}

TEST_CASE("an object that is a member of another, at the end of a page") {
  struct Whole {
    unsigned char before[40];
    Bare member;
  };
  static int gone;
  gone = 0;
  Array<ObjectRef> all;
  for (int i = 0; i < 5000; ++i) {
    auto* w = new (AllocBlock(64)) Whole;
    w->member.Deletes([](Object* o) {
      ++gone;
      FreeBlock(reinterpret_cast<char*>(o) - offsetof(Whole, member), 64);
    });
    all.push_back(ObjectRef(ObjectPtr<Object>(&w->member)));
  }
  all = Array<ObjectRef>();
  CHECK(gone == 5000);
}

TEST_CASE("blocks that were dropped are used again before new pages are taken") {
  std::vector<void*> old, made;
  std::set<void*> dropped;
  for (int i = 0; i < 30'000; ++i) old.push_back(AllocBlock(80));
  for (size_t i = 0; i < old.size(); i += 3) {
    dropped.insert(old[i]);
    FreeBlock(old[i], 80);
  }
  for (int i = 0; i < 9'000; ++i) made.push_back(AllocBlock(80));
  size_t again = 0;
  for (void* p : made) again += dropped.count(p);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their memory is malloc's
  CHECK(again > 8'000);
#endif
  for (size_t i = 0; i < old.size(); ++i) {
    if (i % 3) FreeBlock(old[i], 80);
  }
  for (void* p : made) FreeBlock(p, 80);
}

TEST_CASE("a constructor that throws gives its memory back; alignment is kept") {
  for (int i = 0; i < 100; ++i) CHECK_THROWS_AS(make_object<ThrowingObj>(), ValueError);
  auto w = make_object<WideObj>();
  CHECK(reinterpret_cast<uintptr_t>(w.get()) % 64 == 0);
}

TEST_CASE("blocks of every size are apart, aligned, and come back") {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t n = 0; n <= 400; ++n) {
      for (int k = 0; k < 20; ++k) {
        auto* p = static_cast<unsigned char*>(AllocBlock(n));
        CHECK_MESSAGE(reinterpret_cast<uintptr_t>(p) % 16 == 0, n);
        std::memset(p, static_cast<int>(n % 251), n);
        blocks.push_back({p, n});
      }
    }
    // Every second one goes, what stays is untouched.
    std::vector<std::pair<unsigned char*, size_t>> kept;
    for (size_t i = 0; i < blocks.size(); ++i) {
      auto [p, n] = blocks[i];
      bool whole = true;
      for (size_t k = 0; k < n; ++k) whole = whole && p[k] == n % 251;
      CHECK_MESSAGE(whole, n);
      if (i % 2)
        FreeBlock(p, n);
      else
        kept.push_back(blocks[i]);
    }
    blocks = kept;
  }
  for (auto [p, n] : blocks) FreeBlock(p, n);
  FreeBlock(nullptr, 16);
}

TEST_CASE("blocks that other threads free come back; heaps of ended threads are used again") {
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> made(5000);
    std::thread([&] {
      for (auto& p : made) p = AllocBlock(48);
    }).join();
    std::thread([&] {
      for (size_t i = 0; i < made.size(); i += 2) FreeBlock(made[i], 48);
    }).join();
    for (size_t i = 1; i < made.size(); i += 2) FreeBlock(made[i], 48);
  }
  // Producer and consumer at once.
  std::atomic<void*> slot{nullptr};
  std::thread consumer([&] {
    for (int taken = 0; taken < 20000;) {
      if (void* p = slot.exchange(nullptr)) FreeBlock(p, 64), ++taken;
    }
  });
  for (int i = 0; i < 20000; ++i) {
    void* p = AllocBlock(64);
    void* want = nullptr;
    while (!slot.compare_exchange_weak(want, p)) want = nullptr;
  }
  consumer.join();
}

TEST_CASE("IR-010 reference operations: defined, same_as, as, GetRef") {
  ObjectRef none;
  CHECK_FALSE(none.defined());
  CHECK(none.as<CountedObj>() == nullptr);
  ObjectRef o(make_object<CountedObj>());
  CHECK(o.defined());
  CHECK(o.as<CountedObj>() != nullptr);
  CHECK(o.as<FirstObj>() == nullptr);
  CHECK(GetRef<Counted>(o.as<CountedObj>()).same_as(o));
}

TEST_CASE("IR-011 a wrong Downcast names both types") {
  ObjectRef o(make_object<FirstObj>());
  CHECK_THROWS_WITH(Downcast<Counted>(o), doctest::Contains("expected test.Counted, got test.First"));
  CHECK_FALSE(Downcast<Counted>(ObjectRef()).defined());
}

TEST_CASE("arrays grow past the two elements that need no memory, and share what is empty") {
  Array<int64_t> none, other;
  CHECK(none.empty());
  none.push_back(1);
  CHECK(none.size() == 1);
  CHECK(other.empty());
  CHECK(Array<int64_t>().empty());
  Array<String> a;
  for (int i = 0; i < 100; ++i) a.push_back(String("text " + std::to_string(i)));
  Array<String> b = a;
  b.Set(3, "x");
  CHECK(a[3] == "text 3");
  CHECK(b[3] == "x");
  b.insert(0, "first");
  CHECK(b.size() == 101);
  CHECK(b[0] == "first");
  CHECK(b[100] == "text 99");
  b.pop_back();
  b.resize(2);
  CHECK(b.size() == 2);
  AnyVector v;
  for (int i = 0; i < 10; ++i) v.push_back(Any(i));
  v.push_back(v[4]);  // an element of the vector that is about to move
  for (int i = 0; i < 50; ++i) v.emplace_back(v[0]);
  CHECK(v[10].As<int>() == 4);
  v.erase(v.begin() + 1, v.begin() + 4);
  CHECK(v.size() == 58);
  CHECK(v[1].As<int>() == 4);
  AnyVector w = v, m = std::move(v);
  CHECK(v.empty());
  CHECK(w.size() == m.size());
  w = m;
  w.assign(3, w[1]);
  CHECK(w.size() == 3);
  CHECK(w[2].As<int>() == 4);
  m = std::move(w);
  CHECK(m.size() == 3);
  m = AnyVector(m);
  CHECK(m.size() == 3);
}

TEST_CASE("RF-001 RF-002 a class shows its members of every kind to a visitor") {
  auto o = make_object<VisitedObj>();
  Names direct, table;
  o->VisitAttrs(&direct);
  VisitTable(o.get(), &table);
  CHECK(direct.seen == "d:double i64:int64 u64:uint64 i:int b:bool s:string p:handle t:dtype list:object any:object ");
  CHECK(table.seen == direct.seen);
  // The base's does nothing.
  Names none;
  Object().VisitAttrs(&none);
  CHECK(none.seen.empty());
  Names described;
  make_object<DescribedObj>()->VisitAttrs(&described);
  CHECK(described.seen == "first:int64 second:object ");
}

TEST_CASE("RF-007 fields by name; a wrong one names type and field") {
  auto o = make_object<VisitedObj>();
  CHECK(GetField(o.get(), "s").As<std::string>() == "text");
  CHECK(GetField(o.get(), "u64").As<int64_t>() == 7);
  CHECK(ListFields(o.get()).size() == 10);
  CHECK_THROWS_WITH(GetField(o.get(), "zz"), doctest::Contains("`test.Visited` has no attribute `zz`"));
  // Kinds are checked although the class says nothing but pointers to its members.
  BatonValue kv[2] = {{kBatonStr, 0, {.v_str = "list"}}, {kBatonInt, 0, {.v_int64 = 5}}};
  CHECK_THROWS_WITH(MakeNode("test.Visited", kv, 2), doctest::Contains("expected Array"));
}
