/* SPDX-License-Identifier: Apache-2.0 */
/* Baton for Java, over the C header and JNI alone. In the repository's root, with a JDK in $JAVA_HOME:
 *
 *   cc -std=c99 -shared -fPIC -Iinclude -I$JAVA_HOME/include -I$JAVA_HOME/include/linux examples/java/baton_jni.c \
 *      -o build/libbaton_jni.so -Lpython/baton/lib -lbaton_runtime -Wl,-rpath,$PWD/python/baton/lib
 *   javac -d build/java examples/java/Baton.java examples/java/Example.java
 *   java -Djava.library.path=build -cp build/java Example
 */
#include <baton/runtime/c_runtime_api.h>
#include <jni.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS 16
#define MAX_DIMS 8

static JavaVM* vm;
static jclass object_class, long_class, double_class, bool_class, string_class, tensor_class, failure_class, obj_class, func_class,
    array_class;
static jmethodID long_of, double_of, bool_of, long_value, double_value, bool_value, tensor_new, failure_new, obj_new, func_call, to_string;
static jfieldID tensor_shape, tensor_data, obj_handle;

static jclass Class(JNIEnv* env, const char* name) {
  jclass c = (*env)->FindClass(env, name);
  return c ? (jclass)(*env)->NewGlobalRef(env, c) : NULL;
}

jint JNI_OnLoad(JavaVM* java, void* reserved) {
  JNIEnv* env;
  (void)reserved;
  vm = java;
  if ((*java)->GetEnv(java, (void**)&env, JNI_VERSION_1_8) != JNI_OK || BatonAbiVersion() != BATON_ABI_VERSION) return JNI_ERR;
  object_class = Class(env, "java/lang/Object"), long_class = Class(env, "java/lang/Long");
  double_class = Class(env, "java/lang/Double"), bool_class = Class(env, "java/lang/Boolean");
  string_class = Class(env, "java/lang/String"), tensor_class = Class(env, "Baton$Tensor");
  failure_class = Class(env, "Baton$Failure"), obj_class = Class(env, "Baton$Obj"), func_class = Class(env, "Baton$Func");
  array_class = Class(env, "[Ljava/lang/Object;");
  if ((*env)->ExceptionCheck(env)) return JNI_ERR;
  long_of = (*env)->GetStaticMethodID(env, long_class, "valueOf", "(J)Ljava/lang/Long;");
  double_of = (*env)->GetStaticMethodID(env, double_class, "valueOf", "(D)Ljava/lang/Double;");
  bool_of = (*env)->GetStaticMethodID(env, bool_class, "valueOf", "(Z)Ljava/lang/Boolean;");
  long_value = (*env)->GetMethodID(env, long_class, "longValue", "()J");
  double_value = (*env)->GetMethodID(env, double_class, "doubleValue", "()D");
  bool_value = (*env)->GetMethodID(env, bool_class, "booleanValue", "()Z");
  tensor_new = (*env)->GetMethodID(env, tensor_class, "<init>", "([J[F)V");
  failure_new = (*env)->GetMethodID(env, failure_class, "<init>", "(Ljava/lang/String;Ljava/lang/String;)V");
  obj_new = (*env)->GetMethodID(env, obj_class, "<init>", "(J)V");
  func_call = (*env)->GetMethodID(env, func_class, "call", "([Ljava/lang/Object;)Ljava/lang/Object;");
  to_string = (*env)->GetMethodID(env, object_class, "toString", "()Ljava/lang/String;");
  tensor_shape = (*env)->GetFieldID(env, tensor_class, "shape", "[J");
  tensor_data = (*env)->GetFieldID(env, tensor_class, "data", "[F");
  obj_handle = (*env)->GetFieldID(env, obj_class, "handle", "J");
  return (*env)->ExceptionCheck(env) ? JNI_ERR : JNI_VERSION_1_8;
}

static jobject Throw(JNIEnv* env) {
  jstring kind = (*env)->NewStringUTF(env, BatonErrorKind()), text = (*env)->NewStringUTF(env, BatonErrorMessage());
  BatonErrorPut(NULL);
  (*env)->Throw(env, (jthrowable)(*env)->NewObject(env, failure_class, failure_new, kind, text));
  return NULL;
}

static int IsA(const BatonObject* o, const char* key) {
  return strcmp(BatonTypeIndex2Key(BatonObjectTypeIndex(o)), key) == 0;
}

/* Takes the reference over. */
static jobject Wrap(JNIEnv* env, BatonObject* o) {
  return o ? (*env)->NewObject(env, obj_class, obj_new, (jlong)(intptr_t)o) : NULL;
}

/* ---- From Baton */

/* A dense tensor of float32 on the CPU: the kind that is shown here. */
static int Plain(const DLTensor* t) {
  int64_t step = 1;
  if (t->dtype.code != kDLFloat || t->dtype.bits != 32 || t->dtype.lanes != 1 || t->device.device_type != kDLCPU) return 0;
  for (int32_t i = t->ndim - 1; i >= 0; step *= t->shape[i--])
    if (t->strides && t->shape[i] > 1 && t->strides[i] != step) return 0;
  return t->ndim <= MAX_DIMS;
}

static jobject FromTensor(JNIEnv* env, const DLTensor* t) {
  jsize n = 1;
  jlong shape[MAX_DIMS];
  jlongArray dims;
  jfloatArray data;
  if (!Plain(t)) return NULL;
  for (int32_t i = 0; i < t->ndim; ++i) n *= (jsize)(shape[i] = t->shape[i]);
  dims = (*env)->NewLongArray(env, t->ndim);
  data = (*env)->NewFloatArray(env, n);
  (*env)->SetLongArrayRegion(env, dims, 0, t->ndim, shape);
  if (n) (*env)->SetFloatArrayRegion(env, data, 0, n, (const jfloat*)((const char*)t->data + t->byte_offset));
  return (*env)->NewObject(env, tensor_class, tensor_new, dims, data);
}

static jobject FromBaton(JNIEnv* env, const BatonValue* v) {
  const char* text;
  size_t size;
  const BatonValue* items;
  DLTensor* tensor;
  switch (v->type_code) {
    case kBatonInt:
      return (*env)->CallStaticObjectMethod(env, long_class, long_of, (jlong)v->v_int64);
    case kBatonFloat:
      return (*env)->CallStaticObjectMethod(env, double_class, double_of, v->v_float64);
    case kBatonBool:
      return (*env)->CallStaticObjectMethod(env, bool_class, bool_of, (jboolean)(v->v_int64 != 0));
    case kBatonStr:
      return (*env)->NewStringUTF(env, v->v_str);
    case kBatonTensor:
      return FromTensor(env, v->v_tensor);
    case kBatonObject:
      break;
    default:
      return NULL;
  }
  if (IsA(v->v_obj, "runtime.String") && BatonStringView(v->v_obj, &text, &size) == 0) return (*env)->NewStringUTF(env, text);
  if (IsA(v->v_obj, "runtime.Array") && BatonArrayView(v->v_obj, &items, &size) == 0) {
    jobjectArray out = (*env)->NewObjectArray(env, (jsize)size, object_class, NULL);
    for (size_t i = 0; i < size; ++i) {
      jobject item = FromBaton(env, &items[i]);
      (*env)->SetObjectArrayElement(env, out, (jsize)i, item);
      (*env)->DeleteLocalRef(env, item);
    }
    return out;
  }
  if (IsA(v->v_obj, "runtime.NDArray") && BatonTensorView(v->v_obj, &tensor) == 0) {
    jobject out = FromTensor(env, tensor);
    if (out) return out;
  }
  BatonObjectRetain(v->v_obj);
  return Wrap(env, v->v_obj);
}

/* ---- To Baton */

static int CallJava(void* self, const BatonValue* args, int n, BatonValue* ret);

static void FreeCallback(void* self) {
  JNIEnv* env;
  if ((*vm)->AttachCurrentThreadAsDaemon(vm, (void**)&env, NULL) == JNI_OK) (*env)->DeleteGlobalRef(env, (jobject)self);
}

typedef struct {
  DLTensor tensor;
  int64_t shape[MAX_DIMS];
  float data[1];
} Lent;

static Lent* LendTensor(JNIEnv* env, jobject value) {
  jlongArray dims = (jlongArray)(*env)->GetObjectField(env, value, tensor_shape);
  jfloatArray data = (jfloatArray)(*env)->GetObjectField(env, value, tensor_data);
  jlong shape[MAX_DIMS];
  int64_t all = 1;
  jsize rank, n;
  Lent* t;
  if (!dims || !data) return NULL;
  rank = (*env)->GetArrayLength(env, dims), n = (*env)->GetArrayLength(env, data);
  if (rank > MAX_DIMS) return NULL;
  (*env)->GetLongArrayRegion(env, dims, 0, rank, shape);
  t = calloc(1, sizeof *t + (size_t)n * sizeof(float));
  for (jsize i = 0; i < rank; ++i) all *= t->shape[i] = shape[i];
  if (all != n) {
    free(t);
    return NULL;
  }
  (*env)->GetFloatArrayRegion(env, data, 0, n, t->data);
  t->tensor.data = t->data, t->tensor.ndim = rank, t->tensor.shape = t->shape;
  t->tensor.dtype.code = kDLFloat, t->tensor.dtype.bits = 32, t->tensor.dtype.lanes = 1;
  t->tensor.device.device_type = kDLCPU;
  return t;
}

/* The caller owns the result: an object is released, `*scratch` freed by the caller. */
static int ToBaton(JNIEnv* env, jobject value, BatonValue* v, void** scratch) {
  memset(v, 0, sizeof *v);
  *scratch = NULL;
  if (!value) return 0;
  if ((*env)->IsInstanceOf(env, value, long_class)) {
    v->type_code = kBatonInt, v->v_int64 = (*env)->CallLongMethod(env, value, long_value);
  } else if ((*env)->IsInstanceOf(env, value, double_class)) {
    v->type_code = kBatonFloat, v->v_float64 = (*env)->CallDoubleMethod(env, value, double_value);
  } else if ((*env)->IsInstanceOf(env, value, bool_class)) {
    v->type_code = kBatonBool, v->v_int64 = (*env)->CallBooleanMethod(env, value, bool_value) ? 1 : 0;
  } else if ((*env)->IsInstanceOf(env, value, string_class)) {
    const char* text = (*env)->GetStringUTFChars(env, (jstring)value, NULL);
    int code = BatonStringCreate(text, strlen(text), &v->v_obj);
    (*env)->ReleaseStringUTFChars(env, (jstring)value, text);
    v->type_code = kBatonObject;
    return code;
  } else if ((*env)->IsInstanceOf(env, value, obj_class)) {
    v->type_code = kBatonObject, v->v_obj = (BatonObject*)(intptr_t)(*env)->GetLongField(env, value, obj_handle);
    BatonObjectRetain(v->v_obj);
  } else if ((*env)->IsInstanceOf(env, value, func_class)) {
    v->type_code = kBatonObject;
    return BatonFuncCreate(CallJava, (*env)->NewGlobalRef(env, value), FreeCallback, &v->v_obj);
  } else if ((*env)->IsInstanceOf(env, value, tensor_class) && (*scratch = LendTensor(env, value)) != NULL) {
    v->type_code = kBatonTensor, v->v_tensor = &((Lent*)*scratch)->tensor;
  } else {
    BatonErrorSet("TypeError", "Baton takes null, Long, Double, Boolean, String, Func, Obj and Tensor with as many elements as its shape says");
    return -1;
  }
  return 0;
}

static int CallJava(void* self, const BatonValue* args, int n, BatonValue* ret) {
  JNIEnv* env;
  jobjectArray argv;
  jobject result;
  jthrowable thrown;
  void* scratch;
  int code;
  /* Any thread may call. */
  if ((*vm)->AttachCurrentThreadAsDaemon(vm, (void**)&env, NULL) != JNI_OK || (*env)->PushLocalFrame(env, 64 + n) != 0) {
    BatonErrorSet("RuntimeError", "this thread cannot enter Java");
    return -1;
  }
  argv = (*env)->NewObjectArray(env, n, object_class, NULL);
  for (int i = 0; i < n; ++i) (*env)->SetObjectArrayElement(env, argv, i, FromBaton(env, &args[i]));
  result = (*env)->CallObjectMethod(env, (jobject)self, func_call, argv);
  thrown = (*env)->ExceptionOccurred(env);
  if (thrown) {
    jstring what;
    const char* text;
    (*env)->ExceptionClear(env);
    what = (jstring)(*env)->CallObjectMethod(env, thrown, to_string);
    text = what ? (*env)->GetStringUTFChars(env, what, NULL) : NULL;
    BatonErrorSet("RuntimeError", text ? text : "an exception of Java");
    if (text) (*env)->ReleaseStringUTFChars(env, what, text);
    code = -1;
  } else {
    code = ToBaton(env, result, ret, &scratch);
    if (code == 0 && ret->type_code == kBatonTensor) {
      memset(ret, 0, sizeof *ret);
      BatonErrorSet("TypeError", "a function of Java returns no tensors");
      code = -1;
    }
    free(scratch);
  }
  (*env)->PopLocalFrame(env, NULL);
  return code;
}

/* ---- The methods of Baton.java */

JNIEXPORT jobject JNICALL Java_Baton_getGlobalFunc(JNIEnv* env, jclass c, jstring name) {
  const char* text = (*env)->GetStringUTFChars(env, name, NULL);
  BatonObject* f = NULL;
  int code = BatonFuncGetGlobal(text, &f);
  (void)c;
  (*env)->ReleaseStringUTFChars(env, name, text);
  return code == 0 ? Wrap(env, f) : Throw(env);
}

JNIEXPORT void JNICALL Java_Baton_registerFunc(JNIEnv* env, jclass c, jstring name, jobject function) {
  const char* text = (*env)->GetStringUTFChars(env, name, NULL);
  BatonObject* f;
  int code = BatonFuncCreate(CallJava, (*env)->NewGlobalRef(env, function), FreeCallback, &f);
  (void)c;
  if (code == 0) {
    code = BatonFuncRegisterGlobal(text, f, 0);
    BatonObjectRelease(f);
  }
  (*env)->ReleaseStringUTFChars(env, name, text);
  if (code != 0) Throw(env);
}

JNIEXPORT jobject JNICALL Java_Baton_loadModule(JNIEnv* env, jclass c, jstring path) {
  const char* text = (*env)->GetStringUTFChars(env, path, NULL);
  BatonObject* module = NULL;
  int code = BatonModuleLoad(text, &module);
  (void)c;
  (*env)->ReleaseStringUTFChars(env, path, text);
  return code == 0 ? Wrap(env, module) : Throw(env);
}

JNIEXPORT jobject JNICALL Java_Baton_getFunction(JNIEnv* env, jclass c, jobject module, jstring name) {
  const char* text = (*env)->GetStringUTFChars(env, name, NULL);
  BatonObject* f = NULL;
  int code = BatonModuleGetFunction((BatonObject*)(intptr_t)(*env)->GetLongField(env, module, obj_handle), text, 1, &f);
  (void)c;
  (*env)->ReleaseStringUTFChars(env, name, text);
  return code == 0 ? Wrap(env, f) : Throw(env);
}

JNIEXPORT jobject JNICALL Java_Baton_invoke(JNIEnv* env, jclass c, jlong function, jobjectArray argv) {
  const jsize n = (*env)->GetArrayLength(env, argv);
  BatonValue args[MAX_ARGS], ret;
  void* scratch[MAX_ARGS];
  jobject out = NULL;
  jsize made = 0;
  int code = 0;
  (void)c;
  if (n > MAX_ARGS) {
    BatonErrorSet("TypeError", "a function of Baton takes at most 16 arguments from here");
    return Throw(env);
  }
  for (; made < n && code == 0; ++made)
    code = ToBaton(env, (*env)->GetObjectArrayElement(env, argv, made), &args[made], &scratch[made]);
  if (code == 0) code = BatonFuncCall((BatonObject*)(intptr_t)function, args, n, &ret);
  if (code == 0) {
    out = FromBaton(env, &ret);
    if (ret.type_code == kBatonObject) BatonObjectRelease(ret.v_obj);
  }
  for (jsize i = 0; i < made; ++i) {
    free(scratch[i]);
    if (args[i].type_code == kBatonObject) BatonObjectRelease(args[i].v_obj);
  }
  return code == 0 ? out : Throw(env);
}

JNIEXPORT void JNICALL Java_Baton_release(JNIEnv* env, jclass c, jlong handle) {
  (void)env, (void)c;
  BatonObjectRelease((BatonObject*)(intptr_t)handle);
}
