/* SPDX-License-Identifier: Apache-2.0 */
/* Baton for Node.js, over the C header and Node-API alone. In the repository's root:
 *
 *   cc -std=c99 -shared -fPIC -Iinclude -I/usr/include/node examples/javascript/baton_node.c -o baton.node \
 *      -Lpython/baton/lib -lbaton_runtime -Wl,-rpath,$PWD/python/baton/lib
 *   node examples/javascript/example.js ./baton.node
 *
 * It gives getGlobalFunc(name), registerFunc(name, f) and loadModule(path). Functions are functions, null is null,
 * text is text, integers are numbers (BigInt where they do not fit), arrays are arrays; a tensor is given as
 * {shape, data: Float32Array} or a Float32Array, and comes back as the former. Errors of Baton are thrown as Error with
 * their kind as `code`; what a callback throws is an error of Baton. All on the thread that loaded it. */
#define NAPI_VERSION 6
#include <baton/runtime/c_runtime_api.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS 16
#define MAX_DIMS 8

static napi_value FromBaton(napi_env env, const BatonValue* v);

static napi_value Throw(napi_env env) {
  napi_throw_error(env, BatonErrorKind(), BatonErrorMessage());
  BatonErrorPut(NULL);
  return NULL;
}

static bool IsA(const BatonObject* o, const char* key) {
  return strcmp(BatonTypeIndex2Key(BatonObjectTypeIndex(o)), key) == 0;
}

/* ---- Functions of JavaScript */

typedef struct {
  napi_env env;
  napi_ref function;
} Callback;

static int ToBaton(napi_env env, napi_value value, BatonValue* v, void** scratch);

static int CallScript(void* self, const BatonValue* args, int n, BatonValue* ret) {
  Callback* c = self;
  napi_handle_scope scope;
  napi_value f, global, result, argv[MAX_ARGS];
  int code = 0;
  if (n > MAX_ARGS) {
    BatonErrorSet("TypeError", "a function of JavaScript takes at most 16 arguments");
    return -1;
  }
  napi_open_handle_scope(c->env, &scope);
  napi_get_reference_value(c->env, c->function, &f);
  napi_get_global(c->env, &global);
  for (int i = 0; i < n; ++i) argv[i] = FromBaton(c->env, &args[i]);
  if (napi_call_function(c->env, global, f, (size_t)n, argv, &result) != napi_ok) {
    napi_value error, text, name;
    char what[512] = "", kind[64] = "RuntimeError";
    napi_get_and_clear_last_exception(c->env, &error);
    napi_coerce_to_string(c->env, error, &text);
    napi_get_value_string_utf8(c->env, text, what, sizeof what, NULL);
    if (napi_get_named_property(c->env, error, "name", &name) == napi_ok)
      napi_get_value_string_utf8(c->env, name, kind, sizeof kind, NULL);
    BatonErrorSet(kind, what);
    code = -1;
  } else {
    void* scratch = NULL;
    code = ToBaton(c->env, result, ret, &scratch);
    if (code == 0 && ret->type_code == kBatonStr) { /* what is returned is owned */
      BatonObject* s;
      code = BatonStringCreate(ret->v_str, strlen(ret->v_str), &s);
      ret->type_code = kBatonObject, ret->v_obj = s;
    } else if (code == 0 && ret->type_code == kBatonTensor) {
      BatonErrorSet("TypeError", "a function of JavaScript fills tensors that it is given, it returns none");
      memset(ret, 0, sizeof *ret);
      code = -1;
    }
    free(scratch);
  }
  napi_close_handle_scope(c->env, scope);
  return code;
}

static void FreeCallback(void* self) {
  Callback* c = self;
  napi_delete_reference(c->env, c->function);
  free(c);
}

static int MakeCallback(napi_env env, napi_value f, BatonObject** out) {
  Callback* c = malloc(sizeof *c);
  c->env = env;
  napi_create_reference(env, f, 1, &c->function);
  return BatonFuncCreate(CallScript, c, FreeCallback, out);
}

/* ---- Values */

static void ReleaseObject(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  BatonObjectRelease(data);
}

/* An object of Baton that a value of JavaScript stands for, or null. */
static BatonObject* Held(napi_env env, napi_value value) {
  napi_value inner;
  napi_valuetype type;
  void* data = NULL;
  napi_typeof(env, value, &type);
  if (type != napi_object && type != napi_function) return NULL;
  if (napi_get_named_property(env, value, "__baton", &inner) != napi_ok) return NULL;
  napi_typeof(env, inner, &type);
  if (type == napi_external) napi_get_value_external(env, inner, &data);
  return data;
}

typedef struct {
  DLTensor tensor;
  int64_t shape[MAX_DIMS];
} Lent;

/* Lends a Float32Array, or {shape, data}; false for anything else. */
static bool LendTensor(napi_env env, napi_value value, Lent* t) {
  napi_value data = value, dims;
  bool typed = false;
  napi_typedarray_type kind;
  size_t n = 0;
  uint32_t rank = 1;
  memset(t, 0, sizeof *t);
  napi_is_typedarray(env, value, &typed);
  if (!typed) {
    if (napi_get_named_property(env, value, "data", &data) != napi_ok) return false;
    napi_is_typedarray(env, data, &typed);
    if (!typed) return false;
  }
  napi_get_typedarray_info(env, data, &kind, &n, &t->tensor.data, NULL, NULL);
  if (kind != napi_float32_array) return false;
  t->shape[0] = (int64_t)n;
  if (data != value) {
    int64_t all = 1;
    if (napi_get_named_property(env, value, "shape", &dims) != napi_ok) return false;
    if (napi_get_array_length(env, dims, &rank) != napi_ok || rank > MAX_DIMS) return false;
    for (uint32_t i = 0; i < rank; ++i) {
      napi_value d;
      napi_get_element(env, dims, i, &d);
      if (napi_get_value_int64(env, d, &t->shape[i]) != napi_ok || t->shape[i] < 0) return false;
      all *= t->shape[i];
    }
    if (all != (int64_t)n) return false;
  }
  t->tensor.ndim = (int32_t)rank;
  t->tensor.shape = t->shape;
  t->tensor.dtype.code = kDLFloat, t->tensor.dtype.bits = 32, t->tensor.dtype.lanes = 1;
  t->tensor.device.device_type = kDLCPU;
  return true;
}

/* `*scratch` is freed by the caller after the call; an object in `v` is the caller's. 0 or -1 with the error stored. */
static int ToBaton(napi_env env, napi_value value, BatonValue* v, void** scratch) {
  napi_valuetype type;
  BatonObject* o;
  napi_typeof(env, value, &type);
  memset(v, 0, sizeof *v);
  *scratch = NULL;
  switch (type) {
    case napi_undefined:
    case napi_null:
      return 0;
    case napi_boolean: {
      bool b;
      napi_get_value_bool(env, value, &b);
      v->type_code = kBatonBool, v->v_int64 = b;
      return 0;
    }
    case napi_bigint: {
      bool lossless;
      v->type_code = kBatonInt;
      napi_get_value_bigint_int64(env, value, &v->v_int64, &lossless);
      if (!lossless) BatonErrorSet("OverflowError", "a BigInt does not fit into 64 bits");
      return lossless ? 0 : -1;
    }
    case napi_number: {
      double d;
      napi_get_value_double(env, value, &d);
      if (d >= -9007199254740991.0 && d <= 9007199254740991.0 && d == (double)(int64_t)d) {
        v->type_code = kBatonInt, v->v_int64 = (int64_t)d;
      } else {
        v->type_code = kBatonFloat, v->v_float64 = d;
      }
      return 0;
    }
    case napi_string: {
      size_t n = 0;
      napi_get_value_string_utf8(env, value, NULL, 0, &n);
      char* text = *scratch = malloc(n + 1);
      napi_get_value_string_utf8(env, value, text, n + 1, &n);
      v->type_code = kBatonStr, v->v_str = text;
      return 0;
    }
    default:
      break;
  }
  if ((o = Held(env, value)) != NULL) {
    BatonObjectRetain(o);
  } else if (type == napi_function) {
    if (MakeCallback(env, value, &o) != 0) return -1;
  } else {
    Lent* t = malloc(sizeof *t);
    if (!LendTensor(env, value, t)) {
      free(t);
      BatonErrorSet("TypeError", "Baton takes null, booleans, numbers, BigInts, text, functions, Float32Arrays, "
                                 "{shape, data} and its own objects");
      return -1;
    }
    *scratch = t;
    v->type_code = kBatonTensor, v->v_tensor = &t->tensor;
    return 0;
  }
  v->type_code = kBatonObject, v->v_obj = o;
  return 0;
}

static napi_value CallBaton(napi_env env, napi_callback_info info) {
  size_t n = MAX_ARGS;
  napi_value argv[MAX_ARGS], out = NULL;
  BatonValue args[MAX_ARGS], ret;
  void *scratch[MAX_ARGS], *f;
  size_t made = 0;
  int code = 0;
  napi_get_cb_info(env, info, &n, argv, NULL, &f);
  if (n > MAX_ARGS) {
    napi_throw_type_error(env, "TypeError", "a function of Baton takes at most 16 arguments from here");
    return NULL;
  }
  for (; made < n && code == 0; ++made) code = ToBaton(env, argv[made], &args[made], &scratch[made]);
  if (code == 0) code = BatonFuncCall(f, args, (int)n, &ret);
  if (code == 0) {
    out = FromBaton(env, &ret);
    if (ret.type_code == kBatonObject) BatonObjectRelease(ret.v_obj);
  }
  for (size_t i = 0; i < made; ++i) {
    free(scratch[i]);
    if (args[i].type_code == kBatonObject) BatonObjectRelease(args[i].v_obj);
  }
  return code == 0 ? out : Throw(env);
}

/* A function, or an object that only Baton knows: it holds a reference. */
static napi_value Wrap(napi_env env, BatonObject* o) {
  napi_value out, held;
  BatonObjectRetain(o);
  napi_create_external(env, o, ReleaseObject, NULL, &held);
  if (IsA(o, "runtime.PackedFunc")) {
    napi_create_function(env, NULL, 0, CallBaton, o, &out);
  } else {
    napi_create_object(env, &out);
  }
  napi_set_named_property(env, out, "__baton", held);
  return out;
}

/* A dense tensor of float32 on the CPU: the kind that is shown here. */
static bool Plain(const DLTensor* t) {
  int64_t step = 1;
  if (t->dtype.code != kDLFloat || t->dtype.bits != 32 || t->dtype.lanes != 1 || t->device.device_type != kDLCPU) return 0;
  for (int32_t i = t->ndim - 1; i >= 0; step *= t->shape[i--])
    if (t->strides && t->shape[i] > 1 && t->strides[i] != step) return 0;
  return t->ndim <= MAX_DIMS;
}

/* A copy of such a tensor; null for another. */
static napi_value FromTensor(napi_env env, const DLTensor* t) {
  napi_value out, shape, buffer, data;
  void* bytes;
  size_t n = 1;
  if (!Plain(t)) return NULL;
  napi_create_array_with_length(env, (size_t)t->ndim, &shape);
  for (int32_t i = 0; i < t->ndim; ++i) {
    napi_value d;
    napi_create_int64(env, t->shape[i], &d);
    napi_set_element(env, shape, (uint32_t)i, d);
    n *= (size_t)t->shape[i];
  }
  napi_create_arraybuffer(env, n * sizeof(float), &bytes, &buffer);
  if (n) memcpy(bytes, (const char*)t->data + t->byte_offset, n * sizeof(float));
  napi_create_typedarray(env, napi_float32_array, n, buffer, 0, &data);
  napi_create_object(env, &out);
  napi_set_named_property(env, out, "shape", shape);
  napi_set_named_property(env, out, "data", data);
  return out;
}

/* `v` stays its owner's. */
static napi_value FromBaton(napi_env env, const BatonValue* v) {
  napi_value out = NULL;
  napi_get_null(env, &out);
  if (v->type_code == kBatonBool) {
    napi_get_boolean(env, v->v_int64 != 0, &out);
  } else if (v->type_code == kBatonInt) {
    if (v->v_int64 >= -9007199254740991 && v->v_int64 <= 9007199254740991) {
      napi_create_int64(env, v->v_int64, &out);
    } else {
      napi_create_bigint_int64(env, v->v_int64, &out);
    }
  } else if (v->type_code == kBatonFloat) {
    napi_create_double(env, v->v_float64, &out);
  } else if (v->type_code == kBatonStr) {
    napi_create_string_utf8(env, v->v_str, NAPI_AUTO_LENGTH, &out);
  } else if (v->type_code == kBatonObject && IsA(v->v_obj, "runtime.String")) {
    const char* text;
    size_t size;
    if (BatonStringView(v->v_obj, &text, &size) != 0) return Throw(env);
    napi_create_string_utf8(env, text, size, &out);
  } else if (v->type_code == kBatonObject && IsA(v->v_obj, "runtime.Array")) {
    const BatonValue* items;
    size_t size;
    if (BatonArrayView(v->v_obj, &items, &size) != 0) return Throw(env);
    napi_create_array_with_length(env, size, &out);
    for (size_t i = 0; i < size; ++i) napi_set_element(env, out, (uint32_t)i, FromBaton(env, &items[i]));
  } else if (v->type_code == kBatonObject && IsA(v->v_obj, "runtime.NDArray")) {
    DLTensor* t;
    if (BatonTensorView(v->v_obj, &t) != 0) return Throw(env);
    out = FromTensor(env, t);
    if (out == NULL) out = Wrap(env, v->v_obj);
  } else if (v->type_code == kBatonTensor) {
    napi_value tensor = FromTensor(env, v->v_tensor);
    if (tensor != NULL) out = tensor;
  } else if (v->type_code == kBatonObject) {
    out = Wrap(env, v->v_obj);
  }
  return out;
}

/* ---- The module */

static bool Text(napi_env env, napi_value value, char* out, size_t size) {
  if (napi_get_value_string_utf8(env, value, out, size, NULL) == napi_ok) return true;
  napi_throw_type_error(env, "TypeError", "a text is wanted");
  return false;
}

static napi_value WrapOwned(napi_env env, BatonObject* o) {
  napi_value out;
  napi_get_null(env, &out);
  if (o != NULL) {
    out = Wrap(env, o);
    BatonObjectRelease(o);
  }
  return out;
}

static napi_value GetGlobalFunc(napi_env env, napi_callback_info info) {
  size_t n = 1;
  napi_value argv[1];
  char name[256];
  BatonObject* f;
  napi_get_cb_info(env, info, &n, argv, NULL, NULL);
  if (!Text(env, argv[0], name, sizeof name)) return NULL;
  return BatonFuncGetGlobal(name, &f) == 0 ? WrapOwned(env, f) : Throw(env);
}

static napi_value RegisterFunc(napi_env env, napi_callback_info info) {
  size_t n = 2;
  napi_value argv[2];
  char name[256];
  BatonObject* f;
  int code;
  napi_get_cb_info(env, info, &n, argv, NULL, NULL);
  if (!Text(env, argv[0], name, sizeof name)) return NULL;
  if (MakeCallback(env, argv[1], &f) != 0) return Throw(env);
  code = BatonFuncRegisterGlobal(name, f, 0);
  BatonObjectRelease(f);
  return code == 0 ? NULL : Throw(env);
}

static napi_value ModuleFunction(napi_env env, napi_callback_info info) {
  size_t n = 1;
  napi_value argv[1], self;
  char name[256];
  BatonObject *f, *module;
  napi_get_cb_info(env, info, &n, argv, &self, NULL);
  if (!Text(env, argv[0], name, sizeof name) || (module = Held(env, self)) == NULL) return NULL;
  return BatonModuleGetFunction(module, name, 1, &f) == 0 ? WrapOwned(env, f) : Throw(env);
}

static napi_value LoadModule(napi_env env, napi_callback_info info) {
  size_t n = 1;
  napi_value argv[1], out, method;
  char path[4096];
  BatonObject* module;
  napi_get_cb_info(env, info, &n, argv, NULL, NULL);
  if (!Text(env, argv[0], path, sizeof path)) return NULL;
  if (BatonModuleLoad(path, &module) != 0) return Throw(env);
  out = WrapOwned(env, module);
  napi_create_function(env, "getFunction", NAPI_AUTO_LENGTH, ModuleFunction, NULL, &method);
  napi_set_named_property(env, out, "getFunction", method);
  return out;
}

NAPI_MODULE_INIT() {
  static const struct {
    const char* name;
    napi_callback f;
  } functions[] = {{"getGlobalFunc", GetGlobalFunc}, {"registerFunc", RegisterFunc}, {"loadModule", LoadModule}};
  if (BatonAbiVersion() != BATON_ABI_VERSION) {
    napi_throw_error(env, "RuntimeError", "libbaton_runtime is of another version than this module");
    return NULL;
  }
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    napi_value f;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].f, NULL, &f);
    napi_set_named_property(env, exports, functions[i].name, f);
  }
  return exports;
}
