// SPDX-License-Identifier: Apache-2.0
// Attributes: one description drives construction, checks, visiting, comparing and documentation.
#include <baton/ir/attrs.h>
#include <baton/ir/structural.h>
#include <baton/relay/op/annotation.h>
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <sstream>

using namespace baton;  // NOLINT
using relay::OnDeviceAttrs;

namespace {

struct BoundedAttrs : AttrsNode<BoundedAttrs> {
  static constexpr const char* _type_key = "test.attrs.BoundedAttrs";
  Array<int64_t> window;
  int64_t steps = 1;
  double rate = 0.5;
  String name = "none";
  bool exact = false;
  DataType dtype = DataType::Float(32);
  static constexpr void Describe(auto& d) {
    d(F<&BoundedAttrs::window>, "Extents, in elements.", kRequired, AtLeast(1));
    d(F<&BoundedAttrs::steps>, "Number of steps.", AtLeast(1), AtMost(10));
    d(F<&BoundedAttrs::rate>, "Rate. Unitless.", AtLeast(0));
    d(F<&BoundedAttrs::name>, "What it is called.");
    d(F<&BoundedAttrs::exact>, "Whether it is exact.");
    d(F<&BoundedAttrs::dtype>, "Type of the result.");
  }
};
const RegisterNodes<BoundedAttrs> registered_attrs;

struct Names : runtime::AttrVisitor {
  std::string seen;
  void Visit(const char* key, double*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, int64_t*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, uint64_t*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, int*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, bool*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, std::string*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, void**) final { seen += std::string(key) + " "; }
  void Visit(const char* key, DataType*) final { seen += std::string(key) + " "; }
  void Visit(const char* key, ObjectRef*) final { seen += std::string(key) + " "; }
};

template <class... A>
ObjectPtr<BoundedAttrs> Make(A&&... a) {
  auto n = make_object<BoundedAttrs>();
  n->InitBySeq(std::forward<A>(a)...);
  return n;
}
uint64_t Hash(const BoundedAttrs& a) {
  uint64_t h = 0;
  a.SHashReduce(SHashReducer(&h));
  return h;
}

}  // namespace

TEST_CASE("AT-001 AT-003 an attrs class, its key and its chain") {
  CHECK(std::string(OnDeviceAttrs::_type_key) == "relay.attrs.OnDeviceAttrs");
  CHECK(std::is_base_of_v<AttrsNode<OnDeviceAttrs>, OnDeviceAttrs>);
  CHECK(std::is_base_of_v<BaseAttrsNode, AttrsNode<OnDeviceAttrs>>);
  CHECK(std::is_base_of_v<Object, BaseAttrsNode>);
  CHECK(std::has_virtual_destructor_v<BaseAttrsNode>);
  CHECK(std::string(BaseAttrsNode::_type_key) == "Attrs");
  CHECK(BaseAttrsNode::_type_has_method_sequal_reduce);
  CHECK(BaseAttrsNode::_type_has_method_shash_reduce);
}

TEST_CASE("AT-004 a fresh object has the declared defaults") {
  auto a = make_object<OnDeviceAttrs>();
  CHECK_FALSE(a->is_fixed);
  CHECK(static_cast<int>(a->device_type) <= 0);
  CHECK(make_object<BoundedAttrs>()->rate == 0.5);
}

TEST_CASE("AT-005 AT-006 all fields are visited, or those that differ from their default") {
  auto a = make_object<OnDeviceAttrs>();
  Names all, some, required;
  a->VisitAttrs(&all);
  CHECK(all.seen == "device_type is_fixed ");
  a->InitBySeq("device_type", 2, "is_fixed", false);
  a->VisitNonDefaultAttrs(&some);
  CHECK(some.seen == "device_type ");
  // A field without a default is always visited.
  Make("window", Array<int64_t>{3})->VisitNonDefaultAttrs(&required);
  CHECK(required.seen == "window ");
}

TEST_CASE("AT-007 AT-010 from packed arguments, from a sequence") {
  auto a = make_object<BoundedAttrs>();
  runtime::PackedFunc init([&](runtime::Args args, runtime::RetValue*) { a->InitByPackedArgs(args, false); });
  init("window", Array<int64_t>{2, 3}, "rate", 0.25, "name", "x", "exact", true, "dtype", "int8");
  CHECK(a->window.size() == 2);
  CHECK(a->rate == 0.25);
  CHECK(a->name == "x");
  CHECK(a->exact);
  CHECK(a->dtype == DataType::Int(8));
  CHECK(Make("window", Array<int64_t>{1}, "steps", 4)->steps == 4);
}

TEST_CASE("AT-008 unknown names are an error that lists the known ones, or are passed over") {
  CHECK_THROWS_WITH(Make("window", Array<int64_t>{1}, "stepz", 4), doctest::Contains("it has window, steps, rate"));
  auto a = make_object<BoundedAttrs>();
  runtime::PackedFunc init([&](runtime::Args args, runtime::RetValue*) { a->InitByPackedArgs(args, true); });
  init("window", Array<int64_t>{2}, "stepz", 4);
  CHECK(a->steps == 1);
}

TEST_CASE("AT-002 AT-009 defaults, required fields, types and bounds") {
  CHECK(Make("window", Array<int64_t>{1})->steps == 1);
  CHECK_THROWS_WITH(Make("steps", 2), doctest::Contains("needs the field `window`"));
  CHECK_THROWS_WITH(Make("window", Array<int64_t>{1}, "steps", "two"), doctest::Contains("`steps`"));
  CHECK_THROWS_WITH(Make("window", Array<int64_t>{1}, "steps", 11), doctest::Contains("at most 10"));
  CHECK_THROWS_WITH(Make("window", Array<int64_t>{1}, "steps", 0), doctest::Contains("at least 1"));
  CHECK_THROWS_WITH(Make("window", Array<int64_t>{0}), doctest::Contains("`window`"));
}

TEST_CASE("AT-011 AT-012 fields with type, default and meaning; as text that ends with a newline") {
  Array<AttrFieldInfo> fields = make_object<BoundedAttrs>()->ListFieldInfo();
  CHECK(fields.size() == 6);
  CHECK(fields[0]->name == "window");
  CHECK(fields[1]->type_info == "int, default=1");
  CHECK(fields[3]->description == "What it is called.");
  std::ostringstream os;
  make_object<BoundedAttrs>()->PrintDocString(os);
  CHECK(os.str().find("Rate. Unitless.") != std::string::npos);
  CHECK(os.str().back() == '\n');
}

TEST_CASE("AT-013 AT-014 equal iff all fields are; a changed field changes the hash") {
  auto a = Make("window", Array<int64_t>{1, 2}), b = Make("window", Array<int64_t>{1, 2});
  CHECK(a->SEqualReduce(b.get(), SEqualReducer()));
  CHECK(Hash(*a) == Hash(*b));
  CHECK(StructuralEqual(Attrs(a), Attrs(b)));
  std::set<uint64_t> hashes{Hash(*a)};
  auto differs = [&](ObjectPtr<BoundedAttrs> c) {
    CHECK_FALSE(a->SEqualReduce(c.get(), SEqualReducer()));
    CHECK_FALSE(StructuralEqual(Attrs(a), Attrs(c)));
    CHECK(hashes.insert(Hash(*c)).second);
  };
  Array<int64_t> w{1, 2};
  differs(Make("window", Array<int64_t>{1, 3}));
  differs(Make("window", w, "steps", 2));
  differs(Make("window", w, "rate", 0.75));
  differs(Make("window", w, "rate", -0.0));
  differs(Make("window", w, "name", "other"));
  differs(Make("window", w, "exact", true));
  differs(Make("window", w, "dtype", "int8"));
  // Floats by their bits, all NaN are one.
  CHECK(SEqualReducer()(NAN, -NAN));
  CHECK_FALSE(SEqualReducer()(0.0, -0.0));
}

TEST_CASE("AT-015 names of packed arguments inside attrs") {
  CHECK(std::is_same_v<BaseAttrsNode::TVMArgs, runtime::Args>);
  CHECK(std::is_same_v<BaseAttrsNode::TVMRetValue, runtime::RetValue>);
}

TEST_CASE("IR-015 a failed ICHECK carries its text") {
  CHECK_THROWS_WITH([] { ICHECK(1 + 1 == 3) << "sums are " << 2; }(), doctest::Contains("sums are 2"));
}
