// SPDX-License-Identifier: Apache-2.0
// NM-003: reference page of OnDeviceAttrs: the class as its page shows it, and all members that the page lists.
#include <baton/compat/tvm.h>
#include <baton/ir/structural.h>
#include <doctest/doctest.h>

#include <sstream>
#include <string>

// The document's namespaces and key are those of the real class: here the example has its own.
namespace seed_on_device_attrs {
using tvm::Array;
using tvm::AttrFieldInfo;
using tvm::AttrsNode;
using tvm::make_node;
using tvm::relay::kInvalidDeviceType;

/*! \brief Attributes for the "on_device" special operator. */
struct OnDeviceAttrs : public tvm::AttrsNode<OnDeviceAttrs> {
  int device_type = kInvalidDeviceType;
  bool is_fixed = false;

  TVM_DECLARE_ATTRS(OnDeviceAttrs, "seed.attrs.OnDeviceAttrs") {
    TVM_ATTR_FIELD(device_type)
        .describe("Device type on which argument expression should be evaluated.")
        .set_default(kInvalidDeviceType);
    TVM_ATTR_FIELD(is_fixed)
        .describe(
            "If true, the result device must also be device_type and device planning should not insert any "
            "\"device_copy\" calls to respect this annotation.")
        .set_default(false);
  }
};
TVM_REGISTER_NODE_TYPE(OnDeviceAttrs);

/// Every clause that a field may have.
struct ClauseAttrs : public tvm::AttrsNode<ClauseAttrs> {
  int64_t axis;
  double rate;
  tvm::Array<int64_t> window;
  std::string mode;

  TVM_DECLARE_ATTRS(ClauseAttrs, "seed.attrs.ClauseAttrs") {
    TVM_ATTR_FIELD(axis).describe("Which dimension.").set_lower_bound(-4).set_upper_bound(3);
    TVM_ATTR_FIELD(rate).describe("Unitless.").set_default(0.5).set_lower_bound(0);
    TVM_ATTR_FIELD(window).describe("In elements.").set_default(tvm::Array<int64_t>{1, 1});
    TVM_ATTR_FIELD(mode).set_default("constant");
  }
};
TVM_REGISTER_NODE_TYPE(ClauseAttrs);

struct Names : tvm::runtime::AttrVisitor {
  std::string seen;
  void Visit(const char* key, double*) override { seen += std::string(key) + ":double "; }
  void Visit(const char* key, int64_t*) override { seen += std::string(key) + ":int64 "; }
  void Visit(const char* key, uint64_t*) override { seen += key; }
  void Visit(const char* key, int*) override { seen += std::string(key) + ":int "; }
  void Visit(const char* key, bool*) override { seen += std::string(key) + ":bool "; }
  void Visit(const char* key, std::string*) override { seen += std::string(key) + ":string "; }
  void Visit(const char* key, void**) override { seen += key; }
  void Visit(const char* key, tvm::runtime::DataType*) override { seen += key; }
  void Visit(const char* key, tvm::NodeRef*) override { seen += std::string(key) + ":ref "; }
};

}  // namespace seed_on_device_attrs

TEST_CASE("NM-003 AT-001 AT-003 AT-004 seed 004: TVM_DECLARE_ATTRS states key, chain and defaults") {
  using seed_on_device_attrs::ClauseAttrs;
  using seed_on_device_attrs::OnDeviceAttrs;
  CHECK(std::is_base_of_v<tvm::AttrsNode<OnDeviceAttrs>, OnDeviceAttrs>);
  CHECK(std::is_base_of_v<tvm::BaseAttrsNode, OnDeviceAttrs>);
  auto fresh = tvm::make_node<OnDeviceAttrs>();
  CHECK(fresh->device_type == tvm::relay::kInvalidDeviceType);
  CHECK_FALSE(fresh->is_fixed);
  CHECK(fresh->GetTypeKey() == "seed.attrs.OnDeviceAttrs");
  CHECK(fresh->IsInstance<tvm::BaseAttrsNode>());
  // A default that only the macro states counts as well.
  CHECK(tvm::make_node<ClauseAttrs>()->rate == 0.5);
  CHECK(tvm::make_node<ClauseAttrs>()->mode == "constant");
  CHECK(tvm::make_node<ClauseAttrs>()->window.size() == 2);
}

TEST_CASE("NM-003 AT-005 AT-006 AT-007 AT-010 seed 004: visiting and initializing") {
  using seed_on_device_attrs::OnDeviceAttrs;
  auto attrs = tvm::make_node<OnDeviceAttrs>();
  seed_on_device_attrs::Names all, some;
  attrs->VisitAttrs(&all);
  CHECK(all.seen == "device_type:int is_fixed:bool ");
  attrs->InitBySeq("device_type", 2);
  CHECK(attrs->device_type == 2);
  attrs->VisitNonDefaultAttrs(&some);
  CHECK(some.seen == "device_type:int ");
  tvm::runtime::PackedFunc init([&](tvm::TVMArgs args, tvm::TVMRetValue*) { attrs->InitByPackedArgs(args, true); });
  init("is_fixed", true, "colour", "red");
  CHECK(attrs->is_fixed);
}

TEST_CASE("NM-003 AT-002 AT-008 AT-009 seed 004: clauses of a field") {
  using seed_on_device_attrs::ClauseAttrs;
  auto make = [](auto&&... a) {
    auto n = tvm::make_node<ClauseAttrs>();
    n->InitBySeq(a...);
    return n;
  };
  CHECK(make("axis", -4)->rate == 0.5);
  CHECK_THROWS_WITH(make("axis", 4), doctest::Contains("at most 3"));
  CHECK_THROWS_WITH(make("axis", 0, "rate", -1.0), doctest::Contains("`rate`"));
  CHECK_THROWS_WITH(make("rate", 1.0), doctest::Contains("needs the field `axis`"));
  CHECK_THROWS_WITH(make("axes", 1), doctest::Contains("it has axis, rate, window, mode"));
}

TEST_CASE("NM-003 AT-011 AT-012 AT-013 AT-014 seed 004: field infos, text, equality, hash") {
  using seed_on_device_attrs::OnDeviceAttrs;
  auto a = tvm::make_node<OnDeviceAttrs>(), b = tvm::make_node<OnDeviceAttrs>();
  tvm::Array<tvm::AttrFieldInfo> infos = a->ListFieldInfo();
  CHECK(infos.size() == 2);
  CHECK(infos[0]->name == "device_type");
  CHECK(infos[0]->type_info == "int, default=-1");
  CHECK(infos[1]->type_info == "bool, default=False");
  std::ostringstream os;
  a->PrintDocString(os);
  CHECK(os.str().find("should be evaluated") != std::string::npos);
  CHECK(os.str().back() == '\n');
  CHECK(a->SEqualReduce(b.get(), tvm::SEqualReducer()));
  CHECK(tvm::StructuralEqual(tvm::Attrs(a), tvm::Attrs(b)));
  b->is_fixed = true;
  CHECK_FALSE(a->SEqualReduce(b.get(), tvm::SEqualReducer()));
  uint64_t ha = 0, hb = 0;
  a->SHashReduce(tvm::SHashReducer(&ha));
  b->SHashReduce(tvm::SHashReducer(&hb));
  CHECK(ha != hb);
}

TEST_CASE("NM-003 AT-001 seed 004: the real class has the document's key and members") {
  auto real = tvm::make_node<tvm::relay::OnDeviceAttrs>();
  CHECK(real->GetTypeKey() == "relay.attrs.OnDeviceAttrs");
  CHECK(real->device_type == tvm::relay::kInvalidDeviceType);
  CHECK_FALSE(real->is_fixed);
}
