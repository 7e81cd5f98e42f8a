// SPDX-License-Identifier: Apache-2.0
// NM-003: "TVM Runtime System", TVM Node and Compiler Stack: AttrVisitor, Node, and TensorNode over them.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_tensor_node {
using tvm::Array;
using tvm::Expr;
using tvm::NodeRef;
using tvm::Operation;
// Early TVM's Type is today's DataType.
using Type = tvm::runtime::DataType;

class AttrVisitor {
 public:
  virtual void Visit(const char* key, double* value) = 0;
  virtual void Visit(const char* key, int64_t* value) = 0;
  virtual void Visit(const char* key, uint64_t* value) = 0;
  virtual void Visit(const char* key, int* value) = 0;
  virtual void Visit(const char* key, bool* value) = 0;
  virtual void Visit(const char* key, std::string* value) = 0;
  virtual void Visit(const char* key, void** value) = 0;
  virtual void Visit(const char* key, Type* value) = 0;
  virtual void Visit(const char* key, NodeRef* value) = 0;
  // ...
};

class Node {
 public:
  virtual void VisitAttrs(AttrVisitor* visitor) {}
  // ...
};

class TensorNode : public Node {
 public:
  /*! \brief The shape of the tensor */
  Array<Expr> shape;
  /*! \brief data type in the content of the tensor */
  Type dtype;
  /*! \brief the source operation, can be None */
  Operation op;
  /*! \brief the output index from source operation */
  int value_index{0};
  /*! \brief constructor */
  TensorNode() {}

  void VisitAttrs(AttrVisitor* v) final {
    v->Visit("shape", &shape);
    v->Visit("dtype", &dtype);
    v->Visit("op", &op);
    v->Visit("value_index", &value_index);
  }
};

struct Names : AttrVisitor {
  std::string seen;
  void Visit(const char* key, double*) override { seen += key; }
  void Visit(const char* key, int64_t*) override { seen += key; }
  void Visit(const char* key, uint64_t*) override { seen += key; }
  void Visit(const char* key, int*) override { seen += std::string(key) + ":int "; }
  void Visit(const char* key, bool*) override { seen += key; }
  void Visit(const char* key, std::string*) override { seen += key; }
  void Visit(const char* key, void**) override { seen += key; }
  void Visit(const char* key, Type*) override { seen += std::string(key) + ":type "; }
  void Visit(const char* key, NodeRef*) override { seen += std::string(key) + ":ref "; }
};

}  // namespace seed_tensor_node

TEST_CASE("NM-003 NM-004 RF-003 seed 002: TensorNode shows its members, in order") {
  seed_tensor_node::Names names;
  seed_tensor_node::TensorNode node;
  node.VisitAttrs(&names);
  CHECK(names.seen == "shape:ref dtype:type op:ref value_index:int ");
}
