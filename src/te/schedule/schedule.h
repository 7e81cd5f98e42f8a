// SPDX-License-Identifier: Apache-2.0
// Stages that are added to a schedule. Each function throws ValueError, naming the operation, where it cannot be done.
#pragma once

#include <baton/te/schedule.h>

namespace baton::te {

/// Computes tensors of one operation in buffers of their own first, and copies them; returns the tensors of those
/// buffers.
Array<Tensor> CacheWrite(const Schedule& s, const Array<Tensor>& tensors, const String& scope);
/// Copies a tensor to a separate buffer, from which `readers` read; returns the tensor of that buffer.
Tensor CacheRead(const Schedule& s, const Tensor& tensor, const String& scope, const Array<Operation>& readers);
/// Splits a reduction: returns tensors, one for each result, that have a part of it for each index of the loop `axis`;
/// the operation of `tensor` reduces these then.
Array<Tensor> Rfactor(const Schedule& s, const Tensor& tensor, const IterVar& axis, int64_t factor_axis);
/// The stages between tensors, those of the inputs too if asked for.
Group CreateGroup(const Schedule& s, const Array<Operation>& outputs, const Array<Operation>& inputs,
                  bool include_inputs);
/// Schedules of the first and of the further rows of a scan.
Array<Schedule> CellsOf(const Operation& scan);

/// Lines that say how a stage is computed, in the order in which it was asked for.
String StageText(const Stage& stage);

}  // namespace baton::te
