/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A serial line as a wire: `serial:/dev/ttyACM0` at the client. Bytes travel in records that a zero byte ends (COBS),
 * so that a new client is noticed whatever the last one left behind. Each record has a check: with a key 16 bytes of
 * HMAC-SHA-256 over direction, number and content, by a key of the session; without one a CRC-32. A record that does
 * not check ends the session; nothing is sent again.
 */
#ifndef BATON_MICRO_SERIAL_H_
#define BATON_MICRO_SERIAL_H_

#include <stdbool.h>

#include "micro.h"

enum { kBatonSerialRecord = 512, kBatonSerialCheck = 16 };

typedef struct {
  BatonMicroWire line;
  const uint8_t* key; /* 32 bytes (rpc.micro.serial_key); null: whoever holds the cable is the client */
  void (*random)(uint8_t* to, size_t size); /* that nobody can predict; needed with a key */
  /* What follows is the link's own; zeros at first. */
  uint8_t session_key[32], client[17];
  uint64_t sent, received;
  bool started, session;
  uint8_t in[64], record[1 + kBatonSerialRecord + kBatonSerialCheck];
  size_t in_at, in_size, at, size;
} BatonMicroSerial;

/* Waits for a client and gives the wire of its session, for BatonMicroServe. False when the line has ended. */
bool BatonMicroSerialAccept(BatonMicroSerial* s, BatonMicroWire* wire);

#endif /* BATON_MICRO_SERIAL_H_ */
