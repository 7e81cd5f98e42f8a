/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of Baton: all that a language needs to embed it. Plain C, stands alone.
 *
 * One value type and one function type cross every border (C++, Python, C, generated code, RPC):
 * a BatonValue is 16 bytes, tag and payload; a call is
 *     int f(void* self, const BatonValue* args, int num_args, BatonValue* ret)
 * and returns 0, or -1 after it has stored an error (BatonErrorGet tells it). Arguments are borrowed for the
 * time of the call. The result is owned by the caller: release an object in it with BatonObjectRelease.
 */
#ifndef BATON_RUNTIME_C_RUNTIME_API_H_
#define BATON_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifndef BATON_DLL
#define BATON_DLL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a signature or layout below changes. */
#define BATON_ABI_VERSION 1

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
  kBatonObject = 64 /* v_obj: a counted object; its type is BatonObjectTypeIndex(v_obj) */
} BatonTypeCode;

typedef struct {
  const char* data;
  size_t size;
} BatonByteArray;

typedef struct BatonObject BatonObject; /* opaque; starts with uint32 type index, int32 count */

typedef struct {
  int32_t type_code; /* a BatonTypeCode */
  uint32_t zero;     /* keeps equal values equal byte for byte */
  union {
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

typedef int (*BatonCFunc)(void* self, const BatonValue* args, int num_args, BatonValue* ret);

/* Version of the interface that the loaded library implements. */
BATON_DLL int BatonAbiVersion(void);

/* Objects: one more, one less reference; type index and key. Key strings live as long as the process. */
BATON_DLL void BatonObjectRetain(BatonObject* obj);
BATON_DLL void BatonObjectRelease(BatonObject* obj);
BATON_DLL uint32_t BatonObjectTypeIndex(const BatonObject* obj);
BATON_DLL const char* BatonTypeIndex2Key(uint32_t index); /* null for an unknown index */

/* Functions. *out is owned by the caller. A missing global function gives 0 and *out = null. */
BATON_DLL int BatonFuncGetGlobal(const char* name, BatonObject** out);
BATON_DLL int BatonFuncRegisterGlobal(const char* name, BatonObject* func, int override_existing);
BATON_DLL int BatonFuncListGlobalNames(BatonValue* ret); /* an Array of strings */
BATON_DLL int BatonFuncCall(BatonObject* func, const BatonValue* args, int num_args, BatonValue* ret);
/* Makes a function of a callback; `free_self` (may be null) runs once, when the last reference is gone. */
BATON_DLL int BatonFuncCreate(BatonCFunc call, void* self, void (*free_self)(void*), BatonObject** out);

/* Strings and bytes: both are objects that own their characters; embedded zero bytes are kept. */
BATON_DLL int BatonStringCreate(const char* data, size_t size, BatonObject** out);
BATON_DLL int BatonBytesCreate(const char* data, size_t size, BatonObject** out);
BATON_DLL int BatonStringView(const BatonObject* str, const char** data, size_t* size);

/* Tensors (NDArray objects). The view lives as long as the object. Importing takes the tensor over: its deleter runs
 * with the last reference, or, when the call fails, never. Exporting gives a tensor that holds a reference to the
 * object. */
BATON_DLL int BatonTensorView(BatonObject* tensor, DLTensor** out);
BATON_DLL int BatonTensorFromDLPack(DLManagedTensorVersioned* tensor, BatonObject** out);
BATON_DLL int BatonTensorFromDLPackLegacy(DLManagedTensor* tensor, BatonObject** out);
BATON_DLL int BatonTensorToDLPack(BatonObject* tensor, DLManagedTensorVersioned** out);
BATON_DLL int BatonTensorToDLPackLegacy(BatonObject* tensor, DLManagedTensor** out);

/* Errors of this thread. Kind is a word as "CompileError", "RuntimeError", "InternalError", "TypeError". */
BATON_DLL void BatonErrorSet(const char* kind, const char* message);
/* Puts an error object (or null: clears). */
BATON_DLL void BatonErrorPut(BatonObject* error);
/* Takes the pending error out; *out is owned by the caller, null if there is none. */
BATON_DLL void BatonErrorTake(BatonObject** out);
/* Message of the pending error, or "" ; valid until the next call on this thread. */
BATON_DLL const char* BatonErrorMessage(void);
BATON_DLL const char* BatonErrorKind(void);

/* Reflection: a field of an object by name; number of fields and their names over all parents. */
BATON_DLL int BatonObjectGetField(const BatonObject* obj, const char* name, BatonValue* ret);
BATON_DLL int BatonObjectListFields(const BatonObject* obj, BatonValue* ret);

#ifdef __cplusplus
}
#endif
#endif /* BATON_RUNTIME_C_RUNTIME_API_H_ */
