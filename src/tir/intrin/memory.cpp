// SPDX-License-Identifier: Apache-2.0
// Accesses of memory beside BufferLoad and BufferStore: under masks, by addresses, of cache lines.
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <fmt/format.h>

#include "tir/literals.h"

namespace baton::tir {
namespace {

void NeedPlace(const PrimExpr& e, const char* name) {
  if (!e.as<BufferLoadNode>()) literals::Fail(fmt::format("`{}` takes a BufferLoad that names the place", name));
}

HostNumber InterpretMaskedLoad(Machine& machine, const CallNode* call, int lane) {
  if (!machine.Eval(call->args[1], lane).i) return {0, 0};
  return machine.ReadPlace(call->args[0].as<BufferLoadNode>(), lane);
}
/// Reads all values before it stores the first.
HostNumber InterpretMaskedStore(Machine& machine, const CallNode* call, int /*lane*/) {
  const int lanes = call->args[1].dtype().lanes();
  std::vector<HostNumber> values;
  for (int i = 0; i < lanes; ++i) values.push_back(machine.Eval(call->args[1], i));
  for (int i = 0; i < lanes; ++i) {
    if (!machine.Eval(call->args[2], i).i) continue;
    machine.WritePlace(call->args[0].as<BufferLoadNode>(), i, values[static_cast<size_t>(i)]);
  }
  return {0, 0};
}
HostNumber InterpretNothing(Machine& /*machine*/, const CallNode* /*call*/, int /*lane*/) { return {0, 0}; }

}  // namespace

const Op intrin::masked_load = DefineIntrin({
    .name = "masked_load",
    .doc = "The element at a place where the mask is true, 0 in the other lanes, where nothing is read: (place, mask).",
    .takes = "lb",
    .interpret = InterpretMaskedLoad,
    .derivative = IntrinDerivative::None("memory is not differentiated"),
    .effect = Effect::kReads,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .place = PlaceUse::kReads,
});
const Op intrin::masked_store = DefineIntrin({
    .name = "masked_store",
    .doc = "Stores a value at a place in the lanes where the mask is true: (place, value, mask).",
    .takes = "lxb",
    .interpret = InterpretMaskedStore,
    .derivative = IntrinDerivative::None("memory is not differentiated"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .place = PlaceUse::kWrites,
});
const Op intrin::prefetch = DefineIntrin({
    .name = "prefetch",
    .doc = "Asks for the cache line of a place: (place, locality from 0, none, to 3, all levels).",
    .takes = "li[ii]",
    .interpret = InterpretNothing,
    .derivative = IntrinDerivative::None("memory is not differentiated"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .place = PlaceUse::kHint,
});
const Op intrin::address_of = DefineIntrin({
    .name = "address_of",
    .doc = "The address of a place.",
    .takes = "l",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .place = PlaceUse::kAddress,
});
const Op intrin::ptr_offset = DefineIntrin({
    .name = "ptr_offset",
    .doc = "A pointer moved on: (pointer, bytes).",
    .takes = "hi",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::load_handle = DefineIntrin({
    .name = "load_handle",
    .doc = "An element of an array of pointers: (array, index).",
    .takes = "hi",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kReads,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::memcpy = DefineIntrin({
    .name = "memcpy",
    .doc = "Copies bytes: (to, from, bytes).",
    .takes = "hhi",
    .derivative = IntrinDerivative::None("memory is not differentiated"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::tvm_access_ptr = DefineIntrin({
    .name = "tvm_access_ptr",
    .doc = "The address of the element at an offset: (a value of the dtype, data, offset, extent, access).",
    .takes = "*",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .ends_in = "CanonicalForm",
});

PrimExpr BytesOfIndex(const PrimExpr& index) {
  const auto* wide = index.as<CastNode>();
  return wide && wide->dtype.is_integral() && wide->value.dtype().element_of() == DataType::UInt(8) &&
                 wide->dtype.bits() > 8 && wide->dtype.lanes() > 1
             ? wide->value
             : PrimExpr();
}

PrimExpr masked_load(PrimExpr load, PrimExpr mask) {
  NeedPlace(load, "masked_load");
  const DataType t = load.dtype();
  return Call(t, intrin::masked_load, {std::move(load), broadcast_to(std::move(mask), t.lanes())});
}
PrimExpr masked_store(PrimExpr address, PrimExpr value, PrimExpr mask) {
  NeedPlace(address, "masked_store");
  const DataType t = address.dtype();
  if (!(value.dtype() == t)) {
    literals::Fail(fmt::format("masked_store of {} where {} is wanted", literals::TypeName(value), DataType2String(t)));
  }
  return Call(DataType::Int(32), intrin::masked_store,
              {std::move(address), std::move(value), broadcast_to(std::move(mask), t.lanes())});
}
PrimExpr prefetch(PrimExpr address, int64_t locality) {
  NeedPlace(address, "prefetch");
  return Call(DataType::Int(32), intrin::prefetch, {std::move(address), make_int(DataType::Int(64), locality)});
}
PrimExpr address_of(PrimExpr load) {
  NeedPlace(load, "address_of");
  return Call(DataType::Handle(), intrin::address_of, {std::move(load)});
}
PrimExpr ptr_offset(PrimExpr pointer, PrimExpr bytes) {
  return Call(DataType::Handle(), intrin::ptr_offset, {std::move(pointer), std::move(bytes)});
}
PrimExpr load_handle(PrimExpr array, PrimExpr index) {
  return Call(DataType::Handle(), intrin::load_handle, {std::move(array), std::move(index)});
}

}  // namespace baton::tir
