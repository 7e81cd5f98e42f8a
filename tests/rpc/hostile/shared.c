/* SPDX-License-Identifier: Apache-2.0 */
/* What processes share: System V's memory, semaphores and queues (`number` is one of the test's), POSIX's by name. */
#include "attack.h"

#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

static int64_t MakeMemory(const struct Given* g) {
  (void)g;
  const int id = shmget(IPC_PRIVATE, 4096, 0600);
  return id < 0 ? errno : (shmctl(id, IPC_RMID, 0), 0);
}
static int64_t FindMemory(const struct Given* g) { return FAILURE(shmget((key_t)g->other, 0, 0)); }
static int64_t AttachMemory(const struct Given* g) {
  void* at = shmat((int)g->number, 0, 0);
  return at == (void*)-1 ? errno : (shmdt(at), 0);
}
static int64_t StatMemory(const struct Given* g) {
  struct shmid_ds info;
  return FAILURE(shmctl((int)g->number, IPC_STAT, &info));
}
static int64_t ListMemory(const struct Given* g) {
  struct shminfo info;
  (void)g;
  return FAILURE(shmctl(0, IPC_INFO, (struct shmid_ds*)(void*)&info));
}
static int64_t RemoveMemory(const struct Given* g) { return FAILURE(shmctl((int)g->number, IPC_RMID, 0)); }
static int64_t MakeSemaphores(const struct Given* g) {
  (void)g;
  const int id = semget(IPC_PRIVATE, 1, 0600);
  return id < 0 ? errno : (semctl(id, 0, IPC_RMID), 0);
}
static int64_t UseSemaphores(const struct Given* g) {
  struct sembuf one = {0, 1, 0};
  return FAILURE(semop((int)g->number, &one, 1));
}
static int64_t RemoveSemaphores(const struct Given* g) { return FAILURE(semctl((int)g->number, 0, IPC_RMID)); }
static int64_t MakeQueue(const struct Given* g) {
  (void)g;
  const int id = msgget(IPC_PRIVATE, 0600);
  return id < 0 ? errno : (msgctl(id, IPC_RMID, 0), 0);
}
static int64_t SendToQueue(const struct Given* g) {
  const struct {
    long type;
    char text[8];
  } message = {1, "x"};
  return FAILURE(msgsnd((int)g->number, &message, 1, IPC_NOWAIT));
}
static int64_t TakeFromQueue(const struct Given* g) {
  struct {
    long type;
    char text[64];
  } message;
  return FAILURE(msgrcv((int)g->number, &message, 64, 0, IPC_NOWAIT));
}
static int64_t RemoveQueue(const struct Given* g) { return FAILURE(msgctl((int)g->number, IPC_RMID, 0)); }

static int64_t OpenShared(const struct Given* g) {
  const int fd = shm_open(g->text, O_RDWR, 0600);
  return fd < 0 ? errno : (close(fd), 0);
}
static int64_t MakeShared(const struct Given* g) {
  const int fd = shm_open(g->text, O_RDWR | O_CREAT, 0600);
  if (fd < 0) return errno;
  close(fd);
  shm_unlink(g->text);
  return 0;
}
static int64_t RemoveShared(const struct Given* g) { return FAILURE(shm_unlink(g->text)); }
static int64_t OpenSemaphore(const struct Given* g) {
  sem_t* made = sem_open(g->text, O_CREAT, 0600, 1);
  if (made == SEM_FAILED) return errno;
  sem_close(made);
  sem_unlink(g->text);
  return 0;
}
static int64_t MakeMessages(const struct Given* g) {
  const long fd = Raw(SYS_mq_open, (long)g->text + 1, O_CREAT | O_RDWR, 0600, 0, 0, 0);
  if (fd < 0) return -fd;
  close((int)fd);
  Raw(SYS_mq_unlink, (long)g->text + 1, 0, 0, 0, 0, 0);
  return 0;
}
static int64_t OpenMessages(const struct Given* g) {
  const long fd = Raw(SYS_mq_open, (long)g->text + 1, O_RDWR | O_NONBLOCK, 0, 0, 0, 0);
  return fd < 0 ? -fd : (close((int)fd), 0);
}
static int64_t RemoveMessages(const struct Given* g) { return RAW(SYS_mq_unlink, g->text + 1); }
static int64_t SecretMemory(const struct Given* g) {
  (void)g;
  const long fd = Raw(447, 0, 0, 0, 0, 0, 0);
  return fd < 0 ? -fd : (close((int)fd), 0);
}

const struct Attack kSharedAttacks[] = {
    {"shmget", MakeMemory},
    {"shmget of key", FindMemory},
    {"shmat", AttachMemory},
    {"shm stat", StatMemory},
    {"shm info", ListMemory},
    {"shm remove", RemoveMemory},
    {"semget", MakeSemaphores},
    {"semop", UseSemaphores},
    {"sem remove", RemoveSemaphores},
    {"msgget", MakeQueue},
    {"msgsnd", SendToQueue},
    {"msgrcv", TakeFromQueue},
    {"msg remove", RemoveQueue},
    {"shm_open", OpenShared},
    {"shm_open new", MakeShared},
    {"shm_unlink", RemoveShared},
    {"sem_open", OpenSemaphore},
    {"mq_open new", MakeMessages},
    {"mq_open", OpenMessages},
    {"mq_unlink", RemoveMessages},
    {"memfd_secret", SecretMemory},
    {0, 0},
};
