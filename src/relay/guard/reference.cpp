// SPDX-License-Identifier: Apache-2.0
#include "relay/guard/reference.h"

#include <baton/relay/op.h>

#include <vector>

namespace baton::relay {

NDArray RunReference(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) {
  const OpDef* def = DefOf(op);
  if (!def || !def->traits.reference || static_cast<int>(args.size()) != def->num_inputs) return NDArray();
  std::vector<NDArray> in;
  for (const ObjectRef& a : args) {
    if (!a.as<runtime::NDArrayObj>()) return NDArray();
    in.push_back(Downcast<NDArray>(a).Contiguous());
    if (in.back().device().device_type != kDLCPU || in.back().numel() == 0) return NDArray();
  }
  return def->traits.reference(attrs, in);
}

}  // namespace baton::relay
