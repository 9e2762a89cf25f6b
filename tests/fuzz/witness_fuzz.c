/* The frames of a witness under libFuzzer: whatever a coordinator sends, no bad access, no hang.
 *
 * No job is started: fork, vfork and exec fail. Nothing is signalled, and no file is made or written but /dev/null:
 * what a frame names is any path of this machine. Each input is a sequence of frames, one for each empty field. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pid_t no_fork(void) { errno = EAGAIN; return -1; }
static int no_kill(pid_t pid, int sig) { (void)pid, (void)sig; errno = ESRCH; return -1; }
static int no_mkdir(const char *path, mode_t mode) { (void)path, (void)mode; errno = EACCES; return -1; }
static int no_rmdir(const char *path) { (void)path; errno = EACCES; return -1; }
static int look_only(const char *path, int flags, ...) {
    if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)) return open("/dev/null", flags & O_ACCMODE);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (flags & O_DIRECTORY));
}

#define fork no_fork
#define vfork no_fork
#define kill no_kill
#define mkdir no_mkdir
#define rmdir no_rmdir
#define open look_only
#define main witness_main
#include "../../src/aver/witness/witness.c"
#undef main
#undef open

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    slot = true;
    clear_order();
    if (geteuid() == 0 && (setgid(65534) || setuid(65534))) abort();
    return 0;
}

static void forget_job(void) { /* as after its end */
    if (job.cgroup >= 0 && job.cgroup != home.folder) close(job.cgroup);
    if (job.procs >= 0) close(job.procs);
    if (home.folder >= 0) close(home.folder);
    if (home.events >= 0) close(home.events);
    if (home.path != nowhere) free(home.path);
    memset(&home, 0, sizeof home);
    home.folder = home.events = -1;
    home.path = nowhere;
    free(others);
    others = NULL;
    clear_order();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t begin = 0;
    for (size_t i = 0; i < size; i++) {
        bool ends = i + 1 == size || (!data[i] && !data[i + 1]);
        if (!ends) continue;
        size_t n = i + 1 - begin;
        char *frame = need(malloc(n + 1)); /* of its own, so that a read behind it is seen */
        memcpy(frame, data + begin, n);
        frame[n] = 0;
        if (n && job.phase == SWEEP) job.phase = RUN; /* as if it had been started, for the verbs of a running job */
        take_frame(frame, n);
        free(frame);
        begin = i + 2 > size ? size : i + 2;
        i = begin ? begin - 1 : 0;
    }
    make_record(true);
    forget_job();
    return 0;
}
