/* Records every change below one folder, in the order in which it happened: what trace.py reads.
 *
 * Preloaded into coordinator and clients, and linked into the witness's variant for these tests. Each call is carried
 * out and written down under one lock of all processes, so the trace is one true order. RECORD_ROOT is the folder, with
 * no link in its path; RECORD_TRACE the trace. Both are fixed when this is compiled: a witness has no environment.
 * The trace is opened for each record, since the programs close descriptors that they do not know. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOT_SIZE (sizeof RECORD_ROOT - 1)

/* ---- the trace ---- */
static int held = -1; /* the trace, where this process has brought all to a standstill */

static int begin(void) { /* the trace, locked; never -1: a trace with a gap would prove nothing */
    if (held >= 0) return held;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, RECORD_TRACE, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR) continue;
    if (fd < 0) abort();
    return fd;
}

static void finish(int trace) {
    int kept = errno;
    if (trace != held) syscall(SYS_close, trace);
    errno = kept;
}

void recorder_hold(void) { held = begin(); } /* called by recorder.py, in a process with one thread */

void recorder_release(void) {
    int trace = held;
    held = -1;
    finish(trace);
}

static void note(int trace, char op, unsigned long long ino, long long number, const char *path, const char *other,
                 const void *data, size_t size) {
    char head[128];
    int kept = errno, n = snprintf(head, sizeof head, "%c %llu %lld %zu %zu %zu\n", op, ino, number, strlen(path),
                                   strlen(other), size);
    struct iovec parts[] = {{head, (size_t)n}, {(void *)path, strlen(path)}, {(void *)other, strlen(other)}, {(void *)data, size}};
    ssize_t all = n + (ssize_t)(strlen(path) + strlen(other) + size);
    if (syscall(SYS_writev, trace, parts, 4) != all) abort();
    errno = kept;
}

static int is_job; /* a job's own programs inherit the preloading; what they write is not ours */

__attribute__((constructor)) static void look(void) { is_job = getenv("AVER_KEY") != NULL; }

static int is_inside(const char *path) {
    return !is_job && !strncmp(path, RECORD_ROOT, ROOT_SIZE) && (path[ROOT_SIZE] == '/' || !path[ROOT_SIZE]);
}

static int find(int fd, struct stat *info, char *path) { /* a plain file or folder below the root, or the root */
    char link[64];
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n < 0 ? 0 : n] = 0;
    int inside = n > 0 && is_inside(path) && !fstat(fd, info) && (S_ISREG(info->st_mode) || S_ISDIR(info->st_mode));
    errno = kept;
    return inside;
}

static int fd_is_inside(int fd, struct stat *info) {
    char path[PATH_MAX];
    return find(fd, info, path);
}

static int locate(int folder, const char *name, char *to) { /* its path below the root, without links; 0 if outside */
    char whole[PATH_MAX * 2], real[PATH_MAX];
    int kept = errno, inside = 0;
    if (name[0] == '/') snprintf(whole, PATH_MAX, "%s", name);
    else if (folder == AT_FDCWD) snprintf(whole, PATH_MAX, "./%s", name);
    else snprintf(whole, sizeof whole, "/proc/self/fd/%d/%s", folder, name);
    char *slash = strrchr(whole, '/');
    *slash = 0;
    if (realpath(*whole ? whole : "/", real) && is_inside(real))
        inside = snprintf(to, PATH_MAX, "%s/%s", real, slash + 1) < PATH_MAX;
    errno = kept;
    return inside;
}

/* ---- what changes a file ---- */
static ssize_t write_at(int fd, const void *data, size_t size, off_t at, int positioned) {
    struct stat info;
    if (!fd_is_inside(fd, &info))
        return positioned ? syscall(SYS_pwrite64, fd, data, size, at) : syscall(SYS_write, fd, data, size);
    int trace = begin();
    if (!positioned) {
        fstat(fd, &info);
        at = fcntl(fd, F_GETFL) & O_APPEND ? info.st_size : lseek(fd, 0, SEEK_CUR);
    }
    ssize_t done = positioned ? syscall(SYS_pwrite64, fd, data, size, at) : syscall(SYS_write, fd, data, size);
    if (done > 0) note(trace, 'W', info.st_ino, at, "", "", data, (size_t)done);
    finish(trace);
    return done;
}

ssize_t write(int fd, const void *data, size_t size) { return write_at(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return write_at(fd, data, size, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return write_at(fd, data, size, at, 1); }

ssize_t writev(int fd, const struct iovec *parts, int count) { /* one write for each part: as true, and simpler */
    struct stat info;
    ssize_t all = 0;
    if (!fd_is_inside(fd, &info)) return syscall(SYS_writev, fd, parts, count);
    for (int i = 0; i < count; i++) {
        ssize_t done = write(fd, parts[i].iov_base, parts[i].iov_len);
        if (done < 0) return all ? all : done;
        all += done;
        if ((size_t)done < parts[i].iov_len) break;
    }
    return all;
}

static int resize(int fd, off_t size) {
    struct stat info;
    if (!fd_is_inside(fd, &info)) return (int)syscall(SYS_ftruncate, fd, size);
    int trace = begin(), bad = (int)syscall(SYS_ftruncate, fd, size);
    if (!bad) note(trace, 'T', info.st_ino, size, "", "", "", 0);
    finish(trace);
    return bad;
}

int ftruncate(int fd, off_t size) { return resize(fd, size); }
int ftruncate64(int fd, off64_t size) { return resize(fd, size); }

static int synced(long call, int fd) {
    char path[PATH_MAX];
    struct stat info;
    if (!find(fd, &info, path)) return (int)syscall(call, fd);
    int trace = begin(), bad = (int)syscall(call, fd);
    if (!bad) note(trace, 'F', info.st_ino, 0, S_ISDIR(info.st_mode) ? path : "", "", "", 0);
    finish(trace);
    return bad;
}

int fsync(int fd) { return synced(SYS_fsync, fd); }
int fdatasync(int fd) { return synced(SYS_fdatasync, fd); }

int fchmod(int fd, mode_t mode) {
    struct stat info;
    if (!fd_is_inside(fd, &info)) return (int)syscall(SYS_fchmod, fd, mode);
    int trace = begin(), bad = (int)syscall(SYS_fchmod, fd, mode);
    if (!bad) note(trace, 'P', info.st_ino, mode, "", "", "", 0);
    finish(trace);
    return bad;
}

/* ---- what a trace does not hold: a change that the model would not know of ends the process. sync_file_range
 * promises nothing, and is no change ---- */
static int allocate(int fd, int mode, off_t at, off_t size) {
    struct stat info;
    if (fd_is_inside(fd, &info)) abort();
    return (int)syscall(SYS_fallocate, fd, mode, at, size);
}
int fallocate(int fd, int mode, off_t at, off_t size) { return allocate(fd, mode, at, size); }
int fallocate64(int fd, int mode, off64_t at, off64_t size) { return allocate(fd, mode, at, size); }
int posix_fallocate(int fd, off_t at, off_t size) { return allocate(fd, 0, at, size) ? errno : 0; }
int posix_fallocate64(int fd, off64_t at, off64_t size) { return allocate(fd, 0, at, size) ? errno : 0; }

ssize_t sendfile(int out, int in, off_t *at, size_t size) {
    struct stat info;
    if (fd_is_inside(out, &info)) abort();
    return syscall(SYS_sendfile, out, in, at, size);
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t size) { return sendfile(out, in, at, size); }

/* ---- what changes a folder ---- */
static int open_inside(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat before, after;
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !locate(folder, name, path))
        return (int)syscall(SYS_openat, folder, name, flags, mode);
    int trace = begin(), is_new = fstatat(AT_FDCWD, path, &before, 0);
    int fd = (int)syscall(SYS_openat, folder, name, flags, mode);
    if (fd >= 0 && !fstat(fd, &after) && S_ISREG(after.st_mode)) {
        if (is_new) note(trace, 'C', after.st_ino, after.st_mode & 07777, path, "", "", 0);
        else if (flags & O_TRUNC && before.st_size) note(trace, 'T', after.st_ino, 0, "", "", "", 0);
    }
    finish(trace);
    return fd;
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

int open(const char *name, int flags, ...) { MODE_OF(flags) return open_inside(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE_OF(flags) return open_inside(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE_OF(flags) return open_inside(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE_OF(flags) return open_inside(folder, name, flags, mode); }

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    struct stat info;
    if (!locate(folder, name, path)) return (int)syscall(SYS_mkdirat, folder, name, mode);
    int trace = begin(), bad = (int)syscall(SYS_mkdirat, folder, name, mode);
    if (!bad && !stat(path, &info)) note(trace, 'D', info.st_ino, 0, path, "", "", 0);
    finish(trace);
    return bad;
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    if (!locate(folder, name, path)) return (int)syscall(SYS_unlinkat, folder, name, flags);
    int trace = begin(), bad = (int)syscall(SYS_unlinkat, folder, name, flags);
    if (!bad) note(trace, 'U', 0, 0, path, "", "", 0);
    finish(trace);
    return bad;
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

static int two_names(long call, char op, int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char old[PATH_MAX], new[PATH_MAX];
    int is_from = locate(from_folder, from, old), is_to = locate(to_folder, to, new);
    if (!is_from && !is_to) return (int)syscall(call, from_folder, from, to_folder, to, flags);
    if (!is_from || !is_to) abort(); /* into the folder, or out of it */
    int trace = begin(), bad = (int)syscall(call, from_folder, from, to_folder, to, flags);
    if (!bad) note(trace, op, 0, 0, old, new, "", 0);
    finish(trace);
    return bad;
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return two_names(SYS_renameat2, 'R', from_folder, from, to_folder, to, 0);
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    return two_names(SYS_linkat, 'L', from_folder, from, to_folder, to, flags);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlink(const char *target, const char *name) {
    char path[PATH_MAX];
    if (locate(AT_FDCWD, name, path)) abort();
    return (int)syscall(SYS_symlink, target, name);
}

int bind(int fd, const struct sockaddr *address, socklen_t size) { /* a socket's name in a folder */
    char path[PATH_MAX];
    const struct sockaddr_un *local = (const struct sockaddr_un *)address;
    if (address->sa_family != AF_UNIX || size <= offsetof(struct sockaddr_un, sun_path) || !local->sun_path[0] ||
        !locate(AT_FDCWD, local->sun_path, path))
        return (int)syscall(SYS_bind, fd, address, size);
    int trace = begin(), bad = (int)syscall(SYS_bind, fd, address, size);
    struct stat info;
    if (!bad && !stat(path, &info)) note(trace, 'S', info.st_ino, 0, path, "", "", 0);
    finish(trace);
    return bad;
}
