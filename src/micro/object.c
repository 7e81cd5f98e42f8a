/* SPDX-License-Identifier: Apache-2.0 */
/* The arena, objects in it, errors, and the C interface over them. */
#include <string.h>

#include "internal.h"

enum { kAlign = BATON_MICRO_ALIGNMENT };
static uint8_t* begin;
static uint8_t* end;

#ifdef BATON_MICRO_MALLOC
/* For sanitizers, which do not see into an arena: its size is a limit alone. */
#include <stdlib.h>
typedef struct Block {
  struct Block *next, **at;
  size_t size;
  _Alignas(kAlign) uint8_t data[];
} Block;
static Block* blocks;
static size_t left;

void ArenaInit(void* at, size_t bytes) {
  begin = at, end = begin + bytes, left = bytes;
  while (blocks) ArenaFree(blocks->data);
  left = bytes;
}
void* ArenaAlloc(size_t bytes) {
  if (bytes > left) return NULL;
  Block* b = malloc(sizeof(Block) + bytes);
  if (!b) abort();
  *b = (Block){.next = blocks, .at = &blocks, .size = bytes};
  if (blocks) blocks->at = &b->next;
  blocks = b;
  left -= bytes;
  return b->data;
}
void ArenaFree(void* block) {
  if (!block) return;
  Block* b = (Block*)(void*)((uint8_t*)block - offsetof(Block, data));
  if (b->next) b->next->at = b->at;
  *b->at = b->next;
  left += b->size;
  free(b);
}
#else
/* ---- The arena: blocks in a row, each with its size before it; the lowest bit says that it is taken. */

static size_t* SizeOf(uint8_t* block) { return (size_t*)(void*)block; }

void ArenaInit(void* at, size_t bytes) {
  uintptr_t first = ((uintptr_t)at + kAlign - 1) / kAlign * kAlign, last = ((uintptr_t)at + bytes) / kAlign * kAlign;
  begin = (uint8_t*)first;
  end = last > first + 2 * kAlign ? (uint8_t*)last : begin;
  if (end != begin) *SizeOf(begin) = (size_t)(end - begin);
}

void* ArenaAlloc(size_t bytes) {
  if (bytes > (size_t)(end - begin)) return NULL;
  size_t want = (bytes + 2 * kAlign - 1) / kAlign * kAlign; /* with the header */
  for (uint8_t* at = begin; at < end; at += *SizeOf(at) & ~(size_t)1) {
    if (*SizeOf(at) & 1) continue;
    for (uint8_t* next = at + *SizeOf(at); next < end && !(*SizeOf(next) & 1); next = at + *SizeOf(at)) {
      *SizeOf(at) += *SizeOf(next);
    }
    size_t have = *SizeOf(at);
    if (have < want) continue;
    if (have > want) *SizeOf(at + want) = have - want;
    *SizeOf(at) = want | 1;
    return at + kAlign;
  }
  return NULL;
}

void ArenaFree(void* block) {
  if (block) *SizeOf((uint8_t*)block - kAlign) &= ~(size_t)1;
}

#endif

/* ---- Errors. */

static char error_kind[32], error_message[160];

static void CopyText(char* to, size_t size, const char* from) {
  size_t n = strlen(from);
  if (n >= size) n = size - 1;
  memcpy(to, from, n);
  to[n] = 0;
}

void BatonErrorSet(const char* kind, const char* message) {
  CopyText(error_kind, sizeof error_kind, kind ? kind : "RuntimeError");
  CopyText(error_message, sizeof error_message, message ? message : "");
}
const char* BatonErrorKind(void) { return error_kind; }
const char* BatonErrorMessage(void) { return error_message; }
bool Fail(const char* kind, const char* message) {
  BatonErrorSet(kind, message);
  return false;
}
bool FailMemory(void) { return Fail("rpc.OutOfMemory", "the server has no memory for that"); }
bool HasError(void) { return error_kind[0] != 0; }

/* ---- Objects. */

void* New(size_t bytes, Kind kind) {
  Object* o = ArenaAlloc(bytes);
  if (!o) {
    FailMemory();
    return NULL;
  }
  memset(o, 0, bytes);
  o->kind = kind;
  o->count = 1;
  return o;
}

void Retain(Object* o) {
  if (o) ++o->count;
}

void ReleaseValue(const BatonValue* v) {
  if (v->type_code == kBatonObject) Release((Object*)(void*)v->v_obj);
}

/* Lists hold lists at most kMaxDepth deep, so this is not deep either. */
void Release(Object* o) {
  if (!o || --o->count > 0) return;
  switch (o->kind) {
    case kArray:
    case kMap: {
      List* l = (List*)o;
      for (size_t i = 0; i < l->size; ++i) ReleaseValue(&l->items[i]);
      break;
    }
    case kTensor:
      Release(((Tensor*)o)->owner);
      break;
    case kFunction:
      Release(((Function*)o)->keeps);
      break;
    case kRemote:
      SendRelease(((Remote*)o)->handle);
      break;
    case kModule:
      FreeModule((ModuleObject*)o);
      break;
    default:
      break;
  }
  ArenaFree(o);
}

Object* ObjectOf(const BatonValue* v, Kind kind) {
  Object* o = v->type_code == kBatonObject ? (Object*)(void*)v->v_obj : NULL;
  return o && o->kind == (uint32_t)kind ? o : NULL;
}

Text* NewText(Kind kind, const void* data, size_t size) {
  Text* t = New(sizeof(Text) + size + 1, kind);
  if (!t) return NULL;
  t->size = size;
  if (size) memcpy(t->data, data, size);
  return t;
}

List* NewList(Kind kind, size_t size) {
  if (size > (size_t)kMaxPayload) return FailMemory(), NULL;
  List* l = New(sizeof(List) + size * sizeof(BatonValue), kind);
  if (l) l->size = size;
  return l;
}

int64_t TensorBytes(const int64_t* shape, int ndim, DLDataType dtype) {
  int64_t n = (int64_t)((dtype.bits + 7) / 8) * dtype.lanes;
  bool zero = false;
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] < 0 || __builtin_mul_overflow(n, shape[i] ? shape[i] : 1, &n)) return -1;
    zero = zero || shape[i] == 0;
  }
  return zero ? 0 : n;
}

static Tensor* MakeTensor(const int64_t* shape, int ndim, DLDataType dtype, size_t more, size_t bytes) {
  Tensor* a = New(sizeof(Tensor) + (size_t)ndim * sizeof(int64_t) + more, kTensor);
  if (!a) return NULL;
  if (ndim) memcpy(a->shape, shape, (size_t)ndim * sizeof(int64_t));
  a->t = (DLTensor){.device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = a->shape};
  a->bytes = bytes;
  return a;
}

Tensor* NewTensor(const int64_t* shape, int ndim, DLDataType dtype) {
  int64_t bytes = TensorBytes(shape, ndim, dtype);
  if (bytes < 0) return Fail("ValueError", "a tensor with a negative extent, or too large"), NULL;
  if (bytes > (int64_t)(end - begin)) return FailMemory(), NULL;
  Tensor* a = MakeTensor(shape, ndim, dtype, (size_t)bytes + kAlign, (size_t)bytes);
  if (!a) return NULL;
  uintptr_t data = (uintptr_t)(a->shape + ndim);
  a->t.data = (void*)((data + kAlign - 1) / kAlign * kAlign);
  return a;
}

Tensor* NewView(Tensor* of, const int64_t* shape, int ndim, DLDataType dtype) {
  int64_t bytes = TensorBytes(shape, ndim, dtype);
  if (bytes < 0 || (uint64_t)bytes > of->bytes) return Fail("ValueError", "a view that is larger than its array"), NULL;
  Tensor* a = MakeTensor(shape, ndim, dtype, 0, (size_t)bytes);
  if (!a) return NULL;
  a->t.data = of->t.data;
  a->owner = &of->head;
  Retain(a->owner);
  return a;
}

/* ---- The C interface. */

int BatonAbiVersion(void) { return BATON_ABI_VERSION; }
void BatonObjectRetain(BatonObject* o) { Retain((Object*)(void*)o); }
void BatonObjectRelease(BatonObject* o) { Release((Object*)(void*)o); }
uint32_t BatonObjectTypeIndex(const BatonObject* o) { return ((const Object*)(const void*)o)->kind; }

int BatonFuncCall(BatonObject* func, const BatonValue* args, int num_args, BatonValue* ret) {
  Object* o = (Object*)(void*)func;
  *ret = Null();
  if (o && o->kind == kFunction) return ((Function*)o)->call(((Function*)o)->self, args, num_args, ret);
  if (o && o->kind == kRemote) return CallRemote((Remote*)o, args, num_args, ret);
  Fail("TypeError", "expected a function");
  return -1;
}

static int Give(void* made, BatonObject** out) {
  *out = (BatonObject*)made;
  return made ? 0 : -1;
}
int BatonStringCreate(const char* data, size_t size, BatonObject** out) {
  return Give(NewText(kText, data, size), out);
}
int BatonBytesCreate(const char* data, size_t size, BatonObject** out) {
  return Give(NewText(kBytes, data, size), out);
}
int BatonStringView(const BatonObject* str, const char** data, size_t* size) {
  const Text* t = (const Text*)(const void*)str;
  if (!t || (t->head.kind != kText && t->head.kind != kBytes)) return Fail("TypeError", "expected a text"), -1;
  *data = t->data;
  *size = t->size;
  return 0;
}
int BatonArrayCreate(const BatonValue* items, size_t size, BatonObject** out) {
  List* l = NewList(kArray, size);
  for (size_t i = 0; l && i < size; ++i) {
    BatonValue v = items[i];
    if (v.type_code == kBatonStr)
      v = OfObject(NewText(kText, v.v_str, strlen(v.v_str)));
    else if (v.type_code == kBatonBytes)
      v = OfObject(NewText(kBytes, v.v_bytes->data, v.v_bytes->size));
    else if (v.type_code == kBatonObject)
      Retain((Object*)(void*)v.v_obj);
    if (v.type_code == kBatonNull && items[i].type_code != kBatonNull) {
      Release(&l->head);
      l = NULL;
      break;
    }
    l->items[i] = v;
  }
  return Give(l, out);
}
int BatonArrayView(const BatonObject* array, const BatonValue** items, size_t* size) {
  const List* l = (const List*)(const void*)array;
  if (!l || l->head.kind != kArray) return Fail("TypeError", "expected an array"), -1;
  *items = l->items;
  *size = l->size;
  return 0;
}
int BatonTensorView(BatonObject* tensor, DLTensor** out) {
  Tensor* a = (Tensor*)(void*)tensor;
  if (!a || a->head.kind != kTensor) return Fail("TypeError", "expected a tensor"), -1;
  *out = &a->t;
  return 0;
}
