/* SPDX-License-Identifier: Apache-2.0 */
/* The model that is linked in: what its code calls, and the functions of its executor, by the names that the runtime's
 * has. */
#include <string.h>

#include "internal.h"

/* ---- Functions for compiled code. */

int BatonBackendParallelLaunch(BatonParallelTask fn, void* closure, int num_tasks) {
  if (num_tasks <= 0) num_tasks = 1;
  for (int i = 0; i < num_tasks; ++i) {
    int code = fn(i, num_tasks, closure);
    if (code != 0) return code;
  }
  return 0;
}
int BatonBackendNumThreads(void) { return 1; }
int BatonBackendSetError(const char* message) {
  Fail("RuntimeError", message);
  return -1;
}
void* BatonBackendAlloc(uint64_t size) { return size > SIZE_MAX ? NULL : ArenaAlloc((size_t)size); }
void BatonBackendFree(void* memory) { ArenaFree(memory); }
int BatonBackendGetFunction(void* module, const char* name, void** out) {
  (void)module;
  const BatonMicroConfig* c = Config();
  for (size_t i = 0; i < c->num_functions; ++i) {
    if (strcmp(c->functions[i].name, name) == 0) {
      *out = (void*)(uintptr_t)&c->functions[i];
      return 0;
    }
  }
  Fail("RuntimeError", name);
  return -1;
}
int BatonBackendCallFunction(void* function, const BatonValue* args, int num_args, BatonValue* ret) {
  const BatonMicroFunction* f = function;
  return f->call(f->self, args, num_args, ret);
}
const BatonBackendApi kBackend = {sizeof(BatonBackendApi),    1,
                                  BatonBackendParallelLaunch, BatonBackendNumThreads,
                                  BatonBackendSetError,       BatonBackendAlloc,
                                  BatonBackendFree,           BatonBackendGetFunction,
                                  BatonBackendCallFunction};
const BatonBackendApi* BatonBackendGetApi(void) { return &kBackend; }

/* ---- The executor. */

typedef enum {
  kDefault,
  kRun,
  kCall,
  kRunWith,
  kSetInput,
  kGetInput,
  kGetOutput,
  kGetNumInputs,
  kGetNumOutputs,
  kGetInputIndex,
  kGetInputName,
  kGetOutputName,
  kGetInputInfo,
  kGetOutputInfo,
  kNumOps
} Op;
static const char* const kNames[kNumOps] = {"default",
                                            "run",
                                            "call",
                                            "run_with",
                                            "set_input",
                                            "get_input",
                                            "get_output",
                                            "get_num_inputs",
                                            "get_num_outputs",
                                            "get_input_index",
                                            "get_input_name",
                                            "get_output_name",
                                            "get_input_info",
                                            "get_output_info"};

static ModuleObject* NewModule(bool executor) {
  ModuleObject* m = New(sizeof(ModuleObject), kModule);
  if (!m) return NULL;
  m->model = Config()->model;
  m->executor = executor;
  if (!executor) return m;
  const size_t n = (size_t)(m->model->num_inputs + m->model->num_outputs);
  m->tensors = ArenaAlloc(n * sizeof(Tensor*));
  m->workspace = ArenaAlloc(m->model->workspace_bytes + BATON_MICRO_ALIGNMENT);
  if (m->tensors) memset(m->tensors, 0, n * sizeof(Tensor*));
  if (!m->tensors || !m->workspace) {
    Release(&m->head);
    FailMemory();
    return NULL;
  }
  *m->model->api = &kBackend;
  return m;
}

Object* NewLibrary(void) { return (Object*)NewModule(false); }

void FreeModule(ModuleObject* m) {
  for (int i = 0; m->tensors && i < m->model->num_inputs + m->model->num_outputs; ++i) {
    if (m->tensors[i]) Release(&m->tensors[i]->head);
  }
  ArenaFree(m->tensors);
  ArenaFree(m->workspace);
}

/* The number of an input or output by number or name; -1 with an error. */
static int Find(const ModuleObject* m, const BatonValue* key, bool output) {
  const int first = output ? m->model->num_inputs : 0, count = output ? m->model->num_outputs : m->model->num_inputs;
  const Text* name = (const Text*)ObjectOf(key, kText);
  if (key->type_code == kBatonInt && key->v_int64 >= 0 && key->v_int64 < count) return first + (int)key->v_int64;
  for (int i = 0; name && i < count; ++i) {
    if (strcmp(m->model->tensors[first + i].name, name->data) == 0) return first + i;
  }
  Fail(name ? "KeyError" : "IndexError", output ? "the model has no such output" : "the model has no such input");
  return -1;
}

static bool SetInput(ModuleObject* m, int i, const BatonValue* value) {
  const BatonMicroTensorInfo* want = &m->model->tensors[i];
  Tensor* from = (Tensor*)ObjectOf(value, kTensor);
  if (!from) return Fail("TypeError", "expected a tensor");
  const DLTensor* t = &from->t;
  if (t->ndim != want->ndim || memcmp(&t->dtype, &want->dtype, sizeof t->dtype) != 0 ||
      (t->ndim && memcmp(t->shape, want->shape, (size_t)t->ndim * sizeof(int64_t)) != 0)) {
    return Fail("ValueError", "an input of another shape or dtype than the model takes");
  }
  /* The value of get_input stays as it was. */
  if (m->tensors[i] && m->tensors[i]->head.count > 1) {
    Release(&m->tensors[i]->head);
    m->tensors[i] = NULL;
  }
  if (!m->tensors[i] && !(m->tensors[i] = NewTensor(t->shape, t->ndim, t->dtype))) return false;
  if (from->bytes) memcpy(m->tensors[i]->t.data, t->data, from->bytes);
  return true;
}

static bool Run(ModuleObject* m) {
  const BatonMicroModel* model = m->model;
  const int n = model->num_inputs + model->num_outputs;
  m->ran = false;
  for (int i = 0; i < n; ++i) {
    const BatonMicroTensorInfo* info = &model->tensors[i];
    if (i < model->num_inputs) {
      if (!m->tensors[i]) return Fail("ValueError", "an input has not been set");
      continue;
    }
    if (m->tensors[i] && m->tensors[i]->head.count > 1) { /* a result that is still held keeps its value */
      Release(&m->tensors[i]->head);
      m->tensors[i] = NULL;
    }
    if (!m->tensors[i] && !(m->tensors[i] = NewTensor(info->shape, info->ndim, info->dtype))) return false;
  }
  void** io = ArenaAlloc((size_t)n * sizeof(void*));
  if (!io) return FailMemory();
  for (int i = 0; i < n; ++i) io[i] = m->tensors[i]->t.data;
  int code = model->entry(io, model->constants, m->workspace, NULL);
  ArenaFree(io);
  if (code != 0 && !HasError()) Fail("RuntimeError", "the model failed without saying why");
  m->ran = code == 0;
  return m->ran;
}

static bool Outputs(ModuleObject* m, bool one, BatonValue* ret) {
  Tensor** outputs = m->tensors + m->model->num_inputs;
  if (one && m->model->num_outputs == 1) {
    *ret = OfObject(outputs[0]);
    Retain(&outputs[0]->head);
    return true;
  }
  List* l = NewList(kArray, (size_t)m->model->num_outputs);
  if (!l) return false;
  for (int i = 0; i < m->model->num_outputs; ++i) {
    l->items[i] = OfObject(outputs[i]);
    Retain(&outputs[i]->head);
  }
  *ret = OfObject(l);
  return true;
}

static bool Info(const BatonMicroTensorInfo* t, BatonValue* ret) {
  List *l = NewList(kArray, 4), *shape = NewList(kArray, (size_t)t->ndim), *extents = NewList(kArray, 0);
  Text* name = NewText(kText, t->name, strlen(t->name));
  if (!l || !shape || !extents || !name) {
    Object* made[] = {(Object*)l, (Object*)shape, (Object*)extents, (Object*)name};
    for (int i = 0; i < 4; ++i) Release(made[i]);
    return false;
  }
  for (int i = 0; i < t->ndim; ++i) shape->items[i] = Int(t->shape[i]);
  l->items[0] = OfObject(name);
  l->items[1] = OfObject(shape);
  l->items[2] = (BatonValue){.type_code = kBatonDType, .v_dtype = t->dtype};
  l->items[3] = OfObject(extents);
  *ret = OfObject(l);
  return true;
}

static bool GetOutput(ModuleObject* m, const BatonValue* args, int count, BatonValue* ret) {
  const int i = Find(m, &args[0], true);
  if (i < 0) return false;
  if (!m->ran) return Fail("RuntimeError", "the model has not run yet: call run() before get_output()");
  Tensor *out = m->tensors[i], *to = count > 1 ? (Tensor*)ObjectOf(&args[1], kTensor) : out;
  if (!to || to->bytes != out->bytes) return Fail("ValueError", "an array of another size than the output");
  if (to != out && out->bytes) memmove(to->t.data, out->t.data, out->bytes);
  *ret = OfObject(to);
  Retain(&to->head);
  return true;
}

static bool Do(ModuleObject* m, uint32_t op, const BatonValue* args, int count, BatonValue* ret) {
  const bool of_output = op == kGetOutputName || op == kGetOutputInfo;
  int i = 0;
  if (op >= kSetInput && op != kGetNumInputs && op != kGetNumOutputs && count < (op == kSetInput ? 2 : 1)) {
    return Fail("TypeError", "an argument is missing");
  }
  switch (op) {
    case kDefault:
      *ret = OfObject(NewModule(true));
      return ret->type_code == kBatonObject;
    case kRun:
      return Run(m);
    case kCall:
    case kRunWith:
      if (count != m->model->num_inputs) return Fail("TypeError", "another number of inputs than the model has");
      for (; i < count; ++i) {
        if (!SetInput(m, i, &args[i])) return false;
      }
      return Run(m) && Outputs(m, op == kCall, ret);
    case kSetInput:
      i = Find(m, &args[0], false);
      return i >= 0 && SetInput(m, i, &args[1]);
    case kGetInput:
      i = Find(m, &args[0], false);
      if (i >= 0 && m->tensors[i]) {
        *ret = OfObject(m->tensors[i]);
        Retain(&m->tensors[i]->head);
      }
      return i >= 0;
    case kGetOutput:
      return GetOutput(m, args, count, ret);
    case kGetNumInputs:
    case kGetNumOutputs:
      *ret = Int(op == kGetNumInputs ? m->model->num_inputs : m->model->num_outputs);
      return true;
    case kGetInputIndex:
      i = Find(m, &args[0], false);
      BatonErrorSet("", "");
      *ret = Int(i);
      return true;
    case kGetInputName:
    case kGetOutputName:
      i = Find(m, &args[0], of_output);
      if (i < 0) return false;
      *ret = OfObject(NewText(kText, m->model->tensors[i].name, strlen(m->model->tensors[i].name)));
      return ret->type_code == kBatonObject;
    default:
      i = Find(m, &args[0], of_output);
      return i >= 0 && Info(&m->model->tensors[i], ret);
  }
}

static int CallModule(void* self, const BatonValue* args, int count, BatonValue* ret) {
  Function* f = self;
  return Do((ModuleObject*)f->keeps, f->op, args, count, ret) ? 0 : -1;
}

Object* ModuleFunction(ModuleObject* m, const Text* name) {
  for (uint32_t op = m->executor ? kRun : kDefault; op < (m->executor ? (uint32_t)kNumOps : (uint32_t)kRun); ++op) {
    if (strcmp(kNames[op], name->data) != 0) continue;
    Function* f = New(sizeof(Function), kFunction);
    if (!f) return NULL;
    f->call = CallModule;
    f->self = f;
    f->keeps = &m->head;
    f->op = op;
    f->writes_arguments = op == kGetOutput;
    Retain(f->keeps);
    return &f->head;
  }
  return NULL;
}
