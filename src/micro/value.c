/* SPDX-License-Identifier: Apache-2.0 */
/* Values as bytes; the tags are those of src/rpc/value.h. Bytes that are read may be hostile. */
#include <string.h>

#include "internal.h"

enum {
  kTagNull = 0,
  kTagInt,
  kTagBool,
  kTagFloat,
  kTagDType = 5,
  kTagDevice,
  kTagStr,
  kTagBytes,
  kTagTensor,
  kTagArray = 16,
  kTagMap,
  kTagTheirs = 64,
  kTagOurs
};
enum { kWireObject = 0, kWireArray, kWireStr, kWireBytes, kWireFunction, kWireModule };

/* ---- Reading. */

const uint8_t* Take(Reader* in, size_t size) {
  if (size > in->left) return Fail("rpc.ProtocolError", "a message that is cut"), NULL;
  const uint8_t* at = in->at;
  in->at += size;
  in->left -= size;
  return at;
}

bool TakeInt(Reader* in, int bytes, uint64_t* out) {
  const uint8_t* at = Take(in, (size_t)bytes);
  if (!at) return false;
  *out = 0;
  for (int i = 0; i < bytes; ++i) *out |= (uint64_t)at[i] << (8 * i);
  return true;
}

static bool TakeDType(Reader* in, DLDataType* t) {
  const uint8_t* at = Take(in, 4);
  if (!at) return false;
  *t = (DLDataType){.code = at[0], .bits = at[1], .lanes = (uint16_t)(at[2] | at[3] << 8)};
  return true;
}

bool ReadShape(Reader* in, DLDataType* dtype, int* ndim, int64_t shape[64]) {
  uint64_t n = 0;
  if (!TakeDType(in, dtype) || !TakeInt(in, 1, &n)) return false;
  if (!dtype->bits || !dtype->lanes || n > 64) return Fail("rpc.ProtocolError", "no tensor has such a dtype or rank");
  *ndim = (int)n;
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t extent = 0;
    if (!TakeInt(in, 8, &extent)) return false;
    shape[i] = (int64_t)extent;
  }
  return true;
}

static bool Put1(BatonValue* out, void* object) {
  *out = OfObject(object);
  return object != NULL;
}

/* Not part of the function that recurs, so that its stack is small. */
static __attribute__((noinline)) bool ReadTensor(Reader* in, Tensor* of, BatonValue* out) {
  int64_t shape[64];
  DLDataType dtype;
  int ndim;
  if (!ReadShape(in, &dtype, &ndim, shape)) return false;
  if (of) return Put1(out, NewView(of, shape, ndim, dtype));
  int64_t bytes = TensorBytes(shape, ndim, dtype);
  if (bytes < 0 || (uint64_t)bytes > in->left) return Fail("rpc.ProtocolError", "a tensor that is cut");
  Tensor* a = NewTensor(shape, ndim, dtype);
  if (!a) return false;
  if (bytes) memcpy(a->t.data, Take(in, (size_t)bytes), (size_t)bytes);
  return Put1(out, a);
}

/* Objects here that were given away. */
static bool ReadTheirs(Reader* in, BatonValue* out) {
  uint64_t handle = 0, kind = 0, size = 0;
  if (!TakeInt(in, 8, &handle) || !TakeInt(in, 1, &kind)) return false;
  Object* o = ObjectOfHandle(handle);
  if (!o) return Fail("rpc.ProtocolError", "a handle that was not given, or was released");
  if (kind == kWireObject) {
    Retain(o);
    return Put1(out, o);
  }
  if (o->kind != kTensor) return Fail("rpc.ProtocolError", "a handle that is of no array");
  Tensor* a = (Tensor*)o;
  if (kind == kWireArray) return ReadTensor(in, a, out);
  if (!TakeInt(in, 8, &size)) return false;
  if ((kind != kWireStr && kind != kWireBytes) || size > a->bytes)
    return Fail("rpc.ProtocolError", "a text that does not lie where it should");
  return Put1(out, NewText(kind == kWireStr ? kText : kBytes, a->t.data, (size_t)size));
}

/* Functions of the client. */
static bool ReadOurs(Reader* in, BatonValue* out) {
  uint64_t handle = 0, kind = 0, flags = 0;
  if (!TakeInt(in, 8, &handle) || !TakeInt(in, 1, &kind)) return false;
  if (kind != kWireFunction) return Fail("rpc.ProtocolError", "of a client's objects functions alone are given away");
  if (!TakeInt(in, 1, &flags)) return false;
  Remote* f = New(sizeof(Remote), kRemote);
  if (f) f->handle = handle;
  return Put1(out, f);
}

static bool ReadList(Reader* in, Kind kind, int depth, BatonValue* out) {
  uint64_t count = 0;
  if (!TakeInt(in, 4, &count)) return false;
  if (depth >= kMaxDepth) return Fail("rpc.ProtocolError", "arrays and maps within each other are nested too deep");
  const size_t each = kind == kMap ? 2 : 1;
  if (count > in->left / each) return Fail("rpc.ProtocolError", "more items than bytes");
  List* l = NewList(kind, (size_t)count * each);
  if (!l) return false;
  for (size_t i = 0; i < l->size; ++i) {
    bool fine = ReadValue(in, depth + 1, &l->items[i]);
    if (fine && kind == kMap && i % 2 == 0 && l->items[i].type_code == kBatonObject && !ObjectOf(&l->items[i], kText)) {
      fine = Fail("rpc.ProtocolError", "a map's key is a number or a string");
    }
    if (!fine) {
      Release(&l->head);
      return false;
    }
  }
  return Put1(out, l);
}

bool ReadValue(Reader* in, int depth, BatonValue* out) {
  uint64_t tag = 0, n = 0, m = 0;
  *out = Null();
  if (!TakeInt(in, 1, &tag)) return false;
  switch (tag) {
    case kTagNull:
      return true;
    case kTagInt:
    case kTagFloat:
      if (!TakeInt(in, 8, &n)) return false;
      *out = Int((int64_t)n);
      if (tag == kTagFloat) out->type_code = kBatonFloat;
      return true;
    case kTagBool:
      if (!TakeInt(in, 1, &n)) return false;
      *out = (BatonValue){.type_code = kBatonBool, .v_int64 = n != 0};
      return true;
    case kTagDType:
      out->type_code = kBatonDType;
      return TakeDType(in, &out->v_dtype);
    case kTagDevice:
      if (!TakeInt(in, 4, &n) || !TakeInt(in, 4, &m)) return false;
      out->type_code = kBatonDevice;
      out->v_device.device_type = (DLDeviceType)(int32_t)n;
      out->v_device.device_id = (int32_t)m;
      return true;
    case kTagStr:
    case kTagBytes: {
      if (!TakeInt(in, 4, &n)) return false;
      const uint8_t* at = n <= in->left ? Take(in, (size_t)n) : Take(in, in->left + 1);
      return at && Put1(out, NewText(tag == kTagStr ? kText : kBytes, at, (size_t)n));
    }
    case kTagTensor:
      return ReadTensor(in, NULL, out);
    case kTagArray:
    case kTagMap:
      return ReadList(in, tag == kTagMap ? kMap : kArray, depth, out);
    case kTagTheirs:
      return ReadTheirs(in, out);
    case kTagOurs:
      return ReadOurs(in, out);
    default:
      return Fail("rpc.ProtocolError", "a value of a kind that does not exist");
  }
}

/* ---- Writing. */

void Put(Writer* out, const void* data, size_t size) {
  out->size += size;
  if (!out->counts) SendBytes(data, size);
}

void PutInt(Writer* out, uint64_t value, int bytes) {
  uint8_t b[8];
  for (int i = 0; i < bytes; ++i) b[i] = (uint8_t)(value >> (8 * i));
  Put(out, b, (size_t)bytes);
}

static void PutDType(Writer* out, DLDataType t) {
  PutInt(out, t.code, 1);
  PutInt(out, t.bits, 1);
  PutInt(out, t.lanes, 2);
}

static bool WriteText(Writer* out, int tag, const char* data, size_t size) {
  if (size > (size_t)kMaxText) return Fail("ValueError", "a text of more than 64 KiB");
  PutInt(out, (uint64_t)tag, 1);
  PutInt(out, size, 4);
  Put(out, data, size);
  return true;
}

static bool WriteGiven(Writer* out, Object* o) {
  PutInt(out, o->kind == kRemote ? kTagTheirs : kTagOurs, 1);
  if (o->kind == kRemote) {
    PutInt(out, ((Remote*)o)->handle, 8);
    PutInt(out, kWireObject, 1);
    return true;
  }
  ++out->handles;
  PutInt(out, out->counts ? 0 : GiveHandle(o), 8);
  PutInt(out, o->kind == kFunction ? kWireFunction : o->kind == kModule ? kWireModule : kWireArray, 1);
  if (o->kind == kFunction) PutInt(out, ((Function*)o)->writes_arguments, 1);
  if (o->kind != kTensor) return true;
  const DLTensor* t = &((Tensor*)o)->t;
  PutDType(out, t->dtype);
  PutInt(out, (uint64_t)t->ndim, 1);
  for (int i = 0; i < t->ndim; ++i) PutInt(out, (uint64_t)t->shape[i], 8);
  PutInt(out, kDLCPU, 4);
  PutInt(out, 0, 4);
  return true;
}

static bool WriteObject(Writer* out, Object* o, int depth) {
  if (o->kind == kText || o->kind == kBytes) {
    return WriteText(out, o->kind == kText ? kTagStr : kTagBytes, ((Text*)o)->data, ((Text*)o)->size);
  }
  if (o->kind != kArray && o->kind != kMap) return WriteGiven(out, o);
  if (depth >= kMaxDepth) return Fail("TypeError", "arrays and maps within each other: at most 8 deep");
  const List* l = (const List*)o;
  PutInt(out, o->kind == kMap ? kTagMap : kTagArray, 1);
  PutInt(out, o->kind == kMap ? l->size / 2 : l->size, 4);
  for (size_t i = 0; i < l->size; ++i) {
    if (!WriteValue(out, &l->items[i], depth + 1)) return false;
  }
  return true;
}

bool WriteValue(Writer* out, const BatonValue* v, int depth) {
  switch (v->type_code) {
    case kBatonNull:
      PutInt(out, kTagNull, 1);
      return true;
    case kBatonInt:
    case kBatonFloat:
      PutInt(out, v->type_code == kBatonInt ? kTagInt : kTagFloat, 1);
      PutInt(out, (uint64_t)v->v_int64, 8);
      return true;
    case kBatonBool:
      PutInt(out, kTagBool, 1);
      PutInt(out, v->v_int64 != 0, 1);
      return true;
    case kBatonDType:
      PutInt(out, kTagDType, 1);
      PutDType(out, v->v_dtype);
      return true;
    case kBatonDevice:
      PutInt(out, kTagDevice, 1);
      PutInt(out, (uint32_t)v->v_device.device_type, 4);
      PutInt(out, (uint32_t)v->v_device.device_id, 4);
      return true;
    case kBatonStr:
      return WriteText(out, kTagStr, v->v_str, strlen(v->v_str));
    case kBatonBytes:
      return WriteText(out, kTagBytes, v->v_bytes->data, v->v_bytes->size);
    case kBatonObject:
      return WriteObject(out, (Object*)(void*)v->v_obj, depth);
    default:
      return Fail("TypeError", "a value of this kind does not travel");
  }
}
