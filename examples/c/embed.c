/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baton embedded in a plain C99 program, over its C header alone.
 *
 *     cc -std=c99 -Iinclude examples/c/embed.c -Lpython/baton/lib -lbaton_runtime -Wl,-rpath,$PWD/python/baton/lib -o embed
 *     ./embed                # functions, callbacks, errors, tensors
 *     ./embed model.baton    # and a model of one float32 input and output, compiled by `baton compile`
 */
#include <baton/runtime/c_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the thread's error if a call failed. */
static void Check(int rc, const char* what) {
  if (rc == 0) return;
  fprintf(stderr, "%s: %s: %s\n%s", what, BatonErrorKind(), BatonErrorMessage(), BatonErrorTrace());
  exit(1);
}

/* Values of the kinds that need no owner. */
static BatonValue Int(int64_t x) {
  BatonValue v = {kBatonInt, 0, {0}};
  v.v_int64 = x;
  return v;
}
static BatonValue Str(const char* s) {
  BatonValue v = {kBatonStr, 0, {0}};
  v.v_str = s;
  return v;
}
static BatonValue Obj(BatonObject* o) {
  BatonValue v = {kBatonObject, 0, {0}};
  v.v_obj = o;
  return v;
}
static BatonValue Tensor(DLTensor* t) {
  BatonValue v = {kBatonTensor, 0, {0}};
  v.v_tensor = t;
  return v;
}

static BatonObject* Global(const char* name) {
  BatonObject* f = NULL;
  Check(BatonFuncGetGlobal(name, &f), name);
  if (f == NULL) {
    fprintf(stderr, "no global function is called %s\n", name);
    exit(1);
  }
  return f;
}

/* A function for others to call: adds two ints. An error is stored before -1 is given. */
static int MyAdd(void* self, const BatonValue* args, int num_args, BatonValue* ret) {
  ++*(int*)self;
  if (num_args != 2 || args[0].type_code != kBatonInt || args[1].type_code != kBatonInt) {
    BatonErrorSet("TypeError", "myadd takes two ints");
    return -1;
  }
  *ret = Int(args[0].v_int64 + args[1].v_int64);
  return 0;
}
static void CountFree(void* self) { *(int*)self += 1000; }

/* A callback: prints what it is told. Strings arrive borrowed, or as objects that own their characters. */
static int PrintIt(void* self, const BatonValue* args, int num_args, BatonValue* ret) {
  const char* text = "";
  size_t size;
  (void)self;
  if (num_args == 1 && args[0].type_code == kBatonStr) text = args[0].v_str;
  if (num_args == 1 && args[0].type_code == kBatonObject && BatonStringView(args[0].v_obj, &text, &size)) return -1;
  printf("callback: %s\n", text);
  ret->type_code = kBatonNull;
  return 0;
}

/* Calls the function in its first argument with a greeting: what a callback is for. */
static int CallHello(void* self, const BatonValue* args, int num_args, BatonValue* ret) {
  BatonValue hello = Str("hello world");
  (void)self;
  if (num_args != 1 || args[0].type_code != kBatonObject) {
    BatonErrorSet("TypeError", "callhello takes a function");
    return -1;
  }
  return BatonFuncCall(args[0].v_obj, &hello, 1, ret);
}

static void Functions(void) {
  int calls = 0;
  BatonObject *add = NULL, *found, *print = NULL, *hello = NULL;
  BatonValue ret, args[2];
  args[0] = Int(1);
  args[1] = Int(2);

  Check(BatonFuncCreate(MyAdd, &calls, CountFree, &add), "create");
  Check(BatonFuncRegisterGlobal("myadd", add, 0), "register");
  found = Global("myadd");
  Check(BatonFuncCall(found, args, 2, &ret), "myadd");
  printf("myadd(1, 2) = %d\n", (int)ret.v_int64);

  /* A taken name is refused, and the error says so. */
  if (BatonFuncRegisterGlobal("myadd", add, 0) == 0) exit(1);
  printf("refused: %s\n", BatonErrorMessage());
  /* An error of a callee comes back as it was set. */
  args[1] = Str("two");
  if (BatonFuncCall(found, args, 2, &ret) == 0) exit(1);
  printf("%s: %s\n", BatonErrorKind(), BatonErrorMessage());
  BatonObjectRelease(found);
  BatonObjectRelease(add);

  Check(BatonFuncCreate(CallHello, NULL, NULL, &hello), "create");
  Check(BatonFuncCreate(PrintIt, NULL, NULL, &print), "create");
  args[0] = Obj(print);
  Check(BatonFuncCall(hello, args, 1, &ret), "callhello");
  BatonObjectRelease(print);
  BatonObjectRelease(hello);

  /* The registry still holds one reference; a function without references is freed, and says so. */
  calls = 0;
  Check(BatonFuncCreate(MyAdd, &calls, CountFree, &add), "create");
  BatonObjectRelease(add);
  printf("freed: %s\n", calls == 1000 ? "yes" : "no");
}

static void Containers(void) {
  BatonValue items[2];
  const BatonValue* seen;
  BatonObject *array = NULL, *mine = NULL;
  const char* text;
  void* data;
  size_t size;
  int image = 42;
  items[0] = Str("first");
  Check(BatonOpaqueCreate("example.Image", &image, NULL, &mine), "box");
  items[1] = Obj(mine);
  Check(BatonArrayCreate(items, 2, &array), "array");
  BatonObjectRelease(mine);
  Check(BatonArrayView(array, &seen, &size), "items");
  Check(BatonStringView(seen[0].v_obj, &text, &size), "text");
  Check(BatonOpaqueView(seen[1].v_obj, "example.Image", &data), "unbox");
  printf("array: %s and a %s of %d\n", text, BatonTypeIndex2Key(BatonObjectTypeIndex(seen[1].v_obj)), *(int*)data);
  if (BatonOpaqueView(seen[1].v_obj, "example.Sound", &data) == 0) exit(1);
  printf("%s: %s\n", BatonErrorKind(), BatonErrorMessage());
  BatonObjectRelease(array);
}

static int64_t shape_of_six[1] = {6};
static float six[6] = {1, 2, 3, 4, 5, 6};
static DLTensor Six(void) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = six;
  t.device.device_type = kDLCPU;
  t.ndim = 1;
  t.dtype.code = kDLFloat;
  t.dtype.bits = 32;
  t.dtype.lanes = 1;
  t.shape = shape_of_six;
  return t;
}

static void Tensors(void) {
  /* An array of Baton's, filled from memory of ours. */
  DLTensor mine = Six(), *view;
  BatonObject *empty = Global("runtime.NDArrayEmpty"), *copy = Global("runtime.NDArrayCopyFrom"), *shape = NULL;
  BatonValue args[3], array, ret, extent = Int(6);
  float sum = 0;
  int i;
  Check(BatonArrayCreate(&extent, 1, &shape), "shape");
  args[0] = Obj(shape);
  args[1] = Str("float32");
  args[2].type_code = kBatonDevice;
  args[2].zero = 0;
  args[2].v_device = mine.device;
  Check(BatonFuncCall(empty, args, 3, &array), "empty");
  args[0] = array;
  args[1] = Tensor(&mine);
  Check(BatonFuncCall(copy, args, 2, &ret), "copy");
  if (ret.type_code == kBatonObject) BatonObjectRelease(ret.v_obj);
  Check(BatonTensorView(array.v_obj, &view), "view");
  for (i = 0; i < 6; ++i) sum += ((const float*)view->data)[i];
  printf("tensor: %d elements, sum %g\n", (int)view->shape[0], (double)sum);
  BatonObjectRelease(array.v_obj);
  BatonObjectRelease(shape);
  BatonObjectRelease(empty);
  BatonObjectRelease(copy);
}

/* Loads a compiled model and runs it on as many ones as its input takes. */
static void Model(const char* path) {
  BatonObject *module = NULL, *make = NULL, *run = NULL, *info = NULL;
  BatonValue executor, arg, spec, outputs;
  const BatonValue *item, *extents;
  BatonObject* output = NULL;
  DLTensor t, *out;
  int64_t shape[8], count = 1, i;
  size_t n, rank;
  float* data;
  double sum = 0;

  Check(BatonModuleLoad(path, &module), "load");
  Check(BatonModuleGetFunction(module, "default", 0, &make), "default");
  Check(BatonFuncCall(make, NULL, 0, &executor), "executor");
  Check(BatonModuleGetFunction(executor.v_obj, "get_input_info", 0, &info), "get_input_info");
  Check(BatonModuleGetFunction(executor.v_obj, "run_with", 0, &run), "run_with");

  arg = Int(0);
  Check(BatonFuncCall(info, &arg, 1, &spec), "info"); /* [name, shape, dtype] */
  Check(BatonArrayView(spec.v_obj, &item, &n), "info");
  Check(BatonArrayView(item[1].v_obj, &extents, &rank), "shape");
  for (i = 0; i < (int64_t)rank && i < 8; ++i) count *= shape[i] = extents[i].v_int64;
  data = (float*)malloc((size_t)count * sizeof(float));
  for (i = 0; i < count; ++i) data[i] = 1;
  t = Six();
  t.data = data;
  t.ndim = (int32_t)rank;
  t.shape = shape;

  arg = Tensor(&t);
  Check(BatonFuncCall(run, &arg, 1, &outputs), "run");
  Check(BatonArrayView(outputs.v_obj, &item, &n), "outputs");
  output = item[0].v_obj;
  Check(BatonTensorView(output, &out), "output");
  for (count = 1, i = 0; i < out->ndim; ++i) count *= out->shape[i];
  for (i = 0; i < count; ++i) sum += ((const float*)out->data)[i];
  printf("model: %d outputs, %d elements, sum %g\n", (int)n, (int)count, sum);

  free(data);
  BatonObjectRelease(outputs.v_obj);
  BatonObjectRelease(spec.v_obj);
  BatonObjectRelease(run);
  BatonObjectRelease(info);
  BatonObjectRelease(executor.v_obj);
  BatonObjectRelease(make);
  BatonObjectRelease(module);
}

int main(int argc, char** argv) {
  if (BatonAbiVersion() != BATON_ABI_VERSION) {
    fprintf(stderr, "the library has ABI version %d, this program needs %d\n", BatonAbiVersion(), BATON_ABI_VERSION);
    return 1;
  }
  Functions();
  Containers();
  Tensors();
  if (argc > 1) Model(argv[1]);
  return 0;
}
