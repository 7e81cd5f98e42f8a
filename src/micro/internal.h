/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts share: objects, the arena, the reader and the writer of values, the session. */
#ifndef BATON_MICRO_INTERNAL_H_
#define BATON_MICRO_INTERNAL_H_

#include <stdbool.h>

#include "micro.h"

#ifndef BATON_MICRO_ALIGNMENT
#define BATON_MICRO_ALIGNMENT 16 /* of arrays; compiled code asks for no more than an element's */
#endif
#ifndef BATON_MICRO_SLOTS
#define BATON_MICRO_SLOTS 64 /* objects that a client may hold at once */
#endif
#ifndef BATON_MICRO_NESTING
#define BATON_MICRO_NESTING 4 /* calls back and forth within each other */
#endif
enum { kMaxDepth = 8, kHeaderBytes = 24, kChunk = 1 << 20, kMaxPayload = (1 << 20) + (64 << 10), kMaxText = 64 << 10 };

/* ---- Objects: type index and count first, as the C interface has it. */

typedef enum { kText = 1, kBytes, kArray, kMap, kTensor, kFunction, kRemote, kModule } Kind;
typedef struct {
  uint32_t kind;
  int32_t count;
} Object;
typedef struct { /* kText, kBytes; a zero byte behind */
  Object head;
  size_t size;
  char data[];
} Text;
typedef struct { /* kArray: items; kMap: keys and values in turn */
  Object head;
  size_t size;
  BatonValue items[];
} List;
typedef struct { /* its own memory behind the shape, or that of `owner` */
  Object head;
  DLTensor t;
  Object* owner;
  size_t bytes;
  int64_t shape[];
} Tensor;
typedef struct {
  Object head;
  BatonCFunc call;
  void* self;
  Object* keeps;
  uint32_t op;
  bool writes_arguments;
} Function;
typedef struct { /* a function of the client's */
  Object head;
  uint64_t handle;
} Remote;
typedef struct { /* the library, or with `io` an executor of it */
  Object head;
  const BatonMicroModel* model;
  bool executor, ran;
  uint8_t* workspace;
  Tensor** tensors; /* inputs that were set, and outputs */
} ModuleObject;

void* New(size_t bytes, Kind kind); /* null with an error */
void Retain(Object* o);
void Release(Object* o);
void ReleaseValue(const BatonValue* v);
Object* ObjectOf(const BatonValue* v, Kind kind); /* null for a value of another kind */
Text* NewText(Kind kind, const void* data, size_t size);
List* NewList(Kind kind, size_t size); /* of nulls */
Tensor* NewTensor(const int64_t* shape, int ndim, DLDataType dtype);
Tensor* NewView(Tensor* of, const int64_t* shape, int ndim, DLDataType dtype);
/* -1 where extents are negative or too large. */
int64_t TensorBytes(const int64_t* shape, int ndim, DLDataType dtype);
void FreeModule(ModuleObject* m);
static inline BatonValue Null(void) { return (BatonValue){0}; }
static inline BatonValue Int(int64_t v) { return (BatonValue){.type_code = kBatonInt, .v_int64 = v}; }
static inline BatonValue OfObject(void* o) {
  return (BatonValue){.type_code = o ? kBatonObject : kBatonNull, .v_obj = (BatonObject*)o};
}

/* ---- The arena. */

void ArenaInit(void* at, size_t bytes);
void* ArenaAlloc(size_t bytes); /* null if there is none; no error */
void ArenaFree(void* block);

/* ---- Errors: false or null, with one stored. */

bool Fail(const char* kind, const char* message);
bool FailMemory(void);
bool HasError(void);

/* ---- Bytes of a frame. */

typedef struct {
  const uint8_t* at;
  size_t left;
} Reader;
const uint8_t* Take(Reader* in, size_t size); /* null, with an error, beyond the end */
bool TakeInt(Reader* in, int bytes, uint64_t* out);

typedef struct {
  bool counts; /* sizes alone; nothing is sent or given away */
  size_t size, handles;
} Writer;
void Put(Writer* out, const void* data, size_t size);
void PutInt(Writer* out, uint64_t value, int bytes);

bool ReadValue(Reader* in, int depth, BatonValue* out);
bool WriteValue(Writer* out, const BatonValue* v, int depth);
bool ReadShape(Reader* in, DLDataType* dtype, int* ndim, int64_t shape[64]);

/* ---- The session. */

uint64_t GiveHandle(Object* o);
Object* ObjectOfHandle(uint64_t handle);
void SendBytes(const void* data, size_t size);
void SendRelease(uint64_t handle);
int CallRemote(Remote* f, const BatonValue* args, int count, BatonValue* ret);
const BatonMicroConfig* Config(void);

/* ---- The model. */

Object* NewLibrary(void);
/* A function of a module; null without an error if there is none. */
Object* ModuleFunction(ModuleObject* m, const Text* name);
extern const BatonBackendApi kBackend;

#endif /* BATON_MICRO_INTERNAL_H_ */
