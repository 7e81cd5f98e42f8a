// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/tir/expr.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

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

namespace {

/// An object of every registered type: what must be there is filled with an object of the kind that it asks for, and
/// numbers and texts with values that are not their defaults.
class Samples {
 public:
  /// Null where none can be made: the type is abstract, or holds what only lives in a process.
  ObjectRef Of(const runtime::TypeInfo* info) {
    if (info->key == "Op") return ScaleOp();
    if (!info->create || depth_ > 8) return ObjectRef();
    ++depth_;
    ObjectRef obj(info->create());
    bool whole = true;
    for (const auto& f : info->fields) {
      auto* o = runtime::ObjectAccess::Get(obj);
      if (f.kind == runtime::FieldKind::kHandle) continue;
      Any v = f.default_value;
      if (f.kind == runtime::FieldKind::kObject && v.is_null() && !(f.flags & runtime::kNullable))
        v = Any(Make(f.type_name));
      if ((f.flags & runtime::kRequired) && f.has_lower && f.kind == runtime::FieldKind::kInt64)
        v = Any(static_cast<int64_t>(f.lower));
      if (f.kind == runtime::FieldKind::kDouble) v = Any(f.has_upper || f.has_lower ? v.As<double>() : 0.1);
      if (f.kind == runtime::FieldKind::kBool) v = Any(!v.As<bool>());
      if (f.kind == runtime::FieldKind::kInt64 && !f.has_lower && !f.has_upper) v = Any(int64_t{1} << 60);
      if (f.type_name == "runtime.String") v = Any(String("\xc3\xa9\"\n"));
      if (f.kind == runtime::FieldKind::kObject && v.is_null()) {
        whole = whole && f.MayBeMissing();
        continue;
      }
      f.Set(o, v.raw());
    }
    --depth_;
    return whole ? obj : ObjectRef();
  }

 private:
  ObjectRef Make(const std::string& key) {
    if (key == "runtime.NDArray") return runtime::NDArray::Empty({2}, DataType::Int(8));
    if (key == "PrimExpr") return PrimExpr(int64_t{5});
    if (key == "any" || key == "runtime.Object" || key == "Object") return String("anything");
    const int64_t wanted = Object::FindTypeKey(key);
    for (const runtime::TypeInfo* info : runtime::TypeInfo::List()) {
      if (wanted < 0 || !info->create) continue;
      uint32_t i = info->index;
      while (i != 0 && i != static_cast<uint32_t>(wanted)) i = Object::TypeIndex2Parent(i);
      if (i != static_cast<uint32_t>(wanted)) continue;
      if (ObjectRef o = Of(info); o.defined()) return o;
    }
    return ObjectRef();
  }
  int depth_ = 0;
};

}  // namespace

TEST_CASE("which thread made a part does not show") {
  auto part = [] { return Tuple(Array<Expr>()); };
  const std::string here = SaveJSON(Tuple(Array<Expr>{part(), part()}));
  Expr made;
  std::thread([&] { made = part(); }).join();
  CHECK(SaveJSON(Tuple(Array<Expr>{part(), made})) == here);
  CHECK(SaveJSON(Tuple(Array<Expr>{made, part()})) == here);
  CHECK(SaveJSON(Array<ObjectRef>()).find("\"root\":[0]") != std::string::npos);
  Trip(Tuple(Array<Expr>{made, part()}));
}

TEST_CASE("RF-008 RF-010 an object of every registered type survives") {
  int tried = 0;
  std::string left_out;
  for (const runtime::TypeInfo* info : runtime::TypeInfo::List()) {
    if (!info->create) continue;
    INFO(info->key);
    ObjectRef obj = Samples().Of(info);
    if (!obj.defined()) {
      left_out += info->key + " ";
      continue;
    }
    ++tried;
    std::string text;
    try {
      text = SaveJSON(obj);
    } catch (const runtime::ValueError&) {  // holds a function
      left_out += info->key + " ";
      continue;
    }
    ObjectRef back = LoadJSON(text);
    CHECK(back->GetTypeKey() == info->key);
    CHECK(SaveJSON(back) == text);
    if (info->has_equal && !info->identity) {
      CHECK(StructuralEqual(back, obj, true));
      CHECK(StructuralHash(back, true) == StructuralHash(obj, true));
    }
  }
  CHECK(tried > 200);
  // Passes, instruments and the like hold functions, which live in a process alone.
  CHECK_MESSAGE(std::count(left_out.begin(), left_out.end(), ' ') < 40, left_out);
}

TEST_CASE("places are kept without folder and text, and stay out where they are not wanted") {
  SourceName source(String("/srv/somebody/model.relay"), String("def @main() { secret }"));
  Var x("x");
  Call c(NegOp(), Array<Expr>{x}, Attrs(), Array<Type>());
  c->span = Span(source, int64_t{3}, int64_t{5}, int64_t{3}, int64_t{9});
  std::string text = SaveJSON(c), bare = SaveJSON(c, false);
  CHECK(text.find("somebody") == std::string::npos);
  CHECK(text.find("secret") == std::string::npos);
  CHECK(bare.find("Span") == std::string::npos);
  ObjectRef back = LoadJSON(text);
  CHECK(back.as<CallNode>()->span->source_name->name == "model.relay");
  CHECK(back.as<CallNode>()->span->line == 3);
  CHECK_FALSE(LoadJSON(bare).as<CallNode>()->span.defined());
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
