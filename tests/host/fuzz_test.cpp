// SPDX-License-Identifier: Apache-2.0
// Parameters and arrays as a changed file might have them: a function gives a result or an error.
#include <baton/host/function.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace baton;  // NOLINT
using support::Json;

namespace {

struct Shape {
  std::vector<int64_t> extents;
  DataType dtype = DataType::Float(32);
};
struct Sample {
  const char* name;
  const char* params;
  std::vector<Shape> arrays;
};

const DataType kI32 = DataType::Int(32), kI64 = DataType::Int(64), kU64 = DataType::UInt(64), kBool = DataType::Bool();

std::vector<Sample> Samples() {
  return {
      {"random.uniform",
       R"({"shape":[2,3],"dtype":"float32","low":0.0,"high":1.0,"mean":0.0,"scale":1.0,"seed":1.5})",
       {}},
      {"random.normal",
       R"({"shape":[3],"dtype":"float16","low":0.0,"high":1.0,"mean":0.0,"scale":1.0,"seed":null})",
       {}},
      {"random.uniform_like", R"({"dtype":null,"low":0.0,"high":1.0,"mean":0.0,"scale":1.0,"seed":null})", {{{2, 2}}}},
      {"random.normal_like", R"({"dtype":"float64","low":0.0,"high":1.0,"mean":0.0,"scale":1.0,"seed":3})", {{{4}}}},
      {"random.bernoulli", R"({"dtype":"int32","seed":3})", {{{4}}}},
      {"random.multinomial", R"({"sample_size":3,"dtype":"int32","seed":3})", {{{2, 3}}}},
      {"random.threefry_generate", R"({"out_shape":[3,2]})", {{{10}, kU64}}},
      {"random.threefry_split", "{}", {{{10}, kU64}}},
      {"vision.roi_align",
       R"({"pooled_size":[2,2],"spatial_scale":1.0,"sample_ratio":2,"layout":"NCHW","mode":"avg","aligned":false})",
       {{{1, 2, 3, 3}}, {{2, 5}}}},
      {"vision.roi_pool", R"({"pooled_size":[2,2],"spatial_scale":1.0,"layout":"NCHW"})", {{{1, 2, 3, 3}}, {{2, 5}}}},
      {"vision.all_class_non_max_suppression",
       R"({"center_point_box":false,"output_format":"onnx"})",
       {{{1, 3, 4}}, {{1, 2, 3}}, {{}, kI64}, {{}}, {{}}}},
      {"vision.get_valid_counts", R"({"id_index":0,"score_index":1})", {{{1, 3, 6}}, {{}}}},
      {"vision.non_max_suppression",
       R"({"force_suppress":false,"top_k":-1,"coord_start":2,"score_index":1,"id_index":0,"return_indices":true,)"
       R"("invalid_to_bottom":false})",
       {{{1, 3, 6}}, {{1}, kI32}, {{1, 3}, kI32}, {{}, kI32}, {{}}}},
      {"vision.multibox_prior",
       R"({"sizes":[0.5],"ratios":[1.0,2.0],"steps":[-1.0,-1.0],"offsets":[0.5,0.5],"clip":true})",
       {{{1, 3, 2, 2}}}},
      {"vision.multibox_transform_loc",
       R"({"clip":true,"threshold":0.01,"variances":[0.1,0.1,0.2,0.2]})",
       {{{1, 3, 4}}, {{1, 16}}, {{1, 4, 4}}}},
      {"sort", R"({"axis":-1,"is_ascend":true})", {{{2, 5}}}},
      {"argsort", R"({"axis":0,"is_ascend":false,"dtype":"int32"})", {{{3, 2}, kI64}}},
      {"topk", R"({"k":2,"axis":-1,"ret_type":"both","is_ascend":false,"dtype":"int64"})", {{{2, 5}}}},
      {"searchsorted", R"({"right":false,"dtype":"int32"})", {{{2, 5}}, {{2, 3}}}},
      {"unique", R"({"is_sorted":true,"axis":null})", {{{2, 3}, kI32}}},
      {"argwhere", "{}", {{{2, 3}, kBool}}},
      {"compress", R"({"axis":1})", {{{2, 3}}, {{3}, kBool}}},
      {"linalg.det", "{}", {{{2, 3, 3}}}},
      {"linalg.cofactor", "{}", {{{3, 3}}}},
      {"incomplete_gamma", R"({"upper":true})", {{{2, 3}}, {{2, 3}}}},
      {"orthogonal_polynomial", R"({"family":"hermite"})", {{{2, 3}}, {{2, 3}}}},
      {"vm.shape_of", R"({"dtype":"int32"})", {{{2, 3}}}},
      {"vm.reshape_tensor", R"({"newshape":[3,-1]})", {{{2, 3}}, {{2}, kI64}}},
      {"nonzero", "{}", {{{2, 3}}}},
      {"onnx.ReduceSum", R"({"present":[true,true],"dtypes":["float32"],"keepdims":0})", {{{2, 3}}, {{1}, kI64}}},
      {"onnx.ReduceMax", R"({"present":[true,false],"dtypes":["int32"],"noop_with_empty_axes":1})", {{{2, 3}, kI32}}},
      {"onnx.ReduceLogSumExp", R"({"present":[true,true],"dtypes":["float32"]})", {{{2, 3}}, {{2}, kI64}}},
      {"onnx.CumSum", R"({"present":[true,true],"dtypes":["int64"],"reverse":1})", {{{2, 3}, kI64}, {{}, kI64}}},
      {"onnx.Slice",
       R"({"present":[true,true,true,true,true],"dtypes":["float32"]})",
       {{{4, 3}}, {{2}, kI64}, {{2}, kI64}, {{2}, kI64}, {{2}, kI64}}},
      {"onnx.Pad", R"({"present":[true,true],"dtypes":["float32"],"mode":"reflect"})", {{{4, 3}}, {{4}, kI64}}},
      {"onnx.CenterCropPad", R"({"present":[true,true],"dtypes":["float32"],"axes":[1]})", {{{4, 3}}, {{1}, kI64}}},
      {"onnx.Tile", R"({"present":[true,true],"dtypes":["float32"]})", {{{4, 3}}, {{2}, kI64}}},
      {"onnx.Expand", R"({"present":[true,true],"dtypes":["float32"]})", {{{1, 3}}, {{3}, kI64}}},
      {"onnx.Reshape", R"({"present":[true,true],"dtypes":["float32"]})", {{{4, 3}}, {{2}, kI64}}},
      {"onnx.Squeeze", R"({"present":[true,true],"dtypes":["float32"]})", {{{1, 3}}, {{1}, kI64}}},
      {"onnx.Unsqueeze", R"({"present":[true,true],"dtypes":["float32"]})", {{{4, 3}}, {{2}, kI64}}},
      {"onnx.Split", R"({"present":[true,true],"dtypes":["float32","float32"]})", {{{4, 3}}, {{2}, kI64}}},
      {"onnx.Trilu", R"({"present":[true,true],"dtypes":["float32"],"upper":0})", {{{4, 3}}, {{}, kI64}}},
      {"onnx.Range", R"({"present":[true,true,true],"dtypes":["int64"]})", {{{}, kI64}, {{}, kI64}, {{}, kI64}}},
      {"onnx.OneHot",
       R"({"present":[true,true,true],"dtypes":["float32"],"axis":1})",
       {{{4}, kI64}, {{}, kI64}, {{2}}}},
      {"onnx.ConstantOfShape", R"({"present":[true],"dtypes":["int32"],"value":3})", {{{2}, kI64}}},
      {"onnx.AffineGrid", R"({"present":[true,true],"dtypes":["float32"]})", {{{1, 2, 3}}, {{4}, kI64}}},
      {"onnx.TopK", R"({"present":[true,true],"dtypes":["float32","int64"]})", {{{4, 3}}, {{1}, kI64}}},
      {"onnx.HannWindow", R"({"present":[true],"dtypes":["float32"]})", {{{}, kI32}}},
      {"onnx.Resize",
       R"({"present":[true,false,true],"dtypes":["float32"],"opset":19,"mode":"cubic","antialias":1,"exclude_outside":1})",
       {{{1, 3, 4}}, {{3}}}},
      {"onnx.Resize",
       R"({"present":[true,true,false,true],"dtypes":["int8"],"opset":19,"mode":"linear",)"
       R"("coordinate_transformation_mode":"tf_crop_and_resize","keep_aspect_ratio_policy":"not_larger"})",
       {{{1, 4}, DataType::Int(8)}, {{4}}, {{2}, kI64}}},
      {"onnx.cast", R"({"dtype":"float8_e4m3fn","saturate":true,"round_mode":"up"})", {{{5}}}},
      {"onnx.tfidf",
       R"({"mode":"TF","min_gram_length":1,"max_gram_length":2,"max_skip_count":1,"ngram_counts":[0,2],)"
       R"("ngram_indexes":[0,1,2],"pool":[1,2,1,2],"weights":[]})",
       {{{2, 4}, kI64}}},
  };
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}
  bool OneIn(int n) { return Below(n) == 0; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Json Value() {
    switch (Below(9)) {
      case 0:
        return Json();
      case 1:
        return Json(OneIn(2));
      case 2:
        return Json(Number());
      case 3:
        return Json("float3");
      case 4: {
        Json list = Json::Array();
        for (int64_t n = Below(4); n > 0; --n) list.Push(Number());
        return list;
      }
      case 5:
        return Json("handle");
      case 6:
        return Json("float4_e2m1fn");
      default:
        return Json(Whole());
    }
  }
  Json Changed(const Json& params) {
    Json out = Json::Object();
    for (const auto& [key, value] : params.AsObject()) {
      if (OneIn(12)) continue;
      out.Add(key, OneIn(5) ? Value() : value.Clone());
    }
    return out;
  }
  NDArray Tensor(Shape s) {
    static const DataType kTypes[] = {DataType::Float(32), DataType::Float(16), kI32, kI64, kU64, kBool,
                                      DataType::Int(8)};
    if (OneIn(8)) s.dtype = kTypes[Below(7)];
    if (OneIn(8) && !s.extents.empty())
      s.extents[static_cast<size_t>(Below(static_cast<int64_t>(s.extents.size())))] = Below(7);
    if (OneIn(16)) s.extents.push_back(Below(3));
    if (OneIn(16) && !s.extents.empty()) s.extents.pop_back();
    NDArray a = NDArray::Empty(s.extents, s.dtype);
    for (int64_t i = 0; i < a.numel(); ++i) {
      if (s.dtype.is_floating()) {
        a.SetDouble(i, Number());
      } else {
        a.SetInt(i, OneIn(20) ? Whole() : Below(5));
      }
    }
    return a;
  }

 private:
  int64_t Whole() {
    static const int64_t kValues[] = {
        -1, 0, 1, 2, 3, 7, -2, INT64_MAX, INT64_MIN, int64_t{1} << 40, -(int64_t{1} << 40)};
    return kValues[Below(11)];
  }
  double Number() {
    static const double kValues[] = {NAN, INFINITY, -INFINITY, -0.0, 1e300, -1e300};
    return OneIn(10) ? kValues[Below(6)] : static_cast<double>(Below(64)) / 16 - 1;
  }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("host: changed parameters and arrays give a result or an error") {
  Mutator m(17);
  int right = 0, refused = 0;
  for (const Sample& s : Samples()) {
    CAPTURE(s.name);
    const PackedFunc* maker = Registry::Get(std::string("host.") + s.name);
    REQUIRE(maker);
    const Json params = Json::Parse(s.params);
    for (int round = 0; round < 300; ++round) {
      const std::string json = (round ? m.Changed(params) : params.Clone()).Dump(true, true);  // at first zeros
      std::vector<runtime::Any> args;
      for (const Shape& shape : s.arrays) {
        args.push_back(runtime::Any(round ? m.Tensor(shape) : NDArray::Zeros(shape.extents, shape.dtype)));
      }
      std::vector<BatonValue> values;
      for (const runtime::Any& a : args) values.push_back(a.raw());
      CAPTURE(json);
      try {
        (*maker)(json).As<PackedFunc>().CallPacked(values.data(), static_cast<int>(values.size()));
        ++right;
      } catch (const runtime::Error& e) {
        ++refused;
        CHECK(e.kind() != "InternalError");
      }
    }
  }
  CHECK(right > 500);
  CHECK(refused > 500);
}
