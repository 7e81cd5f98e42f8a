// SPDX-License-Identifier: Apache-2.0
#include "driver/compiled_graph.h"

#include <baton/tir/lower.h>

#include <cstring>
#include <exception>
#include <thread>

namespace baton::driver {

IRModule LowerTir(const IRModule& mod, const Target& target) {
  std::vector<std::pair<GlobalVar, tir::PrimFunc>> all;
  for (const auto& [var, func] : mod->functions) all.push_back({var, Downcast<tir::PrimFunc>(func)});
  // Functions are independent: every second one goes to a second thread.
  std::exception_ptr errors[2];
  auto work = [&](size_t part) {
    try {
      for (size_t i = part; i < all.size(); i += 2) {
        if (!all[i].second->HasNonzeroAttr("model_entry")) all[i].second = tir::LowerPipeline(all[i].second, target);
      }
    } catch (...) {
      errors[part] = std::current_exception();
    }
  };
  if (all.size() > 3) {
    std::thread second(work, 1);
    work(0);
    second.join();
  } else {
    work(0);
    work(1);
  }
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
  Map<GlobalVar, BaseFunc> out;
  for (const auto& [var, func] : all) out.Set(var, func);
  return IRModule(out);
}

NDArray PackConstants(const std::vector<std::pair<uint64_t, NDArray>>& constants, uint64_t bytes) {
  NDArray blob = NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8));
  uint64_t end = 0;
  auto* p = blob.ptr<uint8_t>();
  for (const auto& [offset, value] : constants) {
    memset(p + end, 0, offset - end);  // gaps are part of the artifact: the same bytes every time
    NDArray dense = value.Contiguous();
    memcpy(p + offset, dense.data(), dense.nbytes());
    end = offset + dense.nbytes();
  }
  memset(p + end, 0, bytes - end);
  return blob;
}

CompiledGraph CompileGraph(const relay::Function& main, const Target& target, int num_threads) {
  LoweredModel model = LowerGraph(main, target);
  CompiledGraph g;
  codegen::ObjectCode objects = codegen::CompileToObjects(LowerTir(model.mod, target), target, num_threads);
  g.code = codegen::LoadObjects(objects);
  g.entry = reinterpret_cast<runtime::EntryFunction>(g.code->GetSymbol(model.desc.entry.c_str()));
  if (!g.entry) throw InternalError("the compiled code has no symbol " + model.desc.entry);
  g.constants = PackConstants(model);
  g.desc = model.desc;
  g.desc.constants = g.constants.ptr<uint8_t>();
  g.desc.features = objects.features;
  g.desc.target = target.str();
  return g;
}

}  // namespace baton::driver
