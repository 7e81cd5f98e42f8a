// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/tir/expr.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "../relay/sample.h"

using namespace sample;  // NOLINT

namespace {
ObjectRef Trip(const ObjectRef& o) {
  std::string text = SaveJSON(o);
  ObjectRef back = LoadJSON(text);
  CHECK(StructuralEqual(o, back, true));
  CHECK(SaveJSON(back) == text);
  return back;
}
void Refused(const std::string& text, const char* what) {
  CHECK_THROWS_WITH_AS(LoadJSON(text), doctest::Contains(what), runtime::ValueError);
}
const char kHead[] = "{\"format\": \"baton\", \"version\": 1, \"nodes\": [";
}  // namespace

TEST_CASE("RF-009 programs survive: sharing, constants bit for bit, attributes, types, text") {
  Var x("größe \"1\"\n", F32({2, 3}));
  float bits[] = {1.f, -0.f, NAN, 1e-42f};
  Expr c = Constant(NDArray::FromBytes(bits, {2, 2}, DataType::Float(32)));
  Expr n = Neg(x);
  Expr e = Tuple(Array<Expr>{Add(n, n), c, Scale(x, 0.1), TupleGetItem(n, int64_t{0})});
  Function f = WithAttr(Function({x}, e), "note", Any("ünïcode"));
  f = WithAttr(f, "mix",
               Any(Array<Any>{Any(1), Any(2.5), Any(true), Any("s"), Any(), Any(DataType::Float(16)),
                              Any(DLDevice{kDLCPU, 1})}));
  IRModule mod = IRModule::FromExpr(f);
  auto back = Downcast<IRModule>(Trip(mod));
  auto g = Downcast<Function>(back->Lookup("main"));
  CHECK(g->params[0]->name_hint() == "größe \"1\"\n");
  const auto* t = g->body.as<TupleNode>();
  const auto* add = t->fields[0].as<CallNode>();
  CHECK(add->args[0].same_as(add->args[1]));
  CHECK(std::memcmp(t->fields[1].as<ConstantNode>()->data.data(), bits, sizeof bits) == 0);
  CHECK(t->fields[2].as<CallNode>()->op.same_as(ScaleOp()));
}

TEST_CASE("RF-010 every type that has a default instance survives") {
  // A node whose fields must not be null cannot be made of nothing; all others must come back.
  int tried = 0;
  for (const runtime::TypeInfo* info : runtime::TypeInfo::List()) {
    if (!info->create || info->key == "Op") continue;
    bool complete = true;
    for (const auto& f : info->fields) {
      complete = complete &&
                 (f.kind != runtime::FieldKind::kObject || f.default_value.object() || (f.flags & runtime::kIgnored) ||
                  std::strstr(f.doc, "null")) &&
                 !(f.flags & kRequired);
    }
    if (!complete) continue;
    ++tried;
    INFO(info->key);
    ObjectRef obj(info->create());
    ObjectRef back = LoadJSON(SaveJSON(obj));
    CHECK(back->GetTypeKey() == info->key);
    CHECK(SaveJSON(back) == SaveJSON(obj));
  }
  CHECK(tried > 15);
}

TEST_CASE("values that are no programs") {
  Trip(String("text"));
  Trip(String(std::string("\xff\x00z", 3)));
  Trip(ObjectRef());
  Trip(Map<String, Any>{{"a", Any(1)}, {"b", Any(Array<Any>{Any(-1)})}});
  Trip(tir::Add(tir::Var(String("i")), PrimExpr(int64_t{3})));
  CHECK_THROWS_AS(SaveJSON(PackedFunc([](runtime::Args, runtime::RetValue*) {})), runtime::ValueError);
}

TEST_CASE("RF-011 broken input is an error with its place") {
  Refused("", "JSON:1:1");
  Refused("[]", "expected an object");
  Refused("{\"format\": \"tvm\"}", "must be \"baton\"");
  Refused("{\"format\": \"baton\", \"version\": 2}", "newer");
  std::string h = kHead;
  Refused(h + "], \"root\": [0]}", "node 0 is not among");
  Refused(h + "{\"type\": \"relay.Nope\"}], \"root\": [0]}", "no type `relay.Nope`");
  Refused(h + "{\"type\": \"relay.Call\"}], \"root\": [0]}", "needs the field `op`");
  Refused(h + "{\"type\": \"Op\", \"name\": \"no.such.op\"}], \"root\": [0]}", "no operator");
  Refused(h + "{\"type\": \"relay.Id\", \"name_hint\": 3}], \"root\": [0]}", "name_hint");
  Refused(h + "{\"type\": \"relay.Id\", \"nme\": \"x\"}], \"root\": [0]}", "no field `nme`");
  Refused(h + "{\"type\": \"relay.TupleGetItem\", \"index\": \"x\"}], \"root\": [0]}", "index");
  Refused(h + "{\"type\": \"runtime.Array\", \"data\": [null]}, {\"type\": \"relay.Tuple\", \"fields\": [0]}], "
              "\"root\": [1]}",
          "holds a null");
  Refused(h + "{\"type\": \"runtime.NDArray\", \"dtype\": \"float32\", \"shape\": [1000000000, 1000000000, "
              "1000000000], \"data\": \"\"}]",
          "too large");
  Refused(h + "{\"type\": \"runtime.NDArray\", \"dtype\": \"float32\", \"shape\": [1000000000], \"data\": \"AAAA\"}]",
          "wants more");
  Refused(h + "{\"type\": \"runtime.NDArray\", \"dtype\": \"float32\", \"shape\": [1], \"data\": \"AAA\"}]", "base64");
  Refused(h + "{\"type\": \"runtime.NDArray\", \"dtype\": \"nofloat\", \"shape\": [1], \"data\": \"AAAA\"}]",
          "not a dtype");
  Refused(h + "{\"type\": \"runtime.Map\", \"data\": [1]}]", "no value");
  // Cut anywhere: an error, never anything else.
  Var x("x", F32({2}));
  std::string text = SaveJSON(IRModule::FromExpr(Function({x}, Scale(Neg(x), 2))));
  while (text.back() == '\n') text.pop_back();
  for (size_t i = 0; i < text.size(); ++i) CHECK_THROWS_AS(LoadJSON(text.substr(0, i)), runtime::Error);
}

TEST_CASE("a million deep") {
  Var x("x");
  OnStack(size_t{512} << 10, [&] {
    Function f({x}, CallChain(x, 1'000'000));
    CHECK(StructuralEqual(LoadJSON(SaveJSON(f)), f));
  });
}
