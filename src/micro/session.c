/* SPDX-License-Identifier: Apache-2.0 */
/* A session: frames, handles, and answers to calls. */
#include <string.h>

#include "internal.h"

enum { kHello = 1, kCall, kReply, kError, kCancel, kData, kRelease, kPing, kBye };
enum {
  kOpCall,
  kOpGetFunction,
  kOpModuleFunction,
  kOpAlloc,
  kOpWrite,
  kOpRead,
  kOpCopy,
  kOpSync,
  kOpExists,
  kOpUpload,
  kOpPut,
  kOpDownload,
  kOpRemove,
  kOpLoadModule,
  kOpSystemLib,
  kOpTime,
  kOpEnd
}; /* as in src/rpc/endpoint.h */

typedef struct {
  uint32_t length;
  uint8_t type;
  uint64_t id, ack;
  uint8_t* payload; /* in the arena; null for DATA, or when there was no memory */
} Frame;

typedef struct {
  Object* object;
  uint32_t generation;
} Slot;

static const BatonMicroConfig* config;
static Slot* slots;
static uint32_t num_free;
static uint64_t last_id, serving;
static int depth;
static int over; /* 1: the connection ended, 2: it makes no sense */
static uint8_t out_buffer[64];
static size_t out_size;

const BatonMicroConfig* Config(void) { return config; }

/* ---- Bytes. */

static void Flush(void) {
  if (out_size && !over && config->wire.write(config->wire.self, out_buffer, out_size)) over = 1;
  out_size = 0;
}

void SendBytes(const void* data, size_t size) {
  if (size > sizeof out_buffer - out_size) Flush();
  if (size > sizeof out_buffer) {
    if (!over && config->wire.write(config->wire.self, data, size)) over = 1;
    return;
  }
  if (size) memcpy(out_buffer + out_size, data, size);
  out_size += size;
}

static bool Receive(void* to, size_t size) {
  uint8_t* at = to;
  while (size && !over) {
    size_t n = config->wire.read(config->wire.self, at, size);
    if (n == 0 || n > size)
      over = 1;
    else
      at += n, size -= n;
  }
  return !over;
}

static void Header(uint8_t type, uint64_t id, uint64_t ack, size_t size) {
  Writer w = {0};
  PutInt(&w, size, 4);
  PutInt(&w, type, 4); /* no flags, no stream */
  PutInt(&w, id, 8);
  PutInt(&w, ack, 8);
}

static void Send(uint8_t type, uint64_t id, uint64_t ack, const void* payload, size_t size) {
  Header(type, id, ack, size);
  SendBytes(payload, size);
  Flush();
}

static bool Drop(size_t size) {
  uint8_t nothing[64];
  while (size) {
    size_t n = size < sizeof nothing ? size : sizeof nothing;
    if (!Receive(nothing, n)) return false;
    size -= n;
  }
  return true;
}

static bool Nonsense(void) {
  if (!over) over = 2;
  return false;
}

/* The next frame. Its payload is to be freed; that of DATA stays on the wire. */
static bool NextFrame(Frame* f) {
  uint8_t head[kHeaderBytes];
  *f = (Frame){0};
  if (!Receive(head, sizeof head)) return false;
  Reader in = {head, sizeof head};
  uint64_t length = 0, type = 0;
  TakeInt(&in, 4, &length);
  TakeInt(&in, 4, &type);
  TakeInt(&in, 8, &f->id);
  TakeInt(&in, 8, &f->ack);
  if (length > kMaxPayload || type < kHello || type > kBye) return Nonsense();
  f->length = (uint32_t)length;
  f->type = (uint8_t)type;
  if (f->type == kData) return true;
  f->payload = ArenaAlloc(f->length);
  if (!f->payload) return Drop(f->length);
  if (Receive(f->payload, f->length)) return true;
  ArenaFree(f->payload);
  return false;
}

/* A piece of the bytes that belong to a call, into `to` (null: dropped); how many came, 0 with the session over. */
static size_t ReceiveData(uint64_t id, uint8_t* to, uint64_t most) {
  Frame f;
  if (!NextFrame(&f)) return 0;
  if (f.type != kData || f.id != id || f.length > most || f.length == 0) {
    ArenaFree(f.payload);
    Nonsense();
    return 0;
  }
  return (to ? Receive(to, f.length) : Drop(f.length)) ? f.length : 0;
}

static bool ReceiveAll(uint64_t id, uint8_t* to, uint64_t* left) {
  while (*left) {
    size_t n = ReceiveData(id, to, *left);
    if (!n) return false;
    if (to) to += n;
    *left -= n;
  }
  return true;
}

static void SendData(uint64_t id, const uint8_t* data, size_t size) {
  while (size && !over) {
    size_t n = size < kChunk ? size : kChunk;
    Send(kData, id, 0, data, n);
    data += n;
    size -= n;
  }
}

/* ---- Handles: generation and slot. */

uint64_t GiveHandle(Object* o) {
  for (uint32_t i = 0; i < BATON_MICRO_SLOTS; ++i) {
    if (slots[i].object || slots[i].generation == UINT32_MAX) continue;
    Retain(o);
    slots[i].object = o;
    --num_free;
    return (uint64_t)(++slots[i].generation) << 32 | i;
  }
  return 0; /* is not reached: free slots were counted */
}

static Slot* SlotOf(uint64_t handle) {
  uint32_t i = (uint32_t)handle;
  bool valid = i < BATON_MICRO_SLOTS && slots[i].object && slots[i].generation == handle >> 32;
  return valid ? &slots[i] : NULL;
}

Object* ObjectOfHandle(uint64_t handle) {
  Slot* s = SlotOf(handle);
  return s ? s->object : NULL;
}

static void TakeReleases(const Frame* f) {
  if (!f->payload || f->length % 8) {
    Nonsense();
    return;
  }
  Reader in = {f->payload, f->length};
  uint64_t handle = 0;
  while (in.left && TakeInt(&in, 8, &handle)) {
    Slot* s = SlotOf(handle);
    if (!s) continue;
    Object* o = s->object;
    s->object = NULL;
    if (s->generation != UINT32_MAX) ++num_free;
    Release(o);
  }
}

void SendRelease(uint64_t handle) {
  Writer w = {0};
  Header(kRelease, 0, 0, 8);
  PutInt(&w, handle, 8);
}

/* ---- Replies. */

static void SendError(uint64_t id) {
  const char* parts[] = {BatonErrorKind(), BatonErrorMessage(), ""};
  Writer w = {0};
  size_t size = 0;
  for (int i = 0; i < 3; ++i) size += 4 + strlen(parts[i]);
  Header(kError, id, 0, size);
  for (int i = 0; i < 3; ++i) {
    PutInt(&w, strlen(parts[i]), 4);
    Put(&w, parts[i], strlen(parts[i]));
  }
  Flush();
  BatonErrorSet("", "");
}

static bool Measure(Writer* w, const BatonValue* values, int count) {
  for (int i = 0; i < count; ++i) {
    if (!WriteValue(w, &values[i], 0)) return false;
  }
  if (w->size > kMaxPayload) return Fail("ValueError", "more bytes than a message takes");
  return w->handles <= num_free ||
         Fail("rpc.OutOfMemory", "the session holds as many objects as this server has places for");
}

static bool SendReply(uint64_t id, const BatonValue* value) {
  Writer w = {.counts = true};
  if (!Measure(&w, value, 1)) return false;
  Header(kReply, id, 0, w.size);
  w = (Writer){0};
  WriteValue(&w, value, 0);
  Flush();
  return true;
}

/* ---- Calls of the client. */

static void Serve(const Frame* f);

/* Handles messages while a reply is waited for. False when the session is over. */
static bool Between(Frame* f) {
  if (f->type == kCall)
    Serve(f);
  else if (f->type == kRelease)
    TakeReleases(f);
  else if (f->type == kBye)
    over = 1;
  else if (f->type != kPing && f->type != kCancel)
    Nonsense();
  return !over;
}

static int TakeReply(const Frame* f, BatonValue* ret) {
  if (!f->payload) return FailMemory(), -1;
  Reader in = {f->payload, f->length};
  if (f->type == kReply) return ReadValue(&in, 0, ret) ? 0 : -1;
  char parts[2][160] = {"", ""};
  for (int i = 0; i < 2; ++i) {
    uint64_t size = 0;
    const uint8_t* at = TakeInt(&in, 4, &size) && size <= in.left ? Take(&in, (size_t)size) : NULL;
    if (!at) return -1;
    if (size > sizeof parts[i] - 1) size = sizeof parts[i] - 1;
    memcpy(parts[i], at, (size_t)size);
  }
  BatonErrorSet(parts[0][0] ? parts[0] : "RuntimeError", parts[1]);
  return -1;
}

int CallRemote(Remote* remote, const BatonValue* args, int count, BatonValue* ret) {
  Writer w = {.counts = true};
  if (depth >= BATON_MICRO_NESTING) return Fail("rpc.RPCError", "calls back and forth within each other: too deep"), -1;
  if (!Measure(&w, args, count)) return -1;
  uint64_t id = ++last_id;
  Header(kCall, id, serving, w.size + 24);
  w = (Writer){0};
  PutInt(&w, kOpCall, 4);
  PutInt(&w, remote->handle, 8);
  PutInt(&w, 0, 8);
  PutInt(&w, (uint64_t)count, 4);
  for (int i = 0; i < count; ++i) WriteValue(&w, &args[i], 0);
  Flush();
  Frame f;
  int code = -1;
  ++depth;
  while (NextFrame(&f)) {
    bool mine = (f.type == kReply || f.type == kError) && f.id == id;
    bool goes_on = mine || Between(&f);
    if (mine) code = TakeReply(&f, ret);
    ArenaFree(f.payload);
    if (mine || !goes_on) break;
  }
  --depth;
  if (over) Fail("rpc.SessionLost", "the session is over");
  return code;
}

/* ---- Answers. */

typedef struct {
  uint64_t op, handle, id, data_left;
  List* args;
  Tensor* reply_data; /* of which these bytes follow the reply */
  size_t reply_size;
} Incoming;

static const BatonValue* Arg(const Incoming* c, size_t i, int type_code) {
  if (i < c->args->size && c->args->items[i].type_code == type_code) return &c->args->items[i];
  Fail("TypeError", "an argument is missing, or of another kind");
  return NULL;
}
static bool IntArg(const Incoming* c, size_t i, int64_t* out) {
  const BatonValue* v = Arg(c, i, kBatonInt);
  if (v) *out = v->v_int64;
  return v != NULL;
}
static Text* TextArg(const Incoming* c, size_t i) {
  Object* o = i < c->args->size ? ObjectOf(&c->args->items[i], kText) : NULL;
  if (!o) Fail("TypeError", "expected a text");
  return (Text*)o;
}
static Tensor* ArrayOf(uint64_t handle) {
  Object* o = ObjectOfHandle(handle);
  if (!o || o->kind != kTensor) return Fail("ValueError", "the array is not there any more"), NULL;
  return (Tensor*)o;
}

/* The array of a handle, and a number of its bytes as argument `at`. */
static Tensor* BytesOf(const Incoming* c, uint64_t handle, size_t at, int64_t* bytes) {
  Tensor* a = ArrayOf(handle);
  if (!a || !IntArg(c, at, bytes)) return NULL;
  if (*bytes < 0 || (uint64_t)*bytes > a->bytes) return Fail("ValueError", "more bytes than the array has"), NULL;
  return a;
}

static bool GetFunction(const Text* name, BatonValue* ret) {
  for (size_t i = 0; i < config->num_functions; ++i) {
    if (strcmp(config->functions[i].name, name->data) != 0) continue;
    Function* f = New(sizeof(Function), kFunction);
    if (!f) return false;
    f->call = config->functions[i].call;
    f->self = config->functions[i].self;
    *ret = OfObject(f);
  }
  return true;
}

static bool Alloc(const Incoming* c, BatonValue* ret) {
  int64_t bytes = 0;
  const BatonValue* device = Arg(c, 0, kBatonDevice);
  if (!device || !IntArg(c, 1, &bytes)) return false;
  if (device->v_device.device_type != kDLCPU)
    return Fail("DeviceError", "this machine has no device but its processor");
  if (num_free == 0) return Fail("rpc.OutOfMemory", "the session holds as many objects as this server has places for");
  Tensor* a = NewTensor(&bytes, 1, (DLDataType){kDLUInt, 8, 1});
  if (!a) return false;
  *ret = Int((int64_t)GiveHandle(&a->head));
  Release(&a->head);
  return true;
}

static bool Write(Incoming* c) {
  int64_t bytes = 0;
  Tensor* a = BytesOf(c, c->handle, 1, &bytes);
  if (!a) return false;
  if ((uint64_t)bytes != c->data_left) return Fail("rpc.ProtocolError", "a write that does not fit its bytes");
  return ReceiveAll(c->id, a->t.data, &c->data_left);
}

static bool Read(Incoming* c, BatonValue* ret) {
  int64_t bytes = 0;
  Tensor* a = BytesOf(c, c->handle, 1, &bytes);
  if (!a) return false;
  Retain(&a->head);
  c->reply_data = a;
  c->reply_size = (size_t)bytes;
  *ret = Int(bytes);
  return true;
}

static bool Copy(const Incoming* c) {
  int64_t from = 0, bytes = 0;
  if (!IntArg(c, 0, &from)) return false;
  Tensor *to = BytesOf(c, c->handle, 1, &bytes), *source = to ? BytesOf(c, (uint64_t)from, 1, &bytes) : NULL;
  if (!source) return false;
  if (bytes) memmove(to->t.data, source->t.data, (size_t)bytes);
  return true;
}

/* Seconds a call, of `number` calls or as many more as take `min_ms`. */
static bool TimeOnce(Object* f, const BatonValue* args, int count, int64_t number, int64_t min_ms, double* out) {
  for (;;) {
    uint64_t start = config->nanoseconds();
    for (int64_t i = 0; i < number; ++i) {
      BatonValue ret = Null();
      if (BatonFuncCall((BatonObject*)f, args, count, &ret) != 0) return false;
      ReleaseValue(&ret);
    }
    uint64_t took = config->nanoseconds() - start;
    *out = (double)took * 1e-9 / (double)number;
    if (took >= (uint64_t)min_ms * 1000000u || number > (1 << 20)) return true;
    number *= 2;
  }
}

static bool Time(const Incoming* c, BatonValue* ret) {
  enum { kHead = 8 };
  int64_t n[5] = {0}; /* number, repeat, min_repeat_ms, cooldown_ms, repeats_to_cooldown */
  Text* prepare = TextArg(c, 7);
  Object* f = c->args->size
                  ? (Object*)(void*)(c->args->items[0].type_code == kBatonObject ? c->args->items[0].v_obj : NULL)
                  : NULL;
  if (!prepare) return false;
  for (size_t i = 0; i < 5; ++i) {
    if (!IntArg(c, 2 + i, &n[i])) return false;
  }
  if (!f || !config->nanoseconds)
    return Fail("UnsupportedError", "there is no function to time, or this machine has no clock");
  if (prepare->size || n[3]) return Fail("UnsupportedError", "a micro server has no f_preproc and no cooldown");
  if (n[0] < 1 || n[1] < 1 || n[2] < 0 || n[1] > 4096 || n[0] > 1 << 20) {
    return Fail("ValueError", "number and repeat must be at least 1, and not more than a machine of this kind can do");
  }
  List* seconds = NewList(kArray, (size_t)n[1]);
  if (!seconds) return false;
  for (int64_t i = 0; i < n[1]; ++i) {
    BatonValue* v = &seconds->items[i];
    v->type_code = kBatonFloat;
    if (!TimeOnce(f, c->args->items + kHead, (int)(c->args->size - kHead), n[0], n[2], &v->v_float64)) {
      Release(&seconds->head);
      return false;
    }
    Send(kPing, c->id, 0, NULL, 0);
  }
  *ret = OfObject(seconds);
  return true;
}

static bool Answer(Incoming* c, BatonValue* ret) {
  switch (c->op) {
    case kOpCall: {
      Object* o = ObjectOfHandle(c->handle);
      if (!o || o->kind != kFunction)
        return Fail("rpc.ProtocolError", "a call of a function that was not handed over, or was released");
      Retain(o);
      int code = BatonFuncCall((BatonObject*)o, c->args->items, (int)c->args->size, ret);
      Release(o);
      if (code != 0 && !HasError()) Fail("RuntimeError", "the function failed without saying why");
      return code == 0;
    }
    case kOpGetFunction: {
      Text* name = TextArg(c, 0);
      return name && GetFunction(name, ret);
    }
    case kOpModuleFunction: {
      Object* o = ObjectOfHandle(c->handle);
      Text* name = TextArg(c, 0);
      if (!name) return false;
      if (!o || o->kind != kModule) return Fail("rpc.ProtocolError", "a handle that is of no module");
      *ret = OfObject(ModuleFunction((ModuleObject*)o, name));
      return !HasError();
    }
    case kOpAlloc:
      return Alloc(c, ret);
    case kOpWrite:
      return Write(c);
    case kOpRead:
      return Read(c, ret);
    case kOpCopy:
      return Copy(c);
    case kOpSync:
      return true;
    case kOpExists: {
      const BatonValue* d = Arg(c, 0, kBatonDevice);
      if (d)
        *ret = (BatonValue){.type_code = kBatonBool,
                            .v_int64 = d->v_device.device_type == kDLCPU && d->v_device.device_id == 0};
      return d != NULL;
    }
    case kOpSystemLib:
      if (!config->model) return Fail("UnsupportedError", "no model is linked into this server");
      *ret = OfObject(NewLibrary());
      return ret->type_code == kBatonObject;
    case kOpTime:
      return Time(c, ret);
    case kOpUpload:
    case kOpPut:
    case kOpDownload:
    case kOpRemove:
    case kOpLoadModule:
      return Fail("UnsupportedError", "a micro server has no files: its model is linked in, system_lib() gives it");
    default:
      return Fail("rpc.ProtocolError", "a call of a kind that does not exist");
  }
}

static bool ReadCall(const Frame* f, Incoming* c) {
  if (!f->payload) return FailMemory();
  Reader in = {f->payload, f->length};
  uint64_t count = 0;
  if (!TakeInt(&in, 4, &c->op) || !TakeInt(&in, 8, &c->handle) || !TakeInt(&in, 8, &c->data_left) ||
      !TakeInt(&in, 4, &count))
    return false;
  if (count > in.left) return Fail("rpc.ProtocolError", "more arguments than bytes");
  c->args = NewList(kArray, (size_t)count);
  for (size_t i = 0; c->args && i < count; ++i) {
    if (!ReadValue(&in, 0, &c->args->items[i])) return false;
  }
  if (c->args && in.left) return Fail("rpc.ProtocolError", "bytes behind the arguments");
  return c->args != NULL;
}

static void Serve(const Frame* f) {
  Incoming c = {.id = f->id};
  BatonValue ret = Null();
  uint64_t outer = serving;
  BatonErrorSet("", "");
  bool fine = depth < BATON_MICRO_NESTING || Fail("rpc.RPCError", "calls back and forth within each other: too deep");
  fine = ReadCall(f, &c) && fine;
  if (fine) {
    serving = c.id;
    ++depth;
    fine = Answer(&c, &ret);
    --depth;
    serving = outer;
  }
  if (!over) ReceiveAll(c.id, NULL, &c.data_left);
  if (!over && !(fine && SendReply(c.id, &ret))) {
    SendError(c.id);
    c.reply_size = 0;
  }
  if (c.reply_data) {
    SendData(c.id, c.reply_data->t.data, c.reply_size);
    Release(&c.reply_data->head);
  }
  ReleaseValue(&ret);
  if (c.args) Release(&c.args->head);
  Flush();
}

/* ---- HELLO. */

static bool Greet(void) {
  static const char kMagic[8] = {'B', 'A', 'T', 'O', 'N', 'R', 'P', 'C'};
  Frame f;
  if (!NextFrame(&f)) return false;
  Reader in = {f.payload, f.payload ? f.length : 0};
  const uint8_t* magic = Take(&in, sizeof kMagic);
  uint64_t major = 0, minor = 0;
  bool fine = f.type == kHello && magic && memcmp(magic, kMagic, sizeof kMagic) == 0 && TakeInt(&in, 2, &major) &&
              TakeInt(&in, 2, &minor);
  ArenaFree(f.payload);
  if (!fine) return Nonsense();
  if (major != 1) {
    Fail("rpc.VersionError",
         "the other end speaks another version of the protocol, this one 1.0; install releases of the same time");
    SendError(0);
    return Nonsense();
  }
  BatonValue pairs[] = {
      {.type_code = kBatonStr, .v_str = "machine"}, {.type_code = kBatonStr, .v_str = config->machine},
      {.type_code = kBatonStr, .v_str = "policy"},  {.type_code = kBatonStr, .v_str = "session"},
      {.type_code = kBatonStr, .v_str = "session"}, Int(1)};
  Writer w = {.counts = true};
  for (int pass = 0; pass < 2; ++pass) {
    if (pass) Header(kHello, 0, 0, w.size);
    w = (Writer){.counts = pass == 0};
    Put(&w, kMagic, sizeof kMagic);
    PutInt(&w, 1, 2);
    PutInt(&w, 0, 2);
    PutInt(&w, 17, 1); /* a map */
    PutInt(&w, 3, 4);
    for (int i = 0; i < 6; ++i) WriteValue(&w, &pairs[i], 1);
  }
  Flush();
  return !over;
}

int BatonMicroServe(const BatonMicroConfig* given) {
  config = given;
  last_id = serving = 0;
  depth = over = 0;
  out_size = 0;
  num_free = BATON_MICRO_SLOTS;
  BatonErrorSet("", "");
  ArenaInit(given->arena, given->arena_bytes);
  slots = ArenaAlloc(BATON_MICRO_SLOTS * sizeof(Slot));
  if (!slots) return 2;
  memset(slots, 0, BATON_MICRO_SLOTS * sizeof(Slot));
  bool ended = false;
  Frame f;
  if (Greet()) {
    while (!ended && NextFrame(&f)) {
      if (f.type == kCall)
        Serve(&f);
      else if (f.type == kRelease)
        TakeReleases(&f);
      else if (f.type == kBye)
        ended = true;
      else if (f.type != kPing && f.type != kCancel)
        Nonsense();
      ArenaFree(f.payload);
    }
  }
  return ended ? 0 : over;
}
