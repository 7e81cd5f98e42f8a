// SPDX-License-Identifier: Apache-2.0
// The table of all operators: each file of ops/ adds its rows.
#include <map>
#include <string_view>
#include <utility>

#include "frontend/onnx/msft/msft.h"
#include "frontend/onnx/ops/common.h"
#include "importer_impl.h"

namespace baton::onnx {

const OpRow* FindOperator(std::string_view domain, std::string_view op) {
  static const auto* const kTable = [] {
    OpTable rows;
    AddElementwise(&rows);
    AddReductions(&rows);
    AddShapes(&rows);
    AddIndexing(&rows);
    AddMatrix(&rows);
    AddConvolutions(&rows);
    AddNormalization(&rows);
    AddQuantization(&rows);
    AddImages(&rows);
    AddControl(&rows);
    AddLoops(&rows);
    AddScan(&rows);
    AddSequences(&rows);
    AddStrings(&rows);
    AddRecurrent(&rows);
    AddLosses(&rows);
    AddSignal(&rows);
    AddAttention(&rows);
    AddMl(&rows);
    AddMlEncoders(&rows);
    AddMlModels(&rows);
    AddMlTrees(&rows);
    AddText(&rows);
    AddRandom(&rows);
    for (auto* add : {AddMsftFused, AddMsftNorms, AddMsftTensors, AddMsftAttention, AddMsftGroupQuery, AddMsftQuantized,
                      AddMsftQuantizedMatrix, AddMsftNBits, AddMsftNchwc}) {
      add(&rows);
    }
    auto* table = new std::map<std::pair<std::string_view, std::string_view>, OpRow>();
    for (const OpRow& r : rows) {
      if (!table->emplace(std::make_pair(r.domain, r.op), r).second) {
        throw InternalError(std::string("onnx import: operator `") + r.op + "` stands twice in the tables");
      }
    }
    return table;
  }();
  auto it = kTable->find({domain, op});
  return it == kTable->end() ? nullptr : &it->second;
}

}  // namespace baton::onnx
