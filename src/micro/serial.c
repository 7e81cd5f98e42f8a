/* SPDX-License-Identifier: Apache-2.0 */
#include "serial.h"

#include <string.h>

/* ---- SHA-256 (FIPS 180-4) and HMAC (RFC 2104). */

typedef struct {
  uint32_t h[8];
  uint8_t block[64];
  uint64_t size;
} Sha;

static uint32_t Rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void Mix(Sha* s) {
  static const uint32_t k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t w[16], v[8];
  for (int i = 0; i < 16; ++i) {
    const uint8_t* b = s->block + 4 * i;
    w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
  }
  memcpy(v, s->h, sizeof v);
  for (int i = 0; i < 64; ++i) {
    if (i >= 16) {
      uint32_t a = w[(i + 1) & 15], b = w[(i + 14) & 15];
      w[i & 15] +=
          (Rotate(a, 7) ^ Rotate(a, 18) ^ a >> 3) + w[(i + 9) & 15] + (Rotate(b, 17) ^ Rotate(b, 19) ^ b >> 10);
    }
    uint32_t t1 = v[7] + (Rotate(v[4], 6) ^ Rotate(v[4], 11) ^ Rotate(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
                  k[i] + w[i & 15];
    uint32_t t2 =
        (Rotate(v[0], 2) ^ Rotate(v[0], 13) ^ Rotate(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof v[0]);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) s->h[i] += v[i];
}

static void ShaAdd(Sha* s, const void* data, size_t size) {
  const uint8_t* at = data;
  while (size--) {
    s->block[s->size++ & 63] = *at++;
    if ((s->size & 63) == 0) Mix(s);
  }
}

static void ShaStart(Sha* s) {
  *s = (Sha){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void ShaEnd(Sha* s, uint8_t out[32]) {
  uint64_t bits = s->size * 8;
  uint8_t tail[8], byte = 0x80;
  for (int i = 0; i < 8; ++i) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
  ShaAdd(s, &byte, 1);
  byte = 0;
  while ((s->size & 63) != 56) ShaAdd(s, &byte, 1);
  ShaAdd(s, tail, 8);
  for (int i = 0; i < 32; ++i) out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

static void HmacPad(Sha* s, const uint8_t key[32], uint8_t with) {
  ShaStart(s);
  for (int i = 0; i < 64; ++i) {
    uint8_t b = (i < 32 ? key[i] : 0) ^ with;
    ShaAdd(s, &b, 1);
  }
}

static void HmacEnd(Sha* s, const uint8_t key[32], uint8_t out[32]) {
  uint8_t inner[32];
  ShaEnd(s, inner);
  HmacPad(s, key, 0x5c);
  ShaAdd(s, inner, 32);
  ShaEnd(s, out);
}

/* ---- Checks. */

static uint32_t Crc(uint32_t crc, const void* data, size_t size) {
  const uint8_t* at = data;
  while (size--) {
    crc ^= *at++;
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return crc;
}

/* The check of a record (type and content); how many bytes it has. `keyed`: by the key of the session. */
static size_t Check(const BatonMicroSerial* s, bool keyed, char direction, uint64_t number, const uint8_t* record,
                    size_t size, uint8_t out[32]) {
  uint8_t head[9] = {(uint8_t)direction};
  for (int i = 0; i < 8; ++i) head[1 + i] = (uint8_t)(number >> (8 * i));
  if (keyed) {
    Sha sha;
    HmacPad(&sha, s->session_key, 0x36);
    ShaAdd(&sha, head, sizeof head);
    ShaAdd(&sha, record, size);
    HmacEnd(&sha, s->session_key, out);
    return kBatonSerialCheck;
  }
  uint32_t crc = ~Crc(Crc(~0u, head, sizeof head), record, size);
  for (int i = 0; i < 4; ++i) out[i] = (uint8_t)(crc >> (8 * i));
  return 4;
}

static bool Fits(const BatonMicroSerial* s, bool keyed, uint64_t number, size_t size) {
  uint8_t check[32], differs = 0;
  size_t n = keyed ? kBatonSerialCheck : 4;
  if (size < n + 1) return false;
  Check(s, keyed, 'C', number, s->record, size - n, check);
  for (size_t i = 0; i < n; ++i) differs |= check[i] ^ s->record[size - n + i];
  return differs == 0;
}

/* ---- Records. */

enum { kMost = 64 }; /* bytes of a record that is sent */

typedef struct {
  BatonMicroSerial* s;
  uint8_t block[255];
  uint8_t size;
  bool ended;
} Encoder;

static void EndBlock(Encoder* e) {
  e->block[0] = (uint8_t)(e->size + 1);
  if (!e->ended && e->s->line.write(e->s->line.self, e->block, e->size + 1u)) e->ended = true;
  e->size = 0;
}

static void Encode(Encoder* e, const uint8_t* data, size_t size) {
  while (size--) {
    if (*data) e->block[++e->size] = *data;
    if (!*data++ || e->size == 254) EndBlock(e);
  }
}

static bool SendRecord(BatonMicroSerial* s, bool keyed, char type, const uint8_t* data, size_t size) {
  uint8_t record[1 + kMost], check[32], zero = 0;
  Encoder e = {.s = s};
  record[0] = (uint8_t)type;
  memcpy(record + 1, data, size);
  const size_t n = Check(s, keyed, 'S', s->sent++, record, size + 1, check);
  Encode(&e, record, size + 1);
  Encode(&e, check, n);
  EndBlock(&e);
  return !e.ended && s->line.write(s->line.self, &zero, 1) == 0;
}

/* The next whole record into s->record; its size, 0 when the line has ended. One that is too long or ends within a
 * block has size 1. */
static size_t NextRecord(BatonMicroSerial* s) {
  size_t size = 0;
  uint8_t left = 0, code = 0xff;
  bool wrong = false, any = false;
  for (;;) {
    if (s->in_at == s->in_size) {
      s->in_at = 0;
      s->in_size = s->line.read(s->line.self, s->in, sizeof s->in);
      if (s->in_size == 0 || s->in_size > sizeof s->in) return s->in_size = 0;
    }
    uint8_t b = s->in[s->in_at++];
    if (b == 0) {
      if (any) return wrong || left || size == 0 ? 1 : size;
      continue; /* between records */
    }
    any = true;
    int push = b;
    if (left == 0) {
      push = code != 0xff ? 0 : -1;
      code = b;
      left = b;
    }
    --left;
    if (push < 0 || wrong) continue;
    if (size == sizeof s->record)
      wrong = true;
    else
      s->record[size++] = (uint8_t)push;
  }
}

/* ---- Sessions. */

/* Whether the record asks for a session; then s->client is whose. */
static bool IsStart(BatonMicroSerial* s, size_t size) {
  if (size != 1 + 17 + 4 || s->record[0] != 'S' || !Fits(s, false, 0, size)) return false;
  memcpy(s->client, s->record + 1, 17);
  return s->started = true;
}

static size_t Read(void* self, void* to, size_t most) {
  BatonMicroSerial* s = self;
  while (s->session && s->at == s->size) {
    size_t size = NextRecord(s);
    s->session = size != 0 && !IsStart(s, size) && s->record[0] == 'D' && Fits(s, s->key != NULL, s->received, size);
    ++s->received;
    s->at = 1;
    s->size = s->session ? size - (s->key ? kBatonSerialCheck : 4) : 1;
  }
  if (!s->session) return 0;
  size_t n = s->size - s->at < most ? s->size - s->at : most;
  memcpy(to, s->record + s->at, n);
  s->at += n;
  return n;
}

static int Write(void* self, const void* from, size_t size) {
  BatonMicroSerial* s = self;
  const uint8_t* at = from;
  while (size && s->session) {
    size_t n = size < kMost ? size : kMost;
    if (!SendRecord(s, s->key != NULL, 'D', at, n)) s->session = false;
    at += n;
    size -= n;
  }
  return s->session ? 0 : 1;
}

bool BatonMicroSerialAccept(BatonMicroSerial* s, BatonMicroWire* wire) {
  static const char kOther[] = "the server has a key, the client none, or the other way";
  static const char kWord[] = "session";
  for (;;) {
    while (!s->started) {
      size_t size = NextRecord(s);
      if (size == 0) return false;
      IsStart(s, size);
    }
    s->started = s->session = false;
    s->sent = 0;
    if ((s->client[0] & 1) == (s->key != NULL)) break;
    SendRecord(s, false, 'R', (const uint8_t*)kOther, sizeof kOther - 1);
  }
  uint8_t nonces[32] = {0};
  memcpy(nonces, s->client + 1, 16);
  if (s->key) {
    Sha sha;
    s->random(nonces + 16, 16);
    HmacPad(&sha, s->key, 0x36);
    ShaAdd(&sha, kWord, sizeof kWord - 1);
    ShaAdd(&sha, nonces, 32);
    HmacEnd(&sha, s->key, s->session_key);
  }
  s->session = SendRecord(s, s->key != NULL, 'A', nonces, 32);
  s->received = 1;
  s->at = s->size = 1;
  *wire = (BatonMicroWire){s, Read, Write};
  return true;
}
