// SPDX-License-Identifier: Apache-2.0
#include <baton/topi/reduce.h>

namespace baton::topi {

Array<PrimExpr> ReducedShape(const Array<PrimExpr>& shape, const std::vector<int64_t>& axes, bool keepdims) {
  Array<PrimExpr> out;
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(d);
    if (reduced) ++next;
    if (!reduced) {
      out.push_back(shape[d]);
    } else if (keepdims) {
      out.push_back(1);
    }
  }
  return out;
}

Array<PrimExpr> ReducedAt(size_t ndim, const std::vector<int64_t>& axes, bool keepdims, const Array<PrimExpr>& i,
                          const Array<PrimExpr>& k) {
  Array<PrimExpr> at;
  size_t next = 0, from = 0;
  for (size_t d = 0; d < ndim; ++d) {
    if (next < axes.size() && axes[next] == static_cast<int64_t>(d)) {
      at.push_back(k[next++]);
      if (keepdims) ++from;
    } else {
      at.push_back(i[from++]);
    }
  }
  return at;
}

Array<te::IterVar> ReduceAxes(const Array<PrimExpr>& shape, const std::vector<int64_t>& axes) {
  Array<te::IterVar> out;
  for (int64_t a : axes) out.push_back(te::ReduceAxis(0, shape[a], "k" + std::to_string(a)));
  return out;
}

PrimExpr Product(const Array<PrimExpr>& shape) {
  PrimExpr n = 1;
  for (const PrimExpr& d : shape) n = n * d;
  return n;
}

PrimExpr ReducedCount(const Array<PrimExpr>& shape, const std::vector<int64_t>& axes) {
  PrimExpr n = 1;
  for (int64_t a : axes) n = n * shape[a];
  return n;
}

Array<tir::Buffer> BuffersOf(const Array<te::Tensor>& in) {
  Array<tir::Buffer> out;
  for (const te::Tensor& t : in) out.push_back(tir::Buffer::Make(t.shape(), t.dtype(), t->op->name.str()));
  return out;
}

te::Tensor MakeExtern(const Array<te::Tensor>& in, const Array<tir::Buffer>& in_buffers, tir::Buffer out,
                      tir::Stmt body, String name) {
  te::ExternOpNode n;
  n.name = name, n.tag = String("extern");
  n.inputs = in, n.input_buffers = in_buffers, n.output_buffers = {out}, n.body = body;
  te::TensorNode t;
  t.shape = out->shape, t.dtype = out->dtype, t.op = te::ExternOp(std::move(n));
  return te::Tensor(std::move(t));
}

tir::Stmt Store(const tir::Buffer& buffer, const Array<PrimExpr>& at, PrimExpr value) {
  tir::BufferStoreNode n;
  n.buffer = buffer, n.value = value, n.indices = at;
  return tir::BufferStore(std::move(n));
}

tir::Stmt WrapLoops(const Array<PrimExpr>& shape, const Array<tir::Var>& vars, tir::Stmt body) {
  for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    tir::ForNode n;
    n.loop_var = vars[d], n.min = 0, n.extent = shape[d], n.body = body;
    body = tir::For(std::move(n));
  }
  return body;
}

PrimExpr Ravel(const Array<PrimExpr>& at, const Array<PrimExpr>& shape) {
  PrimExpr p = 0;
  for (size_t d = 0; d < shape.size(); ++d) p = d == 0 ? at[d] : p * shape[d] + at[d];
  return p;
}

Array<PrimExpr> Unravel(PrimExpr position, const Array<PrimExpr>& shape) {
  std::vector<PrimExpr> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (tir::is_one(shape[d])) {
      at[d] = 0;
      continue;
    }
    bool first = true;  // no dimension before it has more than one element: the rest is the index
    for (size_t e = 0; e < d; ++e) first = first && tir::is_one(shape[e]);
    at[d] = first ? position : floormod(position, shape[d]);
    if (!first) position = floordiv(position, shape[d]);
  }
  return Array<PrimExpr>(at);
}

te::Tensor Reshape(const te::Tensor& x, const Array<PrimExpr>& shape) {
  return te::Compute(
      shape,
      [&](te::Indices i) {
        // Dimensions that both shapes share at the front or at the back keep their index; the middle goes through the
        // position.
        size_t n = shape.size(), m = x.shape().size(), front = 0, back = 0;
        auto same = [](const PrimExpr& a, const PrimExpr& b) {
          const int64_t *p = tir::as_const_int(a), *q = tir::as_const_int(b);
          return a.same_as(b) || (p && q && *p == *q);
        };
        while (front < n && front < m && same(shape[front], x.shape()[front])) ++front;
        while (back < n - front && back < m - front && same(shape[n - 1 - back], x.shape()[m - 1 - back])) ++back;
        Array<PrimExpr> mid_at, mid_shape, mid_from, at;
        for (size_t d = front; d < n - back; ++d) mid_at.push_back(i[d]), mid_shape.push_back(shape[d]);
        for (size_t d = front; d < m - back; ++d) mid_from.push_back(x.shape()[d]);
        for (size_t d = 0; d < front; ++d) at.push_back(i[d]);
        if (!mid_from.empty()) {
          for (const PrimExpr& e : Unravel(Ravel(mid_at, mid_shape), mid_from)) at.push_back(e);
        }
        for (size_t d = n - back; d < n; ++d) at.push_back(i[d]);
        return x(at);
      },
      "reshape");
}

}  // namespace baton::topi
