/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are not the session's: their contents, their attributes, and what can be learned of them. `text` is a path
 * outside of the session's folder, `more` one inside. */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif

static int64_t Reads(int fd) {
  char byte;
  if (fd < 0) return errno;
  const ssize_t n = read(fd, &byte, 1);
  const int64_t error = n < 0 ? errno : 0;
  close(fd);
  return error;
}

static int64_t Opens(int fd) { return fd < 0 ? errno : (close(fd), 0); }

static int64_t Read(const struct Given* g) { return Reads(open(g->text, O_RDONLY)); }
static int64_t Write(const struct Given* g) { return Opens(open(g->text, O_WRONLY | O_CREAT, 0600)); }
static int64_t Append(const struct Given* g) { return Opens(open(g->text, O_WRONLY | O_APPEND)); }
static int64_t OpenTruncating(const struct Given* g) { return Opens(open(g->text, O_RDWR | O_TRUNC)); }
static int64_t OpenCreat(const struct Given* g) { return Refusal(Raw(SYS_openat, AT_FDCWD, (long)g->text, O_CREAT | O_WRONLY | O_TRUNC, 0600, 0, 0)); }
/* A handle without rights, of which /proc/self/fd makes another one with rights. */
static int64_t ReadByPathHandle(const struct Given* g) {
  char path[64];
  const int fd = open(g->text, O_PATH);
  if (fd < 0) return errno;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int64_t error = Reads(open(path, O_RDONLY));
  close(fd);
  return error;
}
static int64_t StatByPathHandle(const struct Given* g) {
  struct stat info;
  const int fd = open(g->text, O_PATH);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(fstat(fd, &info));
  close(fd);
  return error;
}
static int64_t ReadByOpenat2(const struct Given* g) {
  struct open_how how = {O_RDONLY, 0, 0};
  const long fd = Raw(SYS_openat2, AT_FDCWD, (long)g->text, (long)&how, sizeof how, 0, 0);
  return fd < 0 ? -fd : Reads((int)fd);
}
static int64_t ReadFrom(const char* head, const char* tail) {
  char path[4200];
  snprintf(path, sizeof path, "%s%s", head, tail);
  return Reads(open(path, O_RDONLY));
}
static int64_t ReadByRoot(const struct Given* g) { return ReadFrom("/proc/self/root", g->text); }
static int64_t ReadByRootOf(const struct Given* g) {
  char head[64];
  snprintf(head, sizeof head, "/proc/%lld/root", (long long)g->number);
  return ReadFrom(head, g->text);
}
static int64_t ReadByThread(const struct Given* g) { return ReadFrom("/proc/thread-self/root", g->text); }
static int64_t ReadByDevFd(const struct Given* g) {
  const int fd = open("/", O_RDONLY | O_DIRECTORY);
  char head[64];
  if (fd < 0) return errno;
  snprintf(head, sizeof head, "/dev/fd/%d", fd);
  const int64_t error = ReadFrom(head, g->text);
  close(fd);
  return error;
}
static int64_t ReadByUpwards(const struct Given* g) {
  char path[4200] = "";
  for (int i = 0; i < 40; ++i) strcat(path, "../");
  strncat(path, g->text + 1, 2000);
  return Reads(open(path, O_RDONLY));
}
static int64_t ReadByWorkingFolder(const struct Given* g) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", g->text);
  char* name = strrchr(folder, '/');
  *name++ = 0;
  if (chdir(folder)) return errno;
  return Reads(open(name, O_RDONLY));
}
/* Any process may be asked for what it has open. */
static int64_t ReadDescriptorsOf(const struct Given* g) {
  char path[64];
  int64_t last = ENOENT;
  for (int fd = 0; fd < 64; ++fd) {
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)g->number, fd);
    const int got = open(path, O_RDONLY | O_NONBLOCK);
    if (got >= 0) return close(got), 0;
    if (errno != ENOENT && errno != ENXIO) last = errno;
  }
  return last;
}
static int64_t ListMapFiles(const struct Given* g) {
  (void)g;
  char path[4096];
  DIR* all = opendir("/proc/self/map_files");
  if (!all) return errno;
  int64_t last = ENOENT;
  for (struct dirent* e; (e = readdir(all));) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/self/map_files/%s", e->d_name);
    const int fd = open(path, O_WRONLY);
    if (fd >= 0) {
      close(fd);
      closedir(all);
      return 0;
    }
    last = errno;
  }
  closedir(all);
  return last;
}
static int64_t List(const struct Given* g) {
  DIR* all = opendir(g->text);
  if (!all) return errno;
  const int64_t error = readdir(all) ? 0 : errno;
  closedir(all);
  return error;
}
static int64_t MakeFolder(const struct Given* g) { return FAILURE(mkdir(g->text, 0700)); }
static int64_t RemoveFile(const struct Given* g) { return FAILURE(unlink(g->text)); }
static int64_t RemoveEmptyFolder(const struct Given* g) { return FAILURE(rmdir(g->text)); }
static int64_t LinkOutside(const struct Given* g) { return FAILURE(symlink("/etc/passwd", g->text)); }
static int64_t ReadThroughSymlink(const struct Given* g) {
  unlink(g->more);
  if (symlink(g->text, g->more)) return errno;
  const int64_t error = Reads(open(g->more, O_RDONLY));
  unlink(g->more);
  return error;
}
static int64_t WriteThroughSymlink(const struct Given* g) {
  unlink(g->more);
  if (symlink(g->text, g->more)) return errno;
  const int64_t error = Opens(open(g->more, O_WRONLY));
  unlink(g->more);
  return error;
}
static int64_t HardLinkIn(const struct Given* g) { return FAILURE(link(g->text, g->more)); }
static int64_t HardLinkByHandle(const struct Given* g) {
  const int fd = open(g->text, O_PATH);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(linkat(fd, "", AT_FDCWD, g->more, AT_EMPTY_PATH));
  close(fd);
  return error;
}
static int64_t HardLinkOut(const struct Given* g) {
  const int fd = open(g->more, O_WRONLY | O_CREAT, 0600);
  if (fd < 0) return errno;
  close(fd);
  return FAILURE(link(g->more, g->text));
}
static int64_t RenameIn(const struct Given* g) { return FAILURE(rename(g->text, g->more)); }
static int64_t RenameOut(const struct Given* g) {
  const int fd = open(g->more, O_WRONLY | O_CREAT, 0600);
  if (fd < 0) return errno;
  close(fd);
  return FAILURE(rename(g->more, g->text));
}
static int64_t Exchange(const struct Given* g) {
  const int fd = open(g->more, O_WRONLY | O_CREAT, 0600);
  if (fd < 0) return errno;
  close(fd);
  return RAW(SYS_renameat2, AT_FDCWD, g->text, AT_FDCWD, g->more, 2 /* RENAME_EXCHANGE */);
}
static int64_t MakeFifo(const struct Given* g) { return FAILURE(mknod(g->text, S_IFIFO | 0600, 0)); }
/* The memory of the machine, as a device in the session's own folder. */
static int64_t MakeDevice(const struct Given* g) { return FAILURE(mknod(g->more, S_IFCHR | 0600, makedev(1, 1))); }
static int64_t MakeSocketFile(const struct Given* g) { return FAILURE(mknod(g->text, S_IFSOCK | 0600, 0)); }
static int64_t Truncate(const struct Given* g) { return FAILURE(truncate(g->text, 0)); }
static int64_t Chmod(const struct Given* g) { return FAILURE(chmod(g->text, 0666)); }
static int64_t Fchmodat(const struct Given* g) { return RAW(SYS_fchmodat, AT_FDCWD, g->text, 0666); }
static int64_t Fchmodat2(const struct Given* g) { return RAW(SYS_fchmodat2, AT_FDCWD, g->text, 0666, 0); }
static int64_t FchmodByProc(const struct Given* g) {
  char path[64];
  const int fd = open(g->text, O_PATH);
  if (fd < 0) return errno;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int64_t error = FAILURE(chmod(path, 0666));
  close(fd);
  return error;
}
/* A program of the session's own that runs with the rights of its owner. */
static int64_t MakeSetUid(const struct Given* g) {
  const int fd = open(g->more, O_WRONLY | O_CREAT, 0700);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(fchmod(fd, 04755));
  close(fd);
  unlink(g->more);
  return error;
}
static int64_t Chown(const struct Given* g) { return FAILURE(chown(g->text, 1, 1)); }
static int64_t Lchown(const struct Given* g) { return FAILURE(lchown(g->text, 1, 1)); }
static int64_t Fchownat(const struct Given* g) { return FAILURE(fchownat(AT_FDCWD, g->text, 1, 1, 0)); }
static int64_t Utimensat(const struct Given* g) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  return FAILURE(utimensat(AT_FDCWD, g->text, times, 0));
}
static int64_t SetAttribute(const struct Given* g) { return FAILURE(setxattr(g->text, "user.x", "1", 1, 0)); }
static int64_t LSetAttribute(const struct Given* g) { return FAILURE(lsetxattr(g->text, "user.x", "1", 1, 0)); }
static int64_t GetAttribute(const struct Given* g) {
  char value[16];
  return FAILURE(getxattr(g->text, "user.mark", value, sizeof value));
}
static int64_t ListAttributes(const struct Given* g) {
  char names[256];
  return FAILURE(listxattr(g->text, names, sizeof names));
}
static int64_t RemoveAttribute(const struct Given* g) { return FAILURE(removexattr(g->text, "user.mark")); }
static int64_t Stat(const struct Given* g) {
  struct stat info;
  return FAILURE(stat(g->text, &info));
}
static int64_t Lstat(const struct Given* g) {
  struct stat info;
  return FAILURE(lstat(g->text, &info));
}
static int64_t RawStat(const struct Given* g) {
#ifdef SYS_stat
  struct stat info;
  return RAW(SYS_stat, g->text, &info);
#else
  return Stat(g);
#endif
}
static int64_t Statx(const struct Given* g) {
  char info[256];
  return RAW(SYS_statx, AT_FDCWD, g->text, 0, 0x7ff, info);
}
static int64_t StatFs(const struct Given* g) {
  struct statfs info;
  return FAILURE(statfs(g->text, &info));
}
static int64_t Access(const struct Given* g) { return FAILURE(access(g->text, F_OK)); }
static int64_t Faccessat2(const struct Given* g) { return RAW(SYS_faccessat2, AT_FDCWD, g->text, F_OK, 0); }
static int64_t ReadLink(const struct Given* g) {
  char target[256];
  return FAILURE(readlink(g->text, target, sizeof target));
}
static int64_t ChangeFolder(const struct Given* g) { return FAILURE(chdir(g->text)); }
static int64_t Inotify(const struct Given* g) {
  const int fd = inotify_init1(IN_CLOEXEC);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(inotify_add_watch(fd, g->text, IN_ALL_EVENTS));
  close(fd);
  return error;
}
static int64_t Fanotify(const struct Given* g) {
  (void)g;
  return Opens(fanotify_init(FAN_CLASS_NOTIF, O_RDONLY));
}
static int64_t NameToHandle(const struct Given* g) {
  union {
    struct file_handle handle;
    char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } u;
  int mount;
  u.handle.handle_bytes = MAX_HANDLE_SZ;
  return FAILURE(name_to_handle_at(AT_FDCWD, g->text, &u.handle, &mount, 0));
}
static int64_t OpenByHandle(const struct Given* g) {
  union {
    struct file_handle handle;
    char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } u = {{0}};
  (void)g;
  u.handle.handle_bytes = 8;
  return FAILURE(open_by_handle_at(AT_FDCWD, &u.handle, O_RDONLY));
}
static int64_t ListMounts(const struct Given* g) {
  (void)g;
  const struct {
    uint32_t size, spare;
    uint64_t mount, parameter;
  } request = {24, 0, 0xffffffffffffffffULL, 0};
  uint64_t mounts[16];
  return RAW(SYS_listmount, &request, mounts, 16, 0);
}

const struct Attack kFileAttacks[] = {
    {"read", Read},
    {"write", Write},
    {"append", Append},
    {"open truncating", OpenTruncating},
    {"open creating", OpenCreat},
    {"read by path handle", ReadByPathHandle},
    {"stat by path handle", StatByPathHandle},
    {"read by openat2", ReadByOpenat2},
    {"read by root", ReadByRoot},
    {"read by root of", ReadByRootOf},
    {"read by thread", ReadByThread},
    {"read by dev fd", ReadByDevFd},
    {"read upwards", ReadByUpwards},
    {"read by working folder", ReadByWorkingFolder},
    {"read descriptors of", ReadDescriptorsOf},
    {"map files", ListMapFiles},
    {"list", List},
    {"mkdir", MakeFolder},
    {"unlink", RemoveFile},
    {"rmdir", RemoveEmptyFolder},
    {"symlink outside", LinkOutside},
    {"read through symlink", ReadThroughSymlink},
    {"write through symlink", WriteThroughSymlink},
    {"hard link in", HardLinkIn},
    {"hard link by handle", HardLinkByHandle},
    {"hard link out", HardLinkOut},
    {"rename in", RenameIn},
    {"rename out", RenameOut},
    {"exchange", Exchange},
    {"mkfifo", MakeFifo},
    {"mknod device", MakeDevice},
    {"mknod socket", MakeSocketFile},
    {"truncate", Truncate},
    {"chmod", Chmod},
    {"fchmodat", Fchmodat},
    {"fchmodat2", Fchmodat2},
    {"chmod by proc", FchmodByProc},
    {"make setuid", MakeSetUid},
    {"chown", Chown},
    {"lchown", Lchown},
    {"fchownat", Fchownat},
    {"utimensat", Utimensat},
    {"setxattr", SetAttribute},
    {"lsetxattr", LSetAttribute},
    {"getxattr", GetAttribute},
    {"listxattr", ListAttributes},
    {"removexattr", RemoveAttribute},
    {"stat", Stat},
    {"lstat", Lstat},
    {"raw stat", RawStat},
    {"statx", Statx},
    {"statfs", StatFs},
    {"access", Access},
    {"faccessat2", Faccessat2},
    {"readlink", ReadLink},
    {"chdir", ChangeFolder},
    {"inotify", Inotify},
    {"fanotify", Fanotify},
    {"name to handle", NameToHandle},
    {"open by handle", OpenByHandle},
    {"list mounts", ListMounts},
    {0, 0},
};
