/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds frames, most of them mutated, to the micro server: `micro_fuzz FRAMES SEED`, with a third argument over a
 * serial line whose records are mutated too. Built with sanitizers and
 * -DBATON_MICRO_MALLOC. What the server sends must be frames; a session that makes no sense must end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serial.h"

extern const BatonMicroFunction baton_micro_functions[];
extern const size_t baton_micro_num_functions;

static uint64_t state;
static uint32_t Random(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % below);
}

/* A model: output = input + 1, of four floats. */
static const BatonBackendApi* api;
static int32_t AddOne(void** io, const uint8_t* constants, uint8_t* workspace, const int64_t* sizes) {
  (void)constants, (void)sizes;
  workspace[15] = 1;
  void* more = api->alloc(64);
  if (!more) return api->set_error("no memory");
  memset(more, 0, 64);
  api->free(more);
  for (int i = 0; i < 4; ++i) ((float*)io[1])[i] = ((const float*)io[0])[i] + 1;
  return 0;
}
static const int64_t shape[] = {2, 2};
static const BatonMicroTensorInfo tensors[] = {{"x", {2, 32, 1}, 2, shape}, {"y", {2, 32, 1}, 2, shape}};
static const BatonMicroModel model = {AddOne, &api, NULL, 16, 1, 1, tensors};

/* ---- Frames that make sense, as starting points. */

typedef struct {
  uint8_t data[4096];
  size_t size;
} Bytes;
static void Int(Bytes* b, uint64_t v, int bytes) {
  for (int i = 0; i < bytes && b->size < sizeof b->data; ++i) b->data[b->size++] = (uint8_t)(v >> (8 * i));
}
static void Str(Bytes* b, const char* s) {
  Int(b, 7, 1), Int(b, strlen(s), 4);
  for (; *s; ++s) Int(b, (uint8_t)*s, 1);
}
static uint64_t Handle(void) { return (uint64_t)(Random(8) ? 1 : 2) << 32 | Random(10); }
static void Shape(Bytes* b) { Int(b, 2, 1), Int(b, 32, 1), Int(b, 1, 2), Int(b, 2, 1), Int(b, 2, 8), Int(b, 2, 8); }

static void Value(Bytes* b, int depth) {
  static const char* const kWords[] = {"default", "run", "set_input", "get_output", "get_input_info",
                                       "call",    "x",   "test.echo", "test.apply", "test.sum"};
  switch (Random(depth > 3 ? 9 : 12)) {
    case 0:
      Int(b, 0, 1);
      break;
    case 1:
      Int(b, 1, 1), Int(b, Random(3), 8);
      break;
    case 2:
      Int(b, 2, 1), Int(b, 1, 1);
      break;
    case 3:
      Int(b, 3, 1), Int(b, 0x3ff0000000000000, 8);
      break;
    case 4:
      Int(b, 5, 1), Int(b, 2, 1), Int(b, 32, 1), Int(b, 1, 2);
      break;
    case 5:
      Int(b, 6, 1), Int(b, 1, 4), Int(b, 0, 4);
      break;
    case 6:
      Str(b, kWords[Random(10)]);
      break;
    case 7:
      Int(b, 64, 1), Int(b, Handle(), 8), Int(b, Random(4), 1), Random(2) ? Shape(b) : Int(b, 3, 8);
      break;
    case 8:
      Int(b, 65, 1), Int(b, 77, 8), Int(b, 4, 1), Int(b, 0, 1);
      break;
    case 9:
      Int(b, 9, 1), Shape(b), Int(b, 0, 8), Int(b, 0, 8);
      break;
    default: {
      uint32_t n = Random(4), map = Random(2);
      Int(b, 16 + map, 1), Int(b, n, 4);
      for (uint32_t i = 0; i < n; ++i) {
        if (map) Int(b, 1, 1), Int(b, i, 8);
        Value(b, depth + 1);
      }
    }
  }
}

static void Frame(Bytes* b, int type, uint64_t id, const Bytes* payload) {
  Int(b, payload->size, 4), Int(b, (uint64_t)type, 4), Int(b, id, 8), Int(b, 0, 8);
  for (size_t i = 0; i < payload->size; ++i) Int(b, payload->data[i], 1);
}

static void Call(Bytes* b, uint64_t id) {
  Bytes p = {.size = 0};
  uint32_t op = Random(16), count = Random(4), data = op == 4 ? 16 : op == 10 ? 8 : 0;
  Int(&p, op, 4),
      Int(&p,
          op == 2 && Random(4) ? 1ull << 32 | 2
          : Random(4)          ? Handle()
                               : 1ull << 32 | 9,
          8),
      Int(&p, data, 8);
  switch (op) {
    case 1:
    case 14:
      Int(&p, 1, 4), Str(&p, Random(2) ? "test.echo" : "test.apply");
      break;
    case 2:
      Int(&p, 2, 4),
          Str(&p, (const char*[]){"get_input", "call", "run_with", "get_num_inputs", "get_input_index",
                                  "get_output_name", "get_output_info"}[Random(7)]),
          Int(&p, 2, 1), Int(&p, 1, 1);
      break;
    case 3:
      Int(&p, 2, 4), Int(&p, 6, 1), Int(&p, 1, 4), Int(&p, 0, 4), Int(&p, 1, 1), Int(&p, 16, 8);
      break;
    case 4:
    case 5:
      Int(&p, 2, 4), Int(&p, 1, 1), Int(&p, 0, 8), Int(&p, 1, 1), Int(&p, 16, 8);
      break;
    case 6:
      Int(&p, 2, 4), Int(&p, 1, 1), Int(&p, Handle(), 8), Int(&p, 1, 1), Int(&p, Random(20), 8);
      break;
    case 15:
      Int(&p, 9, 4), Int(&p, 64, 1), Int(&p, Handle(), 8), Int(&p, 0, 1), Int(&p, 6, 1), Int(&p, 1, 8);
      for (int i = 0; i < 5; ++i) Int(&p, 1, 1), Int(&p, i < 2, 8);
      Str(&p, ""), Value(&p, 0);
      break;
    default:
      Int(&p, count, 4);
      for (uint32_t i = 0; i < count; ++i) Value(&p, 0);
  }
  Frame(b, 2, id, &p);
  if (!data) return;
  Bytes d = {.size = data};
  Frame(b, 6, id, &d);
}

/* What a session begins with, so that there is something behind handles: the library, its "default", an executor, three
 * functions of it, test.apply, test.echo and an array of 16 bytes. */
enum { kPrologue = 9 };
static void Begin(Bytes* b, uint64_t id, int step) {
  static const char* const kNames[] = {"", "default", "", "set_input", "run", "get_output", "test.apply", "test.echo"};
  static const uint8_t kOps[] = {14, 2, 0, 2, 2, 2, 1, 1, 3}, kOf[] = {0, 0, 1, 2, 2, 2, 0, 0, 0};
  Bytes p = {.size = 0};
  b->size = 0;
  Int(&p, kOps[step], 4), Int(&p, 1ull << 32 | kOf[step], 8), Int(&p, 0, 8),
      Int(&p,
          kOps[step] == 0   ? 0
          : kOps[step] < 3  ? 2
          : kOps[step] == 3 ? 2
                            : 1,
          4);
  if (kOps[step] == 3)
    Int(&p, 6, 1), Int(&p, 1, 4), Int(&p, 0, 4), Int(&p, 1, 1), Int(&p, 16, 8);
  else if (kOps[step] != 0)
    Str(&p, kNames[step]);
  if (kOps[step] == 1 || kOps[step] == 2) Int(&p, 2, 1), Int(&p, 1, 1);
  Frame(b, 2, id, &p);
}

static uint64_t callbacks;
static void Next(Bytes* b, uint64_t id) {
  Bytes p = {.size = 0};
  b->size = 0;
  switch (Random(12)) {
    case 0:
      Int(&p, Handle(), 8), Frame(b, 7, 0, &p);
      break;
    case 1:
      Value(&p, 0), Frame(b, 3, 1 + Random(3), &p);
      break;
    case 2:
      Int(&p, 0, 4), Int(&p, 0, 8), Frame(b, 4, 1 + Random(3), &p);
      break;
    case 3: /* test.apply(a function of the client's, ...), and the reply */
      Int(&p, 0, 4), Int(&p, 1ull << 32 | 6, 8), Int(&p, 0, 8), Int(&p, 2, 4), Int(&p, 65, 1), Int(&p, 77, 8),
          Int(&p, 4, 1), Int(&p, 0, 1), Value(&p, 0);
      Frame(b, 2, id, &p);
      p.size = 0;
      if (Random(4)) {
        Value(&p, 0), Frame(b, 3, ++callbacks, &p);
        break;
      }
      Int(&p, 10, 4);
      for (int i = 0; i < 10; ++i) Int(&p, 'a', 1);
      Int(&p, 300, 4), p.size += 300, Int(&p, 0, 4);
      Frame(b, 4, ++callbacks, &p);
      break;
    case 4: /* set_input(0, the array as floats), run */
      Int(&p, 0, 4), Int(&p, 1ull << 32 | 3, 8), Int(&p, 0, 8), Int(&p, 2, 4), Int(&p, 1, 1), Int(&p, 0, 8),
          Int(&p, 64, 1), Int(&p, 1ull << 32 | 8, 8), Int(&p, 1, 1), Shape(&p);
      Frame(b, 2, id, &p);
      p.size = 0, Int(&p, 0, 4), Int(&p, 1ull << 32 | 4, 8), Int(&p, 0, 8), Int(&p, 0, 4);
      Frame(b, 2, id, &p);
      break;
    default:
      Call(b, id);
  }
  uint32_t changes = Random(3) ? 0 : 1 + Random(4);
  while (changes-- && b->size) {
    uint32_t at = Random((uint32_t)b->size);
    if (at < 24 && b->size > 24 && Random(4))
      at = 24 + Random((uint32_t)b->size - 24); /* a wrong header ends the session */
    if (Random(4))
      b->data[at] = (uint8_t)(Random(3) ? b->data[at] ^ 1u << Random(8) : Random(256));
    else if (Random(2))
      b->size = at;
    else
      memmove(b->data + at, b->data + Random((uint32_t)b->size),
              Random((uint32_t)(sizeof b->data - b->size)) % (b->size - at));
  }
}

/* ---- The wire. */

static uint64_t frames, most, sessions, replies, errors;
static Bytes now;
static size_t at;
static uint64_t id;
static int in_session;

static size_t Read(void* self, void* to, size_t size) {
  (void)self;
  if (at == now.size) {
    if (frames >= most || in_session++ > 40) return 0;
    ++frames, at = 0;
    if (id < kPrologue && Random(50))
      Begin(&now, id + 1, (int)id);
    else
      Next(&now, id + 1);
    ++id;
    if (!now.size) return 0;
  }
  if (size > now.size - at) size = now.size - at;
  if (!Random(3)) size = 1 + Random((uint32_t)size);
  memcpy(to, now.data + at, size);
  at += size;
  return size;
}

static uint8_t head[24];
static size_t head_size, body_left;
static int Write(void* self, const void* from, size_t size) {
  const uint8_t* b = from;
  (void)self;
  while (size) {
    if (body_left) {
      size_t n = size < body_left ? size : body_left;
      b += n, size -= n, body_left -= n;
      continue;
    }
    head[head_size++] = *b++, --size;
    if (head_size < sizeof head) continue;
    head_size = 0;
    body_left = head[0] | head[1] << 8 | head[2] << 16 | (size_t)head[3] << 24;
    if (body_left > (1 << 20) + (64 << 10) || head[4] < 1 || head[4] > 9 || head[5]) {
      fprintf(stderr, "micro_fuzz: what the server sent is no frame\n");
      abort();
    }
    replies += head[4] == 3, errors += head[4] == 4;
  }
  return 0;
}

static uint64_t Nanoseconds(void) {
  static uint64_t time;
  return time += 1000000000u;
}

static void Hello(void) {
  static const uint8_t kHello[] = "BATONRPC\1\0\0\0\21\0\0\0\0";
  Bytes hello = {.size = sizeof kHello - 1};
  memcpy(hello.data, kHello, hello.size);
  now.size = at = head_size = body_left = 0, id = callbacks = 0, in_session = 0;
  Frame(&now, 1, 0, &hello);
  if (!Random(20)) now.data[Random((uint32_t)now.size)] ^= (uint8_t)(1u << Random(8));
  ++sessions, ++frames;
}

/* ---- A serial line. */

static Bytes line;
static size_t line_at;
static uint64_t number;
static int starts;

static void Record(char type, const uint8_t* data, size_t size) {
  Bytes plain = {.size = 0};
  uint32_t crc = ~0u;
  Int(&plain, (uint8_t)type, 1);
  for (size_t i = 0; i < size; ++i) Int(&plain, data[i], 1);
  for (size_t i = 0; i < 9 + plain.size; ++i) {
    crc ^= i == 0 ? 'C' : i < 9 ? (uint8_t)(number >> (8 * (i - 1))) : plain.data[i - 9];
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  Int(&plain, ~crc, 4);
  ++number;
  line.size = 1;
  size_t code = 0;
  for (size_t i = 0; i <= plain.size; ++i) {
    bool full = line.size - code == 255, end = i == plain.size;
    if (end || full || !plain.data[i]) {
      line.data[code] = (uint8_t)(line.size - code);
      code = line.size++;
      if (end) break;
      if (!plain.data[i]) {
        if (full) line.data[code] = 1, code = line.size++;
        continue;
      }
    }
    line.data[line.size++] = plain.data[i];
  }
  line.data[code] = 0;
  if (!Random(12)) line.data[Random((uint32_t)line.size)] ^= (uint8_t)(1u << Random(8));
  if (!Random(30)) line.size = 1 + Random((uint32_t)line.size);
}

static size_t LineRead(void* self, void* to, size_t size) {
  (void)self;
  if (line_at == line.size) {
    uint8_t piece[kBatonSerialRecord];
    size_t n = starts ? 0 : Read(NULL, piece, 1 + Random(sizeof piece));
    line_at = 0;
    if (n) {
      Record('D', piece, n);
    } else if (frames >= most) {
      return 0;
    } else if (!starts++) {
      number = 0;
      memset(piece, 0x5a, 17), piece[0] = 0;
      Record('S', piece, 17);
    } else {
      starts = 0;
      Hello();
      return LineRead(self, to, size);
    }
  }
  if (size > line.size - line_at) size = line.size - line_at;
  memcpy(to, line.data + line_at, size);
  line_at += size;
  return size;
}
static int LineWrite(void* self, const void* from, size_t size) {
  replies += self == NULL && from && size > 0;
  return 0;
}

int main(int argc, char** argv) {
  static uint8_t arena[64 << 10];
  most = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  BatonMicroConfig config = {{NULL, Read, Write},       arena,  sizeof arena, "fuzz", baton_micro_functions,
                             baton_micro_num_functions, &model, Nanoseconds};
  BatonMicroSerial serial = {.line = {NULL, LineRead, LineWrite}};
  while (frames < most && argc <= 3) {
    Hello();
    BatonMicroServe(&config);
  }
  while (argc > 3 && BatonMicroSerialAccept(&serial, &config.wire)) BatonMicroServe(&config);
  printf("%llu frames, %llu sessions, %llu replies, %llu errors\n", (unsigned long long)frames,
         (unsigned long long)sessions, (unsigned long long)replies, (unsigned long long)errors);
  printf("fuzz: micro: from %s: %llu mutants, %llu accepted, %llu refused, 0 wrong\n", argc > 2 ? argv[2] : "1",
         (unsigned long long)frames, (unsigned long long)(frames > errors ? frames - errors : 0),
         (unsigned long long)errors);
  return replies > frames / 50 ? 0 : 1;
}
