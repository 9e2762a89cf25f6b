/* aver-witness: the parent of the work. It waits for it, enforces its limits and writes its exit record.
 *
 * It is not a judge: it says what it saw and what it did. The contract is docs/design/witness.md.
 * What always holds: one thread; no call that waits for the coordinator; every signal is blocked and read
 * from a signalfd, and no handler exists, so a child that is not yet exec'ed can't run one of ours; between vfork
 * and exec the child writes to `failure` and to nothing else that the parent reads. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LISTENER = 3, JOURNAL = 4, KEY_MAX = 128, ACTS = 64, GOTS = 32, LIMITS = 32, FRAME_MAX = 8 << 20, LINE_MAX_ = 32768 };
#define MS 1000LL
#define SECOND 1000000LL
#define NEVER INT64_MAX
#define FIRST_SAMPLE (20 * MS)
#define SWEEP_MAX (10 * SECOND)
#define LONELY_MAX (60 * SECOND)

typedef int64_t usec; /* CLOCK_MONOTONIC, microseconds */
typedef unsigned long long bytes;
enum phase { IDLE, RUN, SWEEP, RECORD };

static struct { /* the order: pointers into the frame, or into argv; valid until the exec */
    char **argv, **env;
    const char *dir, *in, *out, *err;
    bool append, streams; /* streams: the descriptors that came with the order */
    int umask, limits;
    struct { int resource; struct rlimit value; } limit[LIMITS];
} order;

static struct {
    enum phase phase;
    char key[KEY_MAX + 1];
    pid_t pid;
    int raw, left, acts, gots, got[GOTS], warn_signal;
    char warn_scope;
    struct { const char *what; usec at; int sig; } act[ACTS];
    double wall;
    usec start, end, suspended, stopped_at; /* stopped_at: 0 unless suspended */
    usec limit, warn_lead, kill_wait, kill_at, sweep_until, retry_at, sample_at, interval, sampled_at;
    struct timeval user, sys;
    bytes maxrss, mem_limit, peak, last, oom, oom_base, hostoom, hostoom_base;
    int mem_version, cgroup, procs; /* 0: no cgroup; folder of the cgroup; its cgroup.procs, open until the exec */
    char cgroup_path[4096];
    const char *mem;
    bool warned, ending, killed, sampled, hostoom_known, stuck;
    char args[4096]; /* the end of the arguments as they were given, to see an exec */
    size_t args_len;
    int tries;
} job = {.cgroup = -1, .procs = -1};

static volatile struct { const char *op, *path; int err, join; } failure;
static bool slot;
static int conn = -1, signals = -1;
static int streams[3], streams_n; /* descriptors that came over the connection and no run order has taken yet */
static off_t journal_size = -1; /* -1: no journal */
static bool journal_torn, served;
static usec began;
static char boot[64], scratch[16384], line[LINE_MAX_], record[LINE_MAX_], out[65536];
static size_t line_len, record_len, out_len, in_len, in_size;
static char *in;
static uint64_t in_skip;
static bytes host_oom_seen;

/* ---- clocks, files, numbers ---- */
static usec now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec / 1000;
}

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *need(void *memory) {
    if (!memory) _exit(70);
    return memory;
}

static ssize_t slurp(int folder, const char *name, char *to, size_t size) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    ssize_t n = 0;
    if (fd < 0) return -1;
    while (have < size - 1 && (n = read(fd, to + have, size - 1 - have)) > 0) have += (size_t)n;
    close(fd);
    to[have] = 0;
    return n < 0 && !have ? -1 : (ssize_t)have;
}

static bool spit(int folder, const char *name, bytes value) {
    char text[32];
    int fd = openat(folder, name, O_WRONLY | O_CLOEXEC), n = snprintf(text, sizeof text, "%llu", value);
    bool good = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0) close(fd);
    return good;
}

static const char *field(const char *text, const char *name) { /* the value after NAME at the start of a line, or NULL */
    size_t n = strlen(name);
    for (const char *p = text; p; p = (p = strchr(p, '\n')) ? p + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ' ' || p[n] == ':')) return p + n + 1;
    return NULL;
}

static bytes number_in(const char *text, const char *name) {
    const char *p = field(text, name);
    return p ? strtoull(p, NULL, 10) : 0;
}

static bytes number_of(int folder, const char *file, const char *name) {
    return slurp(folder, file, scratch, sizeof scratch) < 0 ? 0 : number_in(scratch, name);
}

static bool parse(const char *text, int64_t low, int64_t high, int64_t *to) {
    char *end;
    errno = 0;
    *to = strtoll(text, &end, 10);
    return *text && !*end && !errno && *to >= low && *to <= high;
}

/* ---- lines ---- */
__attribute__((format(printf, 3, 4))) static size_t put(char *to, size_t at, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(to + at, LINE_MAX_ - at, format, list);
    va_end(list);
    return n < 0 ? at : at + (size_t)n < LINE_MAX_ - 1 ? at + (size_t)n : LINE_MAX_ - 1;
}

static size_t put_text(char *to, size_t at, const char *text) { /* a JSON string; at most 4096 bytes of it */
    at = put(to, at, "\"");
    for (int i = 0; text[i] && i < 4096; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 32 || c > 126 || c == '"' || c == '\\') at = put(to, at, "\\u%04x", c);
        else to[at++] = (char)c, to[at] = 0;
    }
    return put(to, at, "\"");
}

static uint32_t crc32(const char *p, size_t n) {
    static uint32_t table[16];
    uint32_t c = 0xffffffff;
    if (!table[1])
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t v = i;
            for (int k = 0; k < 4; k++) v = v & 1 ? v >> 1 ^ 0xedb88320 : v >> 1;
            table[i] = v;
        }
    while (n--) {
        c ^= (unsigned char)*p++;
        c = c >> 4 ^ table[c & 15];
        c = c >> 4 ^ table[c & 15];
    }
    return ~c;
}

static size_t seal(char *to, size_t end) { /* JSON is at 18..end */
    char head[19];
    snprintf(head, sizeof head, "%08zx %08x ", end - 18, crc32(to + 18, end - 18));
    memcpy(to, head, 18);
    to[end] = '\n';
    return end + 1;
}

static void close_streams(void) {
    while (streams_n) close(streams[--streams_n]);
}

static void disconnect(void) {
    close_streams();
    if (conn >= 0) close(conn);
    conn = -1;
    in_len = out_len = in_skip = 0;
}

static void flush(void) {
    ssize_t n = conn < 0 || !out_len ? 0 : send(conn, out, out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) memmove(out, out + n, out_len -= (size_t)n);
    else if (n < 0 && errno != EAGAIN) disconnect();
}

static void tell(const char *what, size_t n) { /* never waits; who does not read 64 KiB is cut off, the journal has it */
    if (conn < 0) return;
    if (n > sizeof out - out_len) { disconnect(); return; }
    memcpy(out + out_len, what, n);
    out_len += n;
    flush();
}

static bool keep(const char *what, size_t n) { /* one whole line into the journal, or nothing of it */
    if (journal_size < 0) return true;
    if (journal_torn && ftruncate(JOURNAL, journal_size)) return false;
    journal_torn = false;
    ssize_t done = write(JOURNAL, what, n);
    if (done == (ssize_t)n) { journal_size += (off_t)n; return true; }
    if (done >= 0) {
        journal_torn = ftruncate(JOURNAL, journal_size) != 0;
        errno = ENOSPC;
    }
    return false;
}

static void complain(const char *text) {
    line_len = put(line, 18, "{\"ev\":\"error\",\"text\":");
    line_len = put_text(line, line_len, text);
    line_len = seal(line, put(line, line_len, "}"));
    tell(line, line_len);
}

static void hello(void) {
    line_len = put(line, 18, "{\"ev\":\"hello\",\"witness\":%d,\"key\":", getpid());
    if (job.phase == IDLE) line_len = put(line, line_len, "null,\"pid\":null,\"start\":null");
    else {
        line_len = put_text(line, line_len, job.key);
        line_len = put(line, line_len, ",\"pid\":%d,\"start\":%.6f", job.pid, job.wall);
    }
    line_len = seal(line, put(line, line_len, ",\"journal\":%lld}", journal_size < 0 ? 0LL : (long long)journal_size));
    tell(line, line_len);
}

static double seconds(usec t) { return (double)t / 1e6; }
static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static void make_record(bool into_journal) {
    size_t n = put(record, 18, "{\"ev\":\"end\",\"key\":");
    n = put_text(record, n, job.key);
    n = put(record, n, ",\"witness\":%d,\"pid\":%d,\"boot\":\"%s\",\"raw\":", getpid(), job.pid, boot);
    n = failure.op ? put(record, n, "null") : put(record, n, "%d", job.raw);
    n = put(record, n, ",\"start\":%.6f,\"elapsed\":%.6f,\"suspended\":%.6f,\"user\":%.6f,\"sys\":%.6f,\"maxrss\":%llu,\"peak\":", job.wall,
            seconds(job.end - job.start), seconds(job.suspended), seconds_of(job.user), seconds_of(job.sys), job.maxrss);
    n = job.sampled ? put(record, n, "%llu", job.peak) : put(record, n, "null");
    n = put(record, n, ",\"mem\":\"%s\",\"limit\":", job.mem);
    n = job.mem_limit ? put(record, n, "%llu", job.mem_limit) : put(record, n, "null");
    n = put(record, n, ",\"oom\":%llu,\"hostoom\":%llu,\"acts\":[", job.oom, job.hostoom);
    for (int i = 0; i < job.acts; i++)
        n = put(record, n, "%s{\"act\":\"%s\",\"at\":%.6f,\"sig\":%d}", i ? "," : "", job.act[i].what, seconds(job.act[i].at), job.act[i].sig);
    n = put(record, n, "],\"got\":[");
    for (int i = 0; i < job.gots; i++) n = put(record, n, "%s%d", i ? "," : "", job.got[i]);
    n = put(record, n, "],\"left\":%d,\"launch\":", job.left);
    if (failure.op) {
        n = put(record, n, "{\"op\":\"%s\",\"errno\":%d,\"path\":", failure.op, failure.err);
        n = put(record, put_text(record, n, failure.path), "}");
    } else n = put(record, n, "null");
    long long size = journal_size < 0 ? 0 : (long long)journal_size, last = -1;
    while (into_journal && journal_size >= 0 && size != last) { /* the size counts its own digits */
        last = size;
        size = (long long)journal_size + (long long)n + snprintf(NULL, 0, ",\"size\":%lld}\n", last);
    }
    record_len = seal(record, put(record, n, ",\"size\":%lld}", size));
}

/* ---- the job's processes ---- */
static pid_t *pids;
static size_t pids_n, pids_size;

static void add_pid(long pid) {
    if (pid <= 1 || pid == getpid()) return;
    if (pids_n == pids_size) pids = need(realloc(pids, (pids_size = pids_size ? pids_size * 2 : 64) * sizeof *pids));
    pids[pids_n++] = (pid_t)pid;
}

static bool add_all_in(int folder, const char *file) { /* numbers between spaces or line ends */
    int fd = openat(folder, file, O_RDONLY | O_CLOEXEC);
    char text[4096];
    long value = 0;
    ssize_t n;
    if (fd < 0) return false;
    while ((n = read(fd, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (text[i] >= '0' && text[i] <= '9') value = value * 10 + text[i] - '0';
            else add_pid(value), value = 0;
    add_pid(value);
    close(fd);
    return true;
}

static void add_children(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks) return;
    for (struct dirent *e; (e = readdir(tasks));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.20s/children", e->d_name);
        add_all_in(dirfd(tasks), path);
    }
    closedir(tasks);
}

static void add_by_parent(void) { /* kernels without .../children: descendants by the parent in /proc/PID/stat */
    struct { pid_t pid, parent; } *all = NULL;
    size_t n = 0, size = 0;
    char path[64], text[512], *p;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && (e = readdir(proc));) {
        snprintf(path, sizeof path, "/proc/%.20s/stat", e->d_name);
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || slurp(AT_FDCWD, path, text, sizeof text) < 0 || !(p = strrchr(text, ')'))) continue;
        if (n == size) all = need(realloc(all, (size = size ? size * 2 : 256) * sizeof *all));
        all[n].pid = atoi(e->d_name);
        all[n++].parent = strlen(p) > 4 ? atoi(p + 4) : 0;
    }
    if (proc) closedir(proc);
    for (size_t at = 0; at <= pids_n; at++)
        for (size_t i = 0; i < n; i++)
            if (all[i].parent == (at ? pids[at - 1] : getpid())) add_pid(all[i].pid);
    free(all);
}

static int by_number(const void *a, const void *b) { return *(const pid_t *)a - *(const pid_t *)b; }

static void list_job(void) { /* all descendants, and all in the cgroup, each once */
    static int has_children = -1;
    if (has_children < 0) has_children = access("/proc/thread-self/children", R_OK) == 0;
#ifdef AVER_NO_CHILDREN
    has_children = 0;
#endif
    pids_n = 0;
    if (has_children) {
        add_children(getpid());
        for (size_t i = 0; i < pids_n; i++) add_children(pids[i]);
    } else add_by_parent();
    if (job.cgroup >= 0) add_all_in(job.cgroup, "cgroup.procs");
    if (pids_n < 2) return;
    qsort(pids, pids_n, sizeof *pids, by_number);
    size_t n = 1;
    for (size_t i = 1; i < pids_n; i++)
        if (pids[i] != pids[n - 1]) pids[n++] = pids[i];
    pids_n = n;
}

static void signal_all(int sig) {
    for (int pass = 0; pass < (sig == SIGSTOP ? 2 : 1); pass++) { /* stopped parents fork no more: the second pass gets the rest */
        list_job();
        for (size_t i = 0; i < pids_n; i++) kill(pids[i], sig);
    }
}

static void kill_all(void) { /* a group's kill is atomic against its forks; groups outside our session are the job's own */
    pid_t session = getsid(0), group;
    if (job.mem_version == 2 && job.cgroup >= 0) spit(job.cgroup, "cgroup.kill", 1);
    list_job();
    for (size_t i = 0; i < pids_n; i++) {
        pid_t its = getsid(pids[i]);
        if (its > 0 && its != session && (group = getpgid(pids[i])) > 1) kill(-group, SIGKILL);
        kill(pids[i], SIGKILL);
    }
}

static void note(const char *what, int sig) {
    if (job.acts < ACTS) job.act[job.acts].what = what, job.act[job.acts].sig = sig, job.act[job.acts++].at = now() - job.start;
}

static void keep_args(void) { /* with their NULs, as in /proc/PID/cmdline */
    int n = 0;
    while (order.argv[n]) n++;
    for (job.args_len = 0; n-- > 0;) {
        size_t size = strlen(order.argv[n]) + 1, room = sizeof job.args - job.args_len, take = size < room ? size : room;
        memcpy(job.args + room - take, order.argv[n] + size - take, take);
        job.args_len += take;
    }
}

static bool is_as_started(void) { /* a script's command line ends with its own path and arguments, whoever interprets it */
    char path[64], end[2 * sizeof job.args];
    size_t have = 0;
    ssize_t n;
    snprintf(path, sizeof path, "/proc/%d/cmdline", job.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    while ((n = read(fd, end + have, sizeof job.args)) > 0)
        if ((have += (size_t)n) > sizeof job.args) {
            memmove(end, end + have - sizeof job.args, sizeof job.args);
            have = sizeof job.args;
        }
    close(fd);
    return !have || (have >= job.args_len && !memcmp(end + have - job.args_len, job.args + sizeof job.args - job.args_len, job.args_len));
}

static bool takes_program_signal(int sig) { /* the child: catches it, or has become another program */
    char path[64];
    if (!is_as_started()) return true;
    snprintf(path, sizeof path, "/proc/%d/status", job.pid);
    const char *caught = slurp(AT_FDCWD, path, scratch, sizeof scratch) < 0 ? NULL : field(scratch, "SigCgt");
    return caught && strtoull(caught, NULL, 16) >> (sig - 1) & 1;
}

static void signal_scope(int sig, char scope) {
    if (scope == 'a' && sig == SIGKILL) kill_all();
    else if (scope == 'a') signal_all(sig);
    else if (scope == 'b') { if (job.phase == RUN) kill(job.pid, sig); }
    else {
        list_job();
        bool child = job.phase == RUN && takes_program_signal(sig);
        for (size_t i = 0; i < pids_n; i++)
            if (pids[i] != job.pid || child) kill(pids[i], sig);
    }
}

static void resume(void) {
    if (!job.stopped_at) return;
    job.suspended += now() - job.stopped_at;
    job.stopped_at = 0;
}

static void end_job(const char *why) { /* time or cancel: TERM, then KILL after the kill wait */
    if (job.ending || job.phase != RUN) return;
    note(why, SIGTERM);
    job.ending = true;
    job.kill_at = now() + job.kill_wait;
    signal_all(SIGTERM);
    signal_all(SIGCONT);
    resume();
}

/* ---- memory ---- */
static void open_cgroup(const char *folder) { /* on any failure job.cgroup stays -1, and memory is sampled */
    bool v1 = job.mem_version == 1, fresh, good;
    if (snprintf(job.cgroup_path, sizeof job.cgroup_path, "%s/%s", folder, job.key) >= (int)sizeof job.cgroup_path) return;
    fresh = mkdir(job.cgroup_path, 0755) == 0;
    if (!fresh && errno != EEXIST) return;
    job.cgroup = open(job.cgroup_path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    good = job.cgroup >= 0;
    if (good && job.mem_limit) {
        good = spit(job.cgroup, v1 ? "memory.limit_in_bytes" : "memory.max", job.mem_limit);
        spit(job.cgroup, v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max", v1 ? job.mem_limit : 0);
    }
    if (good) good = faccessat(job.cgroup, "memory.stat", R_OK, 0) == 0;
    if (good) good = (job.procs = openat(job.cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC)) >= 0;
    if (good && !fresh) job.oom_base = number_of(job.cgroup, v1 ? "memory.oom_control" : "memory.events", "oom_kill");
    if (good) { job.mem = v1 ? "cgroup1" : "cgroup2"; return; }
    if (job.cgroup >= 0) close(job.cgroup);
    job.cgroup = -1;
    rmdir(job.cgroup_path);
}

static void drop_cgroup(void) {
    if (job.cgroup >= 0) close(job.cgroup);
    job.cgroup = -1;
    rmdir(job.cgroup_path);
}

static bytes sum_processes(bool shares) { /* anonymous and shared memory; with shares: each page divided among its users */
    bytes sum = 0;
    char path[64];
    for (size_t i = 0; i < pids_n; i++) {
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pids[i]);
        if (shares && slurp(AT_FDCWD, path, scratch, sizeof scratch) > 0 && field(scratch, "Pss_Anon")) {
            sum += number_in(scratch, "Pss_Anon") + number_in(scratch, "Pss_Shmem");
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/status", pids[i]);
        if (slurp(AT_FDCWD, path, scratch, sizeof scratch) > 0) sum += number_in(scratch, "RssAnon") + number_in(scratch, "RssShmem");
    }
    return sum * 1024;
}

static void sample(void) {
    usec began_at = now(), longest = job.mem_limit ? 2 * SECOND : 5 * SECOND, since = began_at - job.sampled_at, eta;
    bytes used = 0;
    if (!job.hostoom_known) job.hostoom_base = host_oom_seen = number_of(AT_FDCWD, "/proc/vmstat", "oom_kill"), job.hostoom_known = true;
    if (job.cgroup >= 0) {
        bool v1 = job.mem_version == 1;
        if (slurp(job.cgroup, "memory.stat", scratch, sizeof scratch) > 0)
            used = number_in(scratch, v1 ? "total_rss" : "anon") + number_in(scratch, v1 ? "total_shmem" : "shmem");
    } else {
        list_job();
        used = sum_processes(false);
        if (pids_n > 1 && used > job.peak) used = sum_processes(true);
        if (job.mem_limit && used > job.mem_limit && !job.killed) {
            note("memory", SIGKILL);
            job.killed = job.ending = true;
            job.kill_at = began_at + 100 * MS;
            kill_all();
            resume();
        }
    }
    bytes change = used > job.last ? used - job.last : job.last - used;
    job.interval = change > job.last / 8 ? job.interval / 2 : job.interval * 2;
    if (job.interval > longest) job.interval = longest;
    if (job.interval < FIRST_SAMPLE) job.interval = FIRST_SAMPLE;
    if (job.cgroup < 0 && job.mem_limit > used && used > job.last && job.sampled) { /* be there before it meets its limit */
        eta = (usec)((double)(job.mem_limit - used) / (double)(used - job.last) * (double)since / 2);
        if (eta < job.interval) job.interval = eta > 10 * MS ? eta : 10 * MS;
    }
    if (used > job.peak) job.peak = used;
    job.last = used;
    job.sampled = true;
    job.sampled_at = now();
    eta = (job.sampled_at - began_at) * 20; /* looking costs at most a twentieth */
    job.sample_at = job.sampled_at + (job.interval > eta ? job.interval : eta);
}

/* ---- starting ---- */
static void fail(const char *op, const char *path) {
    failure.err = errno;
    failure.path = path;
    failure.op = op;
}

static void child_fails(const char *op, const char *path) {
    fail(op, path);
    _exit(127);
}

static void child_opens(const char *op, const char *path, int flags, int to) { /* never waits for a FIFO's other end */
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0 || fcntl(fd, F_SETFL, flags & O_APPEND) || dup2(fd, to) < 0) child_fails(op, path);
}

static void child_execs(void) {
    static char path[4096 + 256];
    const char *name = order.argv[0], *list = "/bin:/usr/bin", *next;
    bool refused = false;
    if (strchr(name, '/') || !*name) {
        execve(name, order.argv, order.env);
        child_fails("exec", name);
    }
    for (char **e = order.env; *e; e++)
        if (!strncmp(*e, "PATH=", 5)) list = *e + 5;
    for (; list; list = *next ? next + 1 : NULL) {
        next = strchrnul(list, ':');
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)(next - list), list, next > list ? "/" : "", name) >= (int)sizeof path) continue;
        execve(path, order.argv, order.env);
        if (errno == EACCES) refused = true;
        else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT) child_fails("exec", path);
    }
    errno = refused ? EACCES : ENOENT;
    child_fails("exec", name);
}

static void child_main(void) {
    sigset_t none;
    int files = O_WRONLY | O_CREAT | (order.append ? O_APPEND : O_TRUNC);
    if (slot) setsid();
    if (job.procs >= 0 && write(job.procs, "0", 1) < 0) failure.join = errno;
    if (order.umask >= 0) umask((mode_t)order.umask);
    if (order.dir && chdir(order.dir)) child_fails("chdir", order.dir);
    if (order.streams && streams_n < 3) {
        errno = EBADF;
        child_fails("stdin", "");
    }
    for (int i = 0; i < 3 && order.streams; i++) dup2(streams[i], i);
    if (order.in) child_opens("stdin", order.in, O_RDONLY, 0);
    if (order.out) child_opens("stdout", order.out, files, 1);
    if (order.err && (!order.out || strcmp(order.err, order.out))) child_opens("stderr", order.err, files, 2);
    else if (order.out && (order.err || !order.streams)) dup2(1, 2);
    for (int i = 0; i < order.limits; i++) {
        struct rlimit own, want = order.limit[i].value;
        if (getrlimit((unsigned)order.limit[i].resource, &own)) child_fails("limit", "");
        if (want.rlim_max > own.rlim_max) want.rlim_max = own.rlim_max;
        if (want.rlim_cur > want.rlim_max) want.rlim_cur = want.rlim_max;
        if (setrlimit((unsigned)order.limit[i].resource, &want)) child_fails("limit", "");
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    child_execs();
}

static char **base_env; /* the last environment file, parsed; kept for the next job of the same run */
static size_t base_n;

static bool load_env(const char *path) {
    static struct stat known;
    static char *known_path, *data;
    struct stat st;
    if (stat(path, &st)) return false;
    if (known_path && !strcmp(path, known_path) && st.st_ino == known.st_ino && st.st_dev == known.st_dev && st.st_size == known.st_size &&
        st.st_mtim.tv_sec == known.st_mtim.tv_sec && st.st_mtim.tv_nsec == known.st_mtim.tv_nsec) return true;
    free(known_path);
    known_path = NULL;
    base_n = 0;
    data = need(realloc(data, (size_t)st.st_size + 2));
    ssize_t n = slurp(AT_FDCWD, path, data, (size_t)st.st_size + 1);
    if (n < 0) return false;
    for (char *p = data; p < data + n; p += strlen(p) + 1) base_n++;
    base_env = need(realloc(base_env, (base_n + 1) * sizeof *base_env));
    base_n = 0;
    for (char *p = data; p < data + n; p += strlen(p) + 1) base_env[base_n++] = p;
    known = st;
    known_path = strdup(path);
    return true;
}

static void build_env(char **base, size_t n, char **over, size_t overs) { /* NAME=VALUE replaces, NAME alone removes */
    static char key[KEY_MAX + 16];
    size_t have = 0, i, k;
    snprintf(key, sizeof key, "AVER_KEY=%s", job.key);
    over[overs++] = key;
    order.env = need(realloc(order.env, (n + overs + 1) * sizeof *order.env));
    for (i = 0; i < n + overs; i++) {
        char *it = i < n ? base[i] : over[i - n];
        size_t name = strcspn(it, "=");
        if (i >= n && !it[name]) continue;
        for (k = i < n ? 0 : i - n + 1; k < overs; k++)
            if (!strncmp(over[k], it, name) && (over[k][name] == '=' || !over[k][name])) break;
        if (k == overs) order.env[have++] = it;
    }
    order.env[have] = NULL;
}

static void finish(void);

static void start_job(const char *env_file, char **env, size_t env_n, char **over, size_t overs, const char *cgroup) {
    memset((void *)&failure, 0, sizeof failure);
    job.wall = wall();
    job.start = job.end = now();
    line_len = put(line, 18, "{\"ev\":\"begin\",\"key\":");
    line_len = put_text(line, line_len, job.key);
    line_len = seal(line, put(line, line_len, ",\"at\":%.6f,\"boot\":\"%s\"}", job.wall, boot));
    job.phase = RUN;
    job.mem = job.mem_limit ? "sampled" : "none";
    if (!keep(line, line_len)) {
        fail("journal", "");
        make_record(false);
        tell(record, record_len);
        job.phase = IDLE;
        return;
    }
    if (env_file && !load_env(env_file)) { fail("env", env_file); finish(); return; }
    if (env_file) env = base_env, env_n = base_n;
    build_env(env, env_n, over, overs);
    keep_args();
    if (cgroup) open_cgroup(cgroup);
    job.start = now();
    job.wall = wall();
    pid_t pid = vfork();
    if (pid == 0) child_main();
    job.end = now();
    close_streams();
    if (job.procs >= 0) close(job.procs);
    job.procs = -1;
    if (pid < 0) { fail("fork", ""); finish(); return; }
    job.pid = pid;
    if (failure.op) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
        finish();
        return;
    }
    if (failure.join) drop_cgroup(), job.mem = job.mem_limit ? "sampled" : "none";
    job.interval = FIRST_SAMPLE;
    job.sampled_at = job.start;
    job.sample_at = job.start + FIRST_SAMPLE;
    if (!slot) return;
    line_len = put(line, 18, "{\"ev\":\"start\",\"key\":");
    line_len = put_text(line, line_len, job.key);
    line_len = seal(line, put(line, line_len, ",\"pid\":%d,\"witness\":%d,\"at\":%.6f,\"mem\":\"%s\"}", pid, getpid(), job.wall, job.mem));
    keep(line, line_len); /* who finds us dead sees whose processes to end; without room it does without */
    tell(line, line_len);
}

/* ---- ending ---- */
static void finish(void) { /* nothing of the job is left: close the books; comes again while the cgroup is busy */
    if (job.cgroup >= 0) {
        bool v1 = job.mem_version == 1;
        bytes most = 0;
        job.oom = number_of(job.cgroup, v1 ? "memory.oom_control" : "memory.events", "oom_kill");
        job.oom = job.oom > job.oom_base ? job.oom - job.oom_base : 0;
        if (job.oom && slurp(job.cgroup, v1 ? "memory.max_usage_in_bytes" : "memory.peak", scratch, sizeof scratch) > 0) most = strtoull(scratch, NULL, 10);
        if (job.mem_limit && most > job.mem_limit) most = job.mem_limit;
        if (most > job.peak) job.peak = most, job.sampled = true;
        if (rmdir(job.cgroup_path) && errno == EBUSY && now() < job.sweep_until) { kill_all(); job.retry_at = now() + 5 * MS; return; }
        close(job.cgroup);
        job.cgroup = -1;
    }
    if (job.hostoom_known || (!failure.op && WIFSIGNALED(job.raw) && WTERMSIG(job.raw) == SIGKILL)) {
        bytes count = number_of(AT_FDCWD, "/proc/vmstat", "oom_kill"), base = job.hostoom_known ? job.hostoom_base : host_oom_seen;
        job.hostoom = count > base ? count - base : 0;
        host_oom_seen = count;
    }
    make_record(true);
    job.phase = RECORD;
    job.retry_at = 0;
}

static void save(void) { /* into the journal, then to the coordinator; without room, to the coordinator alone after a while */
    if (job.tries >= 0 && keep(record, record_len)) {
        tell(record, record_len);
        job.phase = IDLE;
    } else if (job.tries >= 0 && (++job.tries <= 10 || conn < 0)) {
        job.retry_at = now() + 100 * MS;
    } else if (job.tries >= 0) {
        make_record(false);
        tell(record, record_len);
        job.tries = -1;
        job.retry_at = NEVER;
    }
    if (job.tries < 0 && conn < 0) { make_record(true); job.tries = 0; job.retry_at = now() + 100 * MS; } /* it did not take it */
    else if (job.tries < 0 && !out_len) job.phase = IDLE;
}

static void reap(void) {
    struct rusage use;
    int raw;
    pid_t pid;
    while ((pid = wait4(-1, &raw, WNOHANG, &use)) > 0) {
        timeradd(&job.user, &use.ru_utime, &job.user);
        timeradd(&job.sys, &use.ru_stime, &job.sys);
        if ((bytes)use.ru_maxrss * 1024 > job.maxrss) job.maxrss = (bytes)use.ru_maxrss * 1024;
        if (pid == job.pid && job.phase == RUN) {
            job.raw = raw;
            job.end = now();
            resume();
            job.phase = SWEEP;
            job.sweep_until = job.end + SWEEP_MAX;
        } else if (job.phase == SWEEP && WIFSIGNALED(raw) && WTERMSIG(raw) == SIGKILL) job.left++;
    }
    if (job.phase != SWEEP) return;
    job.stuck = pid == 0 && now() >= job.sweep_until;
    if (pid < 0 || job.stuck) { finish(); return; }
    kill_all();
    job.retry_at = now() + 2 * MS;
}

static usec time_base(void) { return job.start + job.suspended; }

static usec next_wake(void) {
    usec at = NEVER;
    if (job.phase == IDLE) return served || !slot ? NEVER : began + LONELY_MAX;
    if (job.phase != RUN) return job.retry_at;
    if (job.kill_at) at = job.kill_at;
    if (job.sample_at < at && !job.killed) at = job.sample_at;
    if (job.limit < 0 || job.ending || job.stopped_at) return at;
    if (time_base() + job.limit < at) at = time_base() + job.limit;
    if (job.warn_signal && !job.warned && time_base() + job.limit - job.warn_lead < at) at = time_base() + job.limit - job.warn_lead;
    return at;
}

static void enforce(void) {
    usec t = now();
    if (job.phase == RECORD && t >= job.retry_at) save();
    if (job.phase == SWEEP && t >= job.retry_at) reap();
    if (job.phase != RUN) return;
    if (job.limit >= 0 && !job.ending && !job.stopped_at) {
        if (job.warn_signal && !job.warned && t >= time_base() + job.limit - job.warn_lead) {
            job.warned = true;
            note("warn", job.warn_signal);
            signal_scope(job.warn_signal, job.warn_scope);
        }
        if (t >= time_base() + job.limit) end_job("time");
    }
    if (job.kill_at && t >= job.kill_at) {
        if (!job.killed) note("kill", SIGKILL);
        job.killed = true;
        job.kill_at = t + 100 * MS;
        kill_all();
    }
    if (t >= job.sample_at && !job.killed) sample();
}

/* ---- orders ---- */
static bool set_key(const char *key) { /* it names a cgroup's folder */
    size_t n = strlen(key);
    if (!n || n > KEY_MAX || strchr(key, '/') || key[0] == '.') return false;
    memset(&job, 0, sizeof job);
    memcpy(job.key, key, n);
    job.cgroup = job.procs = -1;
    job.limit = -1;
    job.kill_wait = 30 * SECOND;
    return true;
}

static bool set_warning(const char *text) {
    int sig, used = 0;
    long long lead;
    if (sscanf(text, "%d %lld %c%n", &sig, &lead, &job.warn_scope, &used) != 3 || text[used]) return false;
    job.warn_signal = sig;
    job.warn_lead = lead * MS;
    return sig > 0 && sig <= 64 && lead >= 0 && lead < NEVER / MS / 4 && strchr("apb", job.warn_scope);
}

static const char *set_cgroup(const char *text) { /* "1 FOLDER": the folder, or NULL */
    if ((text[0] != '1' && text[0] != '2') || text[1] != ' ' || text[2] != '/') return NULL;
    job.mem_version = text[0] - '0';
    return text + 2;
}

static bool set_limit(const char *text) {
    int resource, used = 0;
    long long soft, hard;
    if (order.limits == LIMITS || sscanf(text, "%d %lld %lld%n", &resource, &soft, &hard, &used) != 3 || text[used]) return false;
    if (resource < 0 || soft < -1 || hard < -1) return false;
    order.limit[order.limits].resource = resource;
    order.limit[order.limits].value.rlim_cur = soft < 0 ? RLIM_INFINITY : (rlim_t)soft;
    order.limit[order.limits++].value.rlim_max = hard < 0 ? RLIM_INFINITY : (rlim_t)hard;
    return true;
}

static bool set_number(char tag, const char *text) { /* t K m, as in the frame and in the options of once */
    int64_t n;
    if (!parse(text, 0, tag == 'm' ? INT64_MAX : NEVER / MS / 4, &n)) return false;
    if (tag == 't') job.limit = n * MS;
    else if (tag == 'K') job.kill_wait = n * MS;
    else job.mem_limit = (bytes)n;
    return true;
}

static const char *order_run(char *p, char *end) {
    const char *env_file = NULL, *cgroup = NULL;
    size_t fields = 0, args = 0, overs = 0;
    int64_t n;
    bool good = true;
    for (char *f = p; f < end; f += strlen(f) + 1) {
        fields++;
        if (*f == 'k' && !args++ && !set_key(f + 1)) return "bad key";
    }
    if (!args) return "an order without a key";
    char **over = need(malloc((fields + 2) * sizeof *over));
    memset(&order, 0, sizeof order); /* argv and env were freed after the last exec */
    order.argv = need(malloc((fields + 2) * sizeof *order.argv));
    order.umask = -1;
    for (args = 0; p < end && good; p += strlen(p) + 1) {
        char *v = p + 1;
        switch (*p) {
        case 'k': break;
        case 'a': order.argv[args++] = v; break;
        case 'd': order.dir = v; break;
        case 'e': env_file = v; break;
        case 'E': over[overs++] = v; break;
        case 'i': order.in = v; break;
        case 'o': order.out = v; break;
        case 'r': order.err = v; break;
        case 'A': order.append = true; break;
        case 'F': order.streams = true; break;
        case 'u': order.umask = (int)strtol(v, &v, 8); good = !*v && order.umask >= 0 && order.umask <= 0777; break;
        case 'l': good = set_limit(v); break;
        case 'w': good = set_warning(v); break;
        case 'g': good = (cgroup = set_cgroup(v)) != NULL; break;
        case 't': case 'K': case 'm': good = set_number(*p, v); break;
        case 'j':
            good = parse(v, 0, INT64_MAX, &n);
            if (good && n > 0 && n == journal_size && !ftruncate(JOURNAL, 0)) journal_size = 0;
            break;
        default: good = false;
        }
    }
    order.argv[args] = NULL;
    if (good && args) start_job(env_file, NULL, 0, over, overs, cgroup);
    free(over);
    free(order.argv);
    free(order.env);
    order.argv = order.env = NULL;
    return good && args ? NULL : good ? "an order without a program" : "unknown or malformed field in a run order";
}

static const char *order_other(char verb, char *p, char *end) {
    const char *key = NULL, *number = NULL, *scope = "a", *wait = NULL;
    int64_t n = 0;
    for (; p < end; p += strlen(p) + 1) {
        if (*p == 'k') key = p + 1;
        else if ((*p == 's' && verb == 'S') || (*p == 't' && verb == 'T')) number = p + 1;
        else if (*p == 'c' && verb == 'S') scope = p + 1;
        else if (*p == 'K' && verb == 'C') wait = p + 1;
        else return "unknown field";
    }
    if (!key || job.phase == IDLE || strcmp(key, job.key)) return "this key does not run here";
    if (job.phase != RUN) return "the job has ended";
    if (verb == 'S') {
        if (!number || !parse(number, 1, 64, &n) || strlen(scope) != 1 || !strchr("apb", *scope)) return "bad signal or scope";
        note("signal", (int)n);
        signal_scope((int)n, *scope);
    } else if (verb == 'T') {
        if (!number || (*number && !set_number('t', number))) return "bad time limit";
        if (!*number) job.limit = -1;
    } else if (verb == 'C') {
        if (wait && !parse(wait, 0, NEVER / MS / 4, &n)) return "bad kill wait";
        if (wait && job.ending && job.kill_at && !job.killed && now() + n * MS < job.kill_at) job.kill_at = now() + n * MS;
        if (wait) job.kill_wait = n * MS;
        end_job("cancel");
    } else if (verb == 'P' && !job.stopped_at && !job.ending) {
        job.stopped_at = now();
        signal_all(SIGSTOP);
    } else if (verb == 'U' && job.stopped_at) {
        signal_all(SIGCONT);
        resume();
    }
    return NULL;
}

static bool has_hung_up(void) { /* an order of a coordinator that is gone may have been given to another witness since */
    struct pollfd peer = {conn, POLLRDHUP, 0};
    return poll(&peer, 1, 0) > 0 && peer.revents;
}

static void take_frame(char *p, size_t n) {
    const char *wrong = NULL;
    char *end = p + n;
    for (char *f = p; f < end; f += strlen(f) + 1)
        if (!*f) wrong = "empty field";
    if (n < 2 || end[-1] || p[1] || wrong) { complain("malformed frame"); return; }
    char verb = *p;
    p += 2;
    if (verb == 'R') wrong = job.phase != IDLE ? "a job runs" : has_hung_up() ? "who gave this order is gone" : order_run(p, end);
    else if (verb == 'Q') { if (job.phase == IDLE) exit(0); wrong = "a job runs"; }
    else if (strchr("SCPUT", verb)) wrong = order_other(verb, p, end);
    else wrong = "unknown verb";
    if (verb == 'R') close_streams();
    if (wrong) complain(wrong);
}

static ssize_t receive_bytes(char *to, size_t size) { /* and descriptors: at most three; the kernel closes what is more */
    union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof streams)]; } control;
    struct iovec part = {to, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(sizeof streams)};
    ssize_t n = recvmsg(conn, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return n;
    close_streams();
    streams_n = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof *streams);
    memcpy(streams, CMSG_DATA(head), (size_t)streams_n * sizeof *streams);
    return n;
}

static void receive(void) {
    if (in_len + 4096 > in_size) in = need(realloc(in, in_size = in_size ? in_size * 2 : 8192));
    ssize_t n = receive_bytes(in + in_len, in_size - in_len - 1);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { disconnect(); return; }
    if (n < 0) return;
    in_len += (size_t)n;
    size_t at = 0;
    while (conn >= 0) {
        size_t skip = in_skip < in_len - at ? (size_t)in_skip : in_len - at;
        at += skip;
        in_skip -= skip;
        if (in_len - at < 4) break;
        unsigned char *h = (unsigned char *)in + at;
        size_t size = h[0] | (size_t)h[1] << 8 | (size_t)h[2] << 16 | (size_t)h[3] << 24;
        if (size > FRAME_MAX) {
            complain("frame too long");
            at += 4;
            in_skip = size;
            continue;
        }
        if (in_len - at - 4 < size) break;
        char *frame = in + at + 4, after = frame[size];
        frame[size] = 0; /* strlen stops, also in a frame that lacks its last NUL */
        take_frame(frame, size);
        frame[size] = after;
        at += 4 + size;
    }
    if (conn < 0) at = in_len = 0;
    memmove(in, in + at, in_len -= at);
    if (!in_len && in_size > 16384) { free(in); in = NULL; in_size = 0; }
}

/* ---- the two forms ---- */
static void set_up(void) {
    sigset_t mask;
    char zero[64] = {0};
    for (int sig = 1; sig <= 64; sig++) syscall(SYS_rt_sigaction, sig, zero, NULL, (size_t)8);
    sigfillset(&mask);
    sigdelset(&mask, SIGCONT);
    sigdelset(&mask, SIGTSTP);
    sigdelset(&mask, SIGTTIN);
    sigdelset(&mask, SIGTTOU);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigdelset(&mask, SIGPIPE);
    sigdelset(&mask, SIGXFSZ);
    sigdelset(&mask, SIGURG);
    sigdelset(&mask, SIGWINCH);
    signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) _exit(70);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (slurp(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) boot[strcspn(boot, "\n")] = 0;
    host_oom_seen = number_of(AT_FDCWD, "/proc/vmstat", "oom_kill");
    began = now();
}

static void take_signals(void) {
    struct signalfd_siginfo info[16];
    ssize_t n = read(signals, info, sizeof info);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof *info; i++) {
        int sig = (int)info[i].ssi_signo;
        if (sig == SIGCHLD) continue;
        if (job.phase == IDLE && (sig == SIGTERM || sig == SIGINT)) exit(0);
        if (job.phase == IDLE) continue;
        if (job.gots < GOTS) job.got[job.gots++] = sig;
        if (job.phase == RUN && info[i].ssi_code != SI_KERNEL) kill(job.pid, sig); /* a terminal's goes to the whole group */
    }
    if (job.phase != IDLE) reap();
}

static void loop(void) { /* returns when there is nothing left to do */
    for (;;) {
        if (slot || job.phase != RECORD) enforce();
        if (!slot && job.phase == RECORD) return;
        if (job.phase == IDLE && job.stuck) return; /* the next job must not have the last one's processes */
        struct pollfd fds[2] = {{signals, POLLIN, 0}, {conn >= 0 ? conn : LISTENER, POLLIN, 0}};
        if (conn >= 0 && out_len) fds[1].events |= POLLOUT;
        usec wake = next_wake(), t = now();
        bool leaving = slot && job.phase == IDLE && conn < 0 && (served || t >= wake);
        struct timespec wait = {0, 0};
        if (!leaving && wake > t) wait = (struct timespec){(wake - t) / SECOND, (wake - t) % SECOND * 1000};
        int n = ppoll(fds, slot ? 2 : 1, !leaving && wake == NEVER ? NULL : &wait, NULL);
        if (leaving && n <= 0) return;
        if (fds[0].revents) take_signals();
        if (!slot || !fds[1].revents) continue;
        if (conn < 0) {
            conn = accept4(LISTENER, NULL, NULL, SOCK_CLOEXEC);
            if (conn < 0 && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN && job.phase == IDLE) return;
            if (conn >= 0) served = true, hello();
        } else {
            flush();
            if (conn >= 0 && fds[1].revents & ~POLLOUT) receive();
            if (job.tries < 0 && job.phase == RECORD) save();
        }
    }
}

static int run_slot(void) {
    struct stat st;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    slot = true;
    mallopt(M_TOP_PAD, 4096); /* a large order's memory goes back to the system */
    mallopt(M_TRIM_THRESHOLD, 32768);
    mallopt(M_MMAP_THRESHOLD, 65536);
    if (fcntl(LISTENER, F_SETFD, FD_CLOEXEC) || null < 0) return 2;
    if (!fstat(JOURNAL, &st) && null != JOURNAL) journal_size = st.st_size, fcntl(JOURNAL, F_SETFD, FD_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    syscall(SYS_close_range, 5u, ~0u, 0u);
    if (null < 5) close(null);
    if (chdir("/")) return 2;
    set_up();
    loop();
    return 0;
}

static bool write_record(const char *path) {
    char part[4096];
    if (snprintf(part, sizeof part, "%s.%d.tmp", path, getpid()) >= (int)sizeof part) { errno = ENAMETOOLONG; return false; }
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    bool good = write(fd, record, record_len) == (ssize_t)record_len && !fsync(fd);
    good = !close(fd) && good && !rename(part, path);
    if (!good) { int saved = errno; unlink(part); errno = saved; }
    return good;
}

static int run_once(int argc, char **argv) {
    extern char **environ;
    const char *path = NULL, *cgroup = NULL;
    char **over = need(malloc(((size_t)argc + 2) * sizeof *over));
    size_t overs = 0, n = 0;
    bool good = set_key("once");
    int i;
    for (i = 2; i + 1 < argc && good && strcmp(argv[i], "--"); i += 2) { /* the key is first: it clears the rest */
        if (!strcmp(argv[i], "--key")) good = set_key(argv[i + 1]);
    }
    for (i = 2; i + 1 < argc && good && strcmp(argv[i], "--"); i += 2) {
        const char *name = argv[i];
        char *v = argv[i + 1];
        if (!strcmp(name, "--key")) continue;
        else if (!strcmp(name, "--record")) path = v;
        else if (!strcmp(name, "--env")) over[overs++] = v;
        else if (!strcmp(name, "--warn")) good = set_warning(v);
        else if (!strcmp(name, "--cgroup")) good = (cgroup = set_cgroup(v)) != NULL;
        else if (!strcmp(name, "--time")) good = set_number('t', v);
        else if (!strcmp(name, "--kill-wait")) good = set_number('K', v);
        else if (!strcmp(name, "--mem")) good = set_number('m', v);
        else good = false;
        if (!good) break;
    }
    if (!good || i + 1 >= argc || strcmp(argv[i], "--")) {
        free(over);
        fprintf(stderr, "aver-witness: bad option near '%s'; usage: aver-witness once --record FILE --key KEY [options] -- command\n", i < argc ? argv[i] : "the end");
        return 2;
    }
    while (environ[n]) n++;
    order.argv = argv + i + 1;
    order.umask = -1;
    set_up();
    start_job(NULL, environ, n, over, overs, cgroup);
    free(over);
    loop();
    if (path && !write_record(path)) fprintf(stderr, "aver-witness: can't write the exit record %s: %s\n", path, strerror(errno));
    if (failure.op) {
        fprintf(stderr, "aver-witness: can't start %s: %s: %s\n", order.argv[0], failure.op, strerror(failure.err));
        return failure.err == ENOENT ? 127 : 126;
    }
    if (!WIFSIGNALED(job.raw)) return WEXITSTATUS(job.raw);
    struct rlimit no_core = {0, 0};
    sigset_t one;
    setrlimit(RLIMIT_CORE, &no_core);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(job.raw));
    kill(getpid(), WTERMSIG(job.raw));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    return 128 + WTERMSIG(job.raw);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) return puts("aver-witness 1") < 0;
    if (argc == 2 && !strcmp(argv[1], "slot")) return run_slot();
    if (argc > 2 && !strcmp(argv[1], "once")) return run_once(argc, argv);
    fputs("usage: aver-witness slot | once [options] -- command | --version\n", stderr);
    return 2;
}
