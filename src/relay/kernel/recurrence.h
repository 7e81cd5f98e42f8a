// SPDX-License-Identifier: Apache-2.0
// Layers that go through a sequence step by step: RNN, GRU and LSTM as one loop over time.
#pragma once

#include <vector>

#include "build.h"
#include "machine.h"

namespace baton::relay::kernel {

/// f(x), by the names and numbers that ONNX has for it.
struct Activation {
  String name;
  double alpha = 0, beta = 0;
};

enum class Cell : int32_t {
  kRnn,
  kGru,       ///< the state is reset before its product: two products a step
  kGruAfter,  ///< the state's product is reset
  kLstm,
};
/// Gates of a cell, in the order of ONNX: GRU update, reset, hidden; LSTM input, output, forget, cell.
inline int64_t GatesOf(Cell cell) { return cell == Cell::kRnn ? 1 : cell == Cell::kLstm ? 4 : 3; }

/// One direction of a layer. Buffers are flat; those that are not there are null.
struct Recurrence {
  Cell cell = Cell::kRnn;
  std::vector<Activation> functions;
  double clip = 0;
  bool backward = false;
  bool bytes = false;  ///< weights are int8; a step quantizes the state, a scale for each sequence
  PrimExpr steps, batch;
  int64_t hidden = 0;
  DataType dtype;
  Buffer projected;  ///< (steps, batch, gates * hidden): what the input adds to each gate
  /// Panels of the state's product: (hidden / units, hidden, gates, units), or int8 of four terms (hidden / units,
  /// hidden / 4, gates, units, 4).
  Buffer weight;
  Buffer candidate_weight;  ///< the same of kGru's second product, whose gate the first does not have
  /// Of weights in bytes, four terms of the sum side by side: what a gate's integer sum is multiplied by, what is taken
  /// from it first, and what is taken from it for each whole number of the state (null where that is 0); (gates *
  /// hidden).
  Buffer scale, offset, zero;
  int64_t units = 0;  ///< of a panel of `weight`
  int64_t candidate_units = 0;
  Buffer h0, c0, inner_bias, peepholes, lengths;
  Buffer y, h, c;  ///< all states (steps, batch, hidden), the last one, the last cell
};

/// Vectors of `lanes` units in a panel of so many gates: enough sums at once where there is one row.
int64_t PanelVectors(int64_t gates, int64_t batch, int64_t hidden, int64_t lanes);

Stmt WriteRecurrence(const Recurrence& r, const Machine& mc);

}  // namespace baton::relay::kernel
