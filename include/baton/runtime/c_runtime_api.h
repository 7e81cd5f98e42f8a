/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of Baton: all that a language needs to embed it. Plain C99, stands alone (DLPack's header, which
 * lies beside it, needs nothing either).
 *
 * One value type and one function type cross every border (C++, Python, C, generated code, RPC):
 * a BatonValue is 16 bytes, tag and payload; a call is
 *
 *     int f(void* self, const BatonValue* args, int num_args, BatonValue* ret)
 *
 * Rules, the same for every function here that returns int:
 *   - 0 is success. -1 is an error, stored for this thread; BatonErrorMessage tells it, BatonErrorTake takes it out.
 *     No C++ exception ever leaves a function of this header.
 *   - Arguments are borrowed for the time of the call. What an `out` parameter or `ret` gives is owned by the caller:
 *     BatonObjectRelease an object when done. On error, `out` and `ret` are left alone or hold nothing to release.
 *   - `out` and `ret` may not be null. A null name, function, or object handle is an error, not a crash.
 *   - Every function may be called from any thread. Objects are counted atomically.
 *   - Strings are UTF-8 and zero-terminated unless a size is given.
 *
 * A first program:
 *
 *     BatonObject* f;
 *     if (BatonFuncGetGlobal("runtime.ListGlobalFuncNames", &f) != 0 || f == NULL) return 1;
 *     BatonValue names;
 *     if (BatonFuncCall(f, NULL, 0, &names) != 0) { puts(BatonErrorMessage()); return 1; }
 *     BatonObjectRelease(names.v_obj);
 *     BatonObjectRelease(f);
 *
 * examples/c/embed.c shows the rest; docs/guides/embedding.md says how another language binds to this.
 */
#ifndef BATON_RUNTIME_C_RUNTIME_API_H_
#define BATON_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifndef BATON_DLL
#if defined(_WIN32)
#define BATON_DLL __declspec(dllimport)
#elif defined(__GNUC__)
#define BATON_DLL __attribute__((visibility("default")))
#else
#define BATON_DLL
#endif
#endif

/* C99 has no unnamed unions; every compiler does. */
#if defined(__GNUC__)
#define BATON_UNNAMED __extension__
#else
#define BATON_UNNAMED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a signature or layout below changes; functions that are only added do not raise it. Compare it with
 * BatonAbiVersion() before anything else if the library was not built with the program. */
#define BATON_ABI_VERSION 1

/* ---- Values ------------------------------------------------------------------------------------------------- */

typedef enum {
  kBatonNull = 0,   /* nothing */
  kBatonInt = 1,    /* v_int64 */
  kBatonBool = 2,   /* v_int64: 0 or 1 */
  kBatonFloat = 3,  /* v_float64 */
  kBatonHandle = 4, /* v_handle: an opaque pointer */
  kBatonDType = 5,  /* v_dtype */
  kBatonDevice = 6, /* v_device */
  kBatonStr = 7,    /* v_str: borrowed, zero-terminated; arguments only */
  kBatonBytes = 8,  /* v_bytes: borrowed; arguments only */
  kBatonTensor = 9, /* v_tensor: borrowed; arguments only */
  kBatonObject = 64 /* v_obj: a counted object, never null; its type is BatonObjectTypeIndex(v_obj) */
} BatonTypeCode;

typedef struct {
  const char* data;
  size_t size;
} BatonByteArray;

/* An object, opaque. It begins with a uint32 type index and an int32 count. */
typedef struct BatonObject BatonObject;

/* A value and its kind. Results are never of the three borrowed kinds: a string comes back as an object whose
 * characters BatonStringView gives, a tensor as one whose DLTensor BatonTensorView gives. */
typedef struct {
  int32_t type_code; /* a BatonTypeCode */
  uint32_t zero;     /* 0: keeps equal values equal byte for byte */
  BATON_UNNAMED union {
    int64_t v_int64;
    double v_float64;
    void* v_handle;
    DLDataType v_dtype;
    DLDevice v_device;
    const char* v_str;
    const BatonByteArray* v_bytes;
    DLTensor* v_tensor;
    BatonObject* v_obj;
  };
} BatonValue;

/* A function. It returns 0, or -1 after BatonErrorSet or BatonErrorPut. `*ret` is null when it is entered; an object
 * that it puts there must hold a reference of its own, which the caller takes over. `args` may be read, and the objects
 * in them used, until it returns; to keep one, BatonObjectRetain it. */
typedef int (*BatonCFunc)(void* self, const BatonValue* args, int num_args, BatonValue* ret);

/* Version of the interface that the loaded library implements. */
BATON_DLL int BatonAbiVersion(void);

/* ---- Objects ------------------------------------------------------------------------------------------------ */

/* One more, one less reference; null is let be. An object is destroyed by the thread that gives the last one up. */
BATON_DLL void BatonObjectRetain(BatonObject* obj);
BATON_DLL void BatonObjectRelease(BatonObject* obj);
/* Number of the object's type in this process, and the key of a type ("runtime.Array", "relay.Let"); null for an
 * unknown number. Keys live as long as the process. */
BATON_DLL uint32_t BatonObjectTypeIndex(const BatonObject* obj);
BATON_DLL const char* BatonTypeIndex2Key(uint32_t index);
/* A field of an object by its name; the names of all fields, as an Array of strings. */
BATON_DLL int BatonObjectGetField(const BatonObject* obj, const char* name, BatonValue* ret);
BATON_DLL int BatonObjectListFields(const BatonObject* obj, BatonValue* ret);

/* ---- Functions ---------------------------------------------------------------------------------------------- */

/* The global function of a name. A name that is not registered gives 0 and *out = null. */
BATON_DLL int BatonFuncGetGlobal(const char* name, BatonObject** out);
/* Registers a function for all languages. A taken name is an error unless override_existing is not 0. */
BATON_DLL int BatonFuncRegisterGlobal(const char* name, BatonObject* func, int override_existing);
/* The names of all global functions: an Array of strings, sorted. */
BATON_DLL int BatonFuncListGlobalNames(BatonValue* ret);
/* Calls a function. */
BATON_DLL int BatonFuncCall(BatonObject* func, const BatonValue* args, int num_args, BatonValue* ret);
/* Makes a function of a callback. `self` is handed to each call; `free_self` (may be null) is called with it once, when
 * the last reference to the function is gone. */
BATON_DLL int BatonFuncCreate(BatonCFunc call, void* self, void (*free_self)(void*), BatonObject** out);

/* ---- Strings, bytes, arrays --------------------------------------------------------------------------------- */

/* Objects that own a copy of the characters; embedded zero bytes are kept. */
BATON_DLL int BatonStringCreate(const char* data, size_t size, BatonObject** out);
BATON_DLL int BatonBytesCreate(const char* data, size_t size, BatonObject** out);
/* The characters of a string or bytes object; they live as long as the object. A string's end in a zero byte that is
 * not counted. */
BATON_DLL int BatonStringView(const BatonObject* str, const char** data, size_t* size);
/* An Array of values; borrowed strings and bytes among them are copied, objects retained. */
BATON_DLL int BatonArrayCreate(const BatonValue* items, size_t size, BatonObject** out);
/* The items of an Array, borrowed from it: they live as long as the object, and may not be changed. */
BATON_DLL int BatonArrayView(const BatonObject* array, const BatonValue** items, size_t* size);

/* ---- Values of the embedding language ----------------------------------------------------------------------- */

/* An object around a pointer of yours, of a type that you name ("my.Image"): it passes through functions and
 * containers, and a function that wants another type says both names. `free_data` (may be null) is called once with the
 * last reference. The name is the type: say it the same in every library. */
BATON_DLL int BatonOpaqueCreate(const char* type_key, void* data, void (*free_data)(void*), BatonObject** out);
/* The pointer in such an object; an error for an object of another type. */
BATON_DLL int BatonOpaqueView(const BatonObject* obj, const char* type_key, void** data);

/* ---- Tensors ------------------------------------------------------------------------------------------------ */

/* NDArray objects. The view lives as long as the object. Importing takes the tensor over: its deleter runs with the
 * last reference, or, when the call fails, never. Exporting gives a tensor that holds a reference to the object. No
 * elements are copied. To pass a tensor of your own for one call only, use a value of kind kBatonTensor. */
BATON_DLL int BatonTensorView(BatonObject* tensor, DLTensor** out);
BATON_DLL int BatonTensorFromDLPack(DLManagedTensorVersioned* tensor, BatonObject** out);
BATON_DLL int BatonTensorFromDLPackLegacy(DLManagedTensor* tensor, BatonObject** out);
BATON_DLL int BatonTensorToDLPack(BatonObject* tensor, DLManagedTensorVersioned** out);
BATON_DLL int BatonTensorToDLPackLegacy(BatonObject* tensor, DLManagedTensor** out);

/* ---- Modules ------------------------------------------------------------------------------------------------ */

/* Loads compiled code from a file, whatever kind of module it is. */
BATON_DLL int BatonModuleLoad(const char* path, BatonObject** out);
/* A function of a module, and of what it imports if query_imports is not 0. A name that is not there gives 0 and
 * *out = null. The function keeps the module. A module that holds a model has "default": called with no arguments (or
 * devices) it gives an executor, a module with "set_input", "run", "get_output", "run_with" and "call". */
BATON_DLL int BatonModuleGetFunction(BatonObject* module, const char* name, int query_imports, BatonObject** out);

/* ---- Errors ------------------------------------------------------------------------------------------------- */

/* Stores an error for this thread; a callback does so before it returns -1. The kind is a word, as "CompileError",
 * "RuntimeError", "InternalError", "TypeError", "ValueError": Python picks the class of its exception by it. */
BATON_DLL void BatonErrorSet(const char* kind, const char* message);
/* Stores an error object, as BatonErrorTake gave it (or null: clears). The object is retained. */
BATON_DLL void BatonErrorPut(BatonObject* error);
/* Takes the pending error out; *out is owned by the caller, null if there is none. Putting it back later, on any
 * thread, loses nothing: a Python exception comes out as the same exception. */
BATON_DLL void BatonErrorTake(BatonObject** out);
/* Kind and message of the pending error, and the functions that it passed, a line each, innermost first; "" if there is
 * none. Valid until the next call on this thread. */
BATON_DLL const char* BatonErrorKind(void);
BATON_DLL const char* BatonErrorMessage(void);
BATON_DLL const char* BatonErrorTrace(void);

#ifdef __cplusplus
}
#endif
#endif /* BATON_RUNTIME_C_RUNTIME_API_H_ */
