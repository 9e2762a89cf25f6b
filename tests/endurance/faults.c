/* A disk, a clock and a process table that misbehave: preloaded into clients and coordinator of a campaign.
 *
 * What goes wrong, and how often, stands in a file that is mapped (AVER_FAULTS), so that it changes while they run.
 * Only files below AVER_FAULT_ROOT are affected. Without the two variables nothing is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile struct { int32_t eio, enospc, spawn, slow_us; int64_t offset_s; } *faults, none; /* per mille */
static const char *root;

static void load(void) {
    static int is_done;
    if (is_done) return;
    is_done = 1;
    const char *path = getenv("AVER_FAULTS");
    root = getenv("AVER_FAULT_ROOT");
    faults = &none;
    int fd = path && root ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) faults = map;
    syscall(SYS_close, fd);
}

static int happens(int32_t per_mille) {
    static __thread uint64_t state;
    struct timespec t;
    if (!per_mille) return 0;
    if (!state) {
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
        state = (uint64_t)t.tv_nsec * 2654435761u ^ (uint64_t)getpid() << 32 ^ 88172645463325252ull;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int32_t)(state % 1000) < per_mille;
}

static int fails(int fd) { /* whether this call on the file does; it may take its time, too */
    char link[64], path[4096];
    load();
    if (faults == &none || !(faults->eio | faults->enospc | faults->slow_us)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || strncmp(path, root, strlen(root))) return 0;
    if (faults->slow_us && happens(200)) usleep((useconds_t)faults->slow_us);
    if (happens(faults->eio)) errno = EIO;
    else if (happens(faults->enospc)) errno = ENOSPC;
    else return 0;
    return 1;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    return fails(fd) ? -1 : real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    return fails(fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    return fails(fd) ? -1 : real(fd, data, size, at);
}

int fsync(int fd) {
    REAL(fsync);
    return fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return fails(fd) ? -1 : real(fd);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                char *const argv[], char *const env[]) {
    REAL(posix_spawn);
    load();
    return happens(faults->spawn) ? EAGAIN : real(pid, path, actions, how, argv, env);
}

int clock_gettime(clockid_t clock, struct timespec *to) {
    load();
    int done = (int)syscall(SYS_clock_gettime, clock, to);
    if (!done && clock == CLOCK_REALTIME) to->tv_sec += faults->offset_s;
    return done;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    to->tv_sec = t.tv_sec;
    to->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (to) *to = t.tv_sec;
    return t.tv_sec;
}
