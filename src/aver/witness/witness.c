/* aver-witness: the parent of the work. It waits for it, enforces its limits and writes its exit record.
 *
 * It is not a judge: it says what it saw and what it did. The contract is docs/design/witness.md.
 * What always holds: one thread; no call that waits for the coordinator; every signal is blocked and read
 * from a signalfd, and no handler exists, so a child that is not yet exec'ed can't run one of ours; between vfork
 * and exec the child writes to `failure` and `is_handed_over` and to nothing else that the parent reads. */
#define _GNU_SOURCE
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { LISTENER = 3, JOURNAL = 4, OWN_FILE = 5, KEY_MAX = 128, NAMED_MAX = 160, SIGNALS = 64, ACTS = SIGNALS + 16, GOTS = SIGNALS + 32, LIMITS = 32, LEVELS = 4, RESTARTS = 10, PATH_KEPT = 4096 };
enum { FRAMES = 64, FRAME_MAX = 8 << 20, LINE_SIZE = 65536, LINE_HEAD = 18, SIZE_DIGITS = 12, MARK_BITS = 53 };
#define MS 1000LL
#define SECOND 1000000LL
#define NEVER INT64_MAX
#define TIME_MAX (NEVER / MS / 4) /* milliseconds; any sum of two such times fits */
#define GRACE (2 * SECOND)        /* a task ends itself so long after its job's limit, if nobody else does */
#define LEFT_PART 64               /* of a limit: what may still be counted after a job, tables that are freed later */
#define CHARGE (1 << 20)           /* what is asked for at once may be more than is left below a limit */
#define RELAY (5 * SECOND)         /* so late an engine may hand on a signal that its container got directly */
#define HOLD (3 * MS)              /* so long a start waits for its end, so that one line wakes the coordinator for both */

typedef long long usec; /* CLOCK_MONOTONIC, microseconds */
typedef long long bytes;
enum phase { IDLE, RUN, SWEEP, LOOK, RECORD };

static struct { /* what is to be started; pointers into the frame or into argv, valid until the exec */
    char **argv, **over, **unset, **env; /* over: of the environment, NAME=VALUE or NAME; unset: if it lacks NAME */
    char **files; /* KIND PATTERN each: i an input, o an output, p an output that may be missing */
    char **bare;  /* argv without its shell */
    char **warm;  /* the command of the server that can fork it */
    size_t args, bares, overs, unsets, files_n, warms;
    const char *value[128]; /* of the fields d e i o r g A B F O c, by tag */
    cpu_set_t cpus;         /* with B */
    int umask, limits, levels;
    struct { unsigned resource; struct rlimit value; } limit[LIMITS];
    struct { const char *name; bytes limit; } level[LEVELS]; /* of cgroups, from outside; the child is in the last */
} order;

static struct {
    enum phase phase;
    char key[KEY_MAX + 1];
    pid_t pid;
    int raw, left, tries, acts, gots, warn_signal; /* acts, gots: so many of `acted` and `signals_got` */
    char warn_scope;
    double wall;
    usec start, end, suspended, stopped_at; /* stopped_at: 0 unless suspended */
    usec stop_at, stop_gap;                 /* while it is: when it is looked at next, and the time between two looks */
    usec limit, warn_lead, kill_wait;       /* limit: -1 is none */
    usec job_limit; /* of a task: when its job's limit passes, without the time that it is suspended from now on; -1 */
    usec kill_at, sweep_until, retry_at, sample_at, interval;
    struct timeval user, sys;
    usec seen_user, seen_sys; /* the most CPU time that a look at all its processes found */
    usec last_cpu;            /* what the last look found; -1: it found not all of them */
    bytes maxrss, mem_limit, peak, whole, last, oom, beyond, inner_oom, oomd, forks, stays, hostoom;
    bytes around, around_base; /* kills for memory in the cgroup that the job shares; base: at its start, -1: unknown */
    struct kills { bytes all, inner, inner_limits; } kills_base; /* for memory: inner: in cgroups that the job made */
    int cgroup_version, cgroup, procs; /* cgroup: its folder, or -1; procs: its cgroup.procs until the exec, or -1 */
    int depth;                         /* of levels that are made */
    char *cgroup_path;                 /* own_path or home.path */
    bool own_cgroup, is_fresh; /* own: of the job alone, and not the witness's; fresh: nobody was in it */
    bool is_second;            /* an earlier job was in its own cgroups: their highest use is not this job's */
    bool is_still;             /* suspended, and nobody runs */
    bool warned, ending, killed, sampled, stuck, unwaited; /* unwaited: somebody in it does not wait for its children */
    struct stat program; /* what was started; st_ino 0: not looked at */
    char named[NAMED_MAX + 1]; /* JOB 7 ON host: in the line about its end that its stderr gets; empty: none */
} job;
/* Large, and seldom written to: apart from what each job needs, so that a witness has few pages of its own. */
#define SELDOM __attribute__((section(".bss.seldom")))
static SELDOM struct act { const char *what; usec at, last; int sig, times, to, blocked, unseen; } acted[ACTS]; /* one for each signal, few others */
static SELDOM int signals_got[GOTS];
static SELDOM char own_path[PATH_KEPT]; /* of a cgroup that is the job's alone */
static int errors = -1;             /* of a job with a name: its stderr, if that is a regular file, while the job runs */
static int errors_link[] = {-1, -1}; /* by which the child hands it over */

static volatile struct { const char *op; int err, join; } failure; /* of the launch */
static SELDOM volatile char failure_path[PATH_KEPT + 1];
static volatile bool is_handed_over; /* to the spare of the warm server */
static bool slot, served, journal_torn;
static int conn = -1, signals = -1;
static int streams[3], streams_n; /* descriptors that came over the connection and no run order has taken yet */
static off_t journal_size = -1;   /* -1: no journal */
static usec began, wake;          /* wake: when the next thing is due */
#define PAGE 4096
#define SPARE __attribute__((section("spare"))) /* buffers with nothing in them between two turns of the loop: rest() */
static SPARE __attribute__((aligned(PAGE))) char scratch[16384], line[LINE_SIZE];
static char boot[64];
static size_t line_len;
static struct { char *data; size_t have, want; } in; /* the frame that is being read, its length first */
static bytes host_oom_seen;
static SELDOM char around_path[PATH_KEPT + 64]; /* counts kills in the cgroup that we were started in; empty: none */
static bool is_around_known;                   /* it was looked for */
static char nowhere[1];
static struct { /* the witness's own cgroup, in which it stays: what it starts is in it from the beginning */
    int version, folder, events, members, cpu_stat; /* version 0: there is none */
    struct kills seen;
    bytes oomd_seen;
    struct cpu { usec user, sys; } cpu; /* v2: of its jobs so far */
    char *path;
} home = {.folder = -1, .events = -1, .path = nowhere};
static struct { /* the cgroups of a job with a limit, an outer one and a leaf, which the next such job may get */
    bool is_open;
    int folder, procs, events, cpu_stat; /* of the leaf */
    int limit, usage, all_events;        /* of the outer one */
    int made;                            /* so many have been made */
    bytes asked, rounded;                /* its limit, and as the kernel has it */
    struct cpu cpu;                      /* v2: of its jobs so far */
    char name[KEY_MAX + 16];
} pair;
static SELDOM char pair_path[PATH_KEPT];
static struct { /* the process that looks at the job's files: before the start, and after the end */
    pid_t pid;
    int ask, answer;     /* pipes, while it lives; -1 */
    size_t said_n;       /* of looker_said */
    usec since;    /* when it was asked */
    bool is_told;  /* the coordinator knows that this takes a while */
    bool cleans, unless_warned, unless_oom;
} looker = {.ask = -1, .answer = -1};
static SELDOM char looker_said[LINE_SIZE / 2]; /* what it found at the end, JSON; empty: nobody knows */
static struct { /* how the next coordinator is started if ours dies */
    char *home, **command, **env; /* command: NULL, nobody is started */
    usec at, until, connected;    /* at: to look next; until: a living one has time to come to us */
    int tries, claim, answer;     /* claim: only who has it starts one; answer: of the one that was started */
} restart = {.claim = -1, .answer = -1};
static struct { /* a server that has imported what calls of functions need, and forks a process for each */
    pid_t server, spare; /* spare: forked in advance, our child, no job's; 0: none that we know of */
    int link;            /* to whoever is spare */
    char **words;        /* its command, NULL at the end; NULL: there is none */
    bool is_proven;      /* it has made a spare */
} warm = {.link = -1};
static SELDOM char warm_cgroup[PATH_KEPT]; /* the server's own, so that its end is no job's; empty: there are none */
static pid_t *others; /* witnesses of tasks of this job, whose processes count in its memory where that is sampled */
static size_t others_n;

/* ---- clocks, files, numbers ---- */
static usec now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec / 1000;
}

static bool due(usec at) { /* if not yet, we shall be awake then */
    if (at <= now()) return true;
    if (at < wake) wake = at;
    return false;
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

static bool glance(const char *path) { /* at a file of a process's, which the kernel writes at once, to scratch */
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, scratch, sizeof scratch - 1);
    if (fd >= 0) close(fd);
    scratch[n > 0 ? n : 0] = 0;
    return n > 0;
}

static bool spit(const char *folder, const char *name, const char *text) {
    char path[PATH_KEPT + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && write(fd, text, strlen(text)) > 0;
    if (fd >= 0) close(fd);
    return good;
}

static bool spit_number(const char *folder, const char *name, bytes value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", value);
    return spit(folder, name, text);
}

static const char *value_of(const char *text, const char *name) { /* what follows NAME at the start of a line */
    size_t n = strlen(name);
    for (const char *p = text; p; p = (p = strchr(p, '\n')) ? p + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ' ' || p[n] == ':')) return p + n + 1;
    return NULL;
}

static bytes number_in(const char *text, const char *name) {
    const char *p = value_of(text, name);
    return p ? strtoll(p, NULL, 10) : 0;
}

static bytes host_oom_kills(void) {
    return slurp(AT_FDCWD, "/proc/vmstat", scratch, sizeof scratch) < 0 ? 0 : number_in(scratch, "oom_kill");
}

static bool parse(const char *text, long long most, long long unit, long long *to) { /* 0 to most, of such a unit */
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!*text || *end || errno || n < 0 || n > most) return false;
    *to = n * unit;
    return true;
}

typedef uint64_t sigs; /* as the kernel has them: libc's own calls leave 32 and 33 out */

static sigs bit(int sig) { return 1ULL << (sig - 1); }

static void set_mask(int how, sigs set) { syscall(SYS_rt_sigprocmask, how, &set, NULL, sizeof set); }

static double seconds(usec t) { return (double)t / 1e6; }

/* ---- lines ---- */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line + line_len, LINE_SIZE - line_len, format, list);
    va_end(list);
    line_len += (size_t)n < LINE_SIZE - line_len ? (size_t)n : 0; /* all parts together are shorter than a line */
}

static void say_text(const char *text) { /* a JSON string; at most PATH_KEPT bytes of it */
    say("\"");
    for (int i = 0; text[i] && i < PATH_KEPT; i++) {
        unsigned char c = (unsigned char)text[i];
        say(c < 32 || c > 126 || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
    }
    say("\"");
}

static void say_number(const char *name, bool known, bytes value) {
    if (known) say(",\"%s\":%lld", name, value);
    else say(",\"%s\":null", name);
}

static void open_line(const char *event) {
    line_len = LINE_HEAD;
    say("{\"ev\":\"%s\"", event);
}

static void close_line(void) {
    static const uint32_t crc[16] = {0,          0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                     0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c}; /* of half a byte */
    char head[LINE_HEAD + 1];
    uint32_t sum = ~0u;
    say("}");
    for (size_t i = LINE_HEAD; i < line_len; i++) {
        sum ^= (unsigned char)line[i];
        sum = sum >> 4 ^ crc[sum & 15];
        sum = sum >> 4 ^ crc[sum & 15];
    }
    snprintf(head, sizeof head, "%08zx %08x ", line_len - LINE_HEAD, ~sum);
    memcpy(line, head, LINE_HEAD);
    line[line_len++] = '\n';
}

static usec back_off(void) { return restart.tries > 5 ? 60 * SECOND : restart.tries ? SECOND << restart.tries : 0; }

static void lose_coordinator(void) { /* it died, or hung up; which, its lock says in a moment */
    if (now() - restart.connected > 60 * SECOND) restart.tries = 0;
    restart.at = now() + back_off();
    restart.until = restart.at + SECOND;
}

static void close_streams(void) {
    while (streams_n) close(streams[--streams_n]);
}

static struct { char text[1024]; size_t size; usec until; } held; /* a line for the coordinator that waits for the next */

/* ---- orders ahead: they begin when the job before them has ended, unless that takes long ---- */
#define AHEAD 64
#define PATIENCE (100 * MS) /* of a job before them, and of all together; docs/design/witness.md */
static struct { char *frame; size_t size; usec at; } ahead[AHEAD];
static int aheads;

static void remove_ahead(int which) {
    free(ahead[which].frame);
    aheads--;
    memmove(ahead + which, ahead + which + 1, (size_t)(aheads - which) * sizeof *ahead);
}

/* ---- a flood of short jobs: the witness stays on their CPUs ----
 * Woken on another one, it would wait there behind another slot's job while its own CPU is idle. */
static struct { bool is_set; cpu_set_t cpus, wide; } near; /* wide: where it may run otherwise */

static void spread(void) {
    if (near.is_set && !sched_setaffinity(0, sizeof near.wide, &near.wide)) near.is_set = false;
}

static void disconnect(void) {
    spread();
    while (aheads) remove_ahead(aheads - 1); /* nobody counts on them any more */
    if (conn >= 0) {
        close(conn);
        lose_coordinator();
    }
    conn = -1;
    held.size = 0; /* who comes next reads the journal */
    in.have = 0;
    free(in.data);
    in.data = NULL;
    close_streams();
}

static void tell(void) { /* what is held, and the line, to the coordinator; never waits: who leaves so much unread is cut off */
    struct iovec part[2] = {{held.text, held.size}, {line, line_len}};
    struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
    const size_t size = held.size + line_len;
    held.size = 0;
    if (conn < 0) return;
    if (sendmsg(conn, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size) disconnect();
}

static void tell_soon(void) { /* with the next line, or alone if none comes soon: most short jobs are over by then */
    if (conn < 0 || line_len > sizeof held.text) return tell();
    memcpy(held.text, line, held.size = line_len);
    held.until = now() + HOLD;
}

static void tell_held(void) {
    line_len = 0;
    tell();
}

static bool keep(void) { /* the line, whole, into the journal, or nothing of it */
    if (journal_size < 0) return true;
    if (journal_torn && ftruncate(JOURNAL, journal_size)) return false;
    ssize_t done = write(JOURNAL, line, line_len);
    journal_torn = done >= 0 && done < (ssize_t)line_len && ftruncate(JOURNAL, journal_size);
    if (done == (ssize_t)line_len) {
        journal_size += done;
        return true;
    }
    if (done >= 0) errno = ENOSPC;
    return false;
}

static void complain(const char *text) {
    open_line("error");
    say(",\"text\":\"%s\"", text);
    close_line();
    tell();
}

static const char *key_in(const char *frame, size_t size) { /* of a run order */
    for (const char *f = frame; f < frame + size; f += strlen(f) + 1)
        if (*f == 'k') return f + 1;
    return "";
}

static void tell_dropped(const char *key) { /* it has not begun, and never will by this order */
    open_line("dropped");
    say(",\"key\":");
    say_text(key);
    close_line();
    tell();
}

static void drop_ahead(int which) {
    char key[KEY_MAX + 1];
    snprintf(key, sizeof key, "%s", key_in(ahead[which].frame, ahead[which].size));
    remove_ahead(which);
    tell_dropped(key);
}

static void drop_all_ahead(void) {
    while (aheads) drop_ahead(0);
}

static bool drop_named(const char *key) {
    for (int i = 0; i < aheads; i++)
        if (!strcmp(key, key_in(ahead[i].frame, ahead[i].size))) {
            drop_ahead(i);
            return true;
        }
    return false;
}

static void put_ahead(const char *frame, size_t size) { /* frame[size] is 0 */
    if (aheads == AHEAD || now() - job.start > PATIENCE || job.stopped_at || job.ending) {
        tell_dropped(key_in(frame, size));
        return;
    }
    ahead[aheads].frame = need(malloc(size + 1));
    memcpy(ahead[aheads].frame, frame, size + 1);
    ahead[aheads].at = now();
    ahead[aheads++].size = size;
}

static void stay_near(void) { /* until a job takes longer than HOLD, or the coordinator is gone */
    if (near.is_set && order.value['B'] && CPU_EQUAL(&near.cpus, &order.cpus)) return;
    spread();
    if (!aheads || !order.value['B'] || near.is_set || sched_getaffinity(0, sizeof near.wide, &near.wide)) return;
    near.cpus = order.cpus;
    near.is_set = !sched_setaffinity(0, sizeof near.cpus, &near.cpus);
}

static usec limit_at(usec since_start) { /* when it passes, as things stand; NEVER: there is none, or it stands still */
    if (job.phase != RUN || job.ending || job.stopped_at || since_start < 0) return NEVER;
    return since_start + job.suspended;
}

static usec own_limit_at(void) { return limit_at(job.limit < 0 ? -1 : job.start + job.limit); }

static void say_due(void) {
    const usec at = own_limit_at();
    if (at < NEVER) say(",\"due\":%.6f", seconds(at));
    else say(",\"due\":null");
}

static void tell_due(void) {
    open_line("due");
    say(",\"key\":\"%s\"", job.key);
    say_due();
    close_line();
    tell();
}

static void say_cgroup(void) { /* the outermost of the job's own */
    if (job.phase != IDLE && job.own_cgroup) say(",\"in\":\"%s\"", order.level[0].name);
}

static void say_hello(void) {
    served = true;
    open_line("hello");
    say(",\"protocol\":11,\"witness\":%d", getpid());
    if (job.phase == IDLE) say(",\"key\":null,\"pid\":null,\"start\":null");
    else say(",\"key\":\"%s\",\"pid\":%d,\"start\":%.6f", job.key, job.pid, job.wall);
    say_cgroup();
    say_due();
    say(",\"wait\":%.3f,\"journal\":%lld", seconds(job.kill_wait), journal_size < 0 ? 0LL : (long long)journal_size);
    close_line();
    tell();
}

static const char *how_memory_is_watched(void) {
    if (order.value['x']) return "none";
    if (job.cgroup_version && (!job.mem_limit || job.cgroup < 0 || job.own_cgroup))
        return job.cgroup_version == 1 ? "cgroup1" : "cgroup2";
    return job.mem_limit ? "sampled" : "none";
}

static const char *step_tasks; /* task: how many its step has, as Slurm says */

static void make_record(bool for_journal) {
    open_line("end");
    say(",\"key\":\"%s\",\"witness\":%d,\"pid\":%d,\"boot\":\"%s\"", job.key, getpid(), job.pid, boot);
    say_number("raw", !failure.op, (bytes)job.raw);
    say(",\"start\":%.6f,\"elapsed\":%.6f,\"suspended\":%.*f", job.wall, seconds(job.end - job.start),
        job.suspended ? 6 : 0, seconds(job.suspended));
    say(",\"user\":%ld.%06ld,\"sys\":%ld.%06ld", job.user.tv_sec, job.user.tv_usec, job.sys.tv_sec, job.sys.tv_usec);
    say_number("maxrss", !order.value['x'], job.maxrss);
    say_number("peak", job.sampled && !order.value['x'], job.peak);
    say(",\"mem\":\"%s\"", how_memory_is_watched());
    say_number("limit", job.mem_limit, job.mem_limit);
    say(",\"oom\":%lld,\"hostoom\":%lld,\"acts\":[", job.oom, job.hostoom);
    for (struct act *a = acted; a < acted + job.acts; a++) {
        say("%s{\"act\":\"%s\",\"at\":%.6f,\"sig\":%d", a > acted ? "," : "", a->what, seconds(a->at), a->sig);
        if (a->to >= 0) say(",\"to\":%d", a->to);
        if (a->blocked) say(",\"blocked\":%d", a->blocked);
        if (a->unseen) say(",\"unseen\":%d", a->unseen);
        if (a->times > 1) say(",\"times\":%d,\"last\":%.6f", a->times, seconds(a->last));
        say("}");
    }
    say("],\"got\":[");
    for (int i = 0; i < job.gots; i++) say("%s%d", i ? "," : "", signals_got[i]);
    say("],\"left\":%d", job.left);
    if (job.limit >= 0) say(",\"time\":%.6f", seconds(job.limit));
    if (job.beyond) say_number("beyond", true, job.beyond);
    if (job.inner_oom) say_number("inner", true, job.inner_oom);
    if (job.oomd) say_number("oomd", true, job.oomd);
    if (job.forks) say_number("forks", true, job.forks);
    if (job.around) say_number("around", true, job.around);
    if (job.stays) say_number("stays", true, job.stays);
    if (job.unwaited || order.value['x']) say(",\"cpu\":\"least\"");
    if (looker.said_n) say(",\"files\":%s", looker_said);
    if (step_tasks) {
        say(",\"tasks\":%s,\"name\":", step_tasks);
        say_text(order.argv[0]);
    }
    say(",\"launch\":");
    if (failure.op) {
        say("{\"op\":\"%s\",\"errno\":%d,\"path\":", failure.op, failure.err);
        say_text((const char *)failure_path);
    }
    say("%s,\"over\":%.6f,\"size\":", failure.op ? "}" : "null", seconds(job.end));
    long long size = journal_size < 0 ? 0 : journal_size, own = (long long)line_len + SIZE_DIGITS + 2;
    say("%*lld", SIZE_DIGITS, journal_size < 0 || !for_journal ? size : size + own); /* padded: it counts itself */
    close_line();
}

/* ---- the job's processes ---- */
static pid_t *pids, own_pid, canary; /* canary: once, a child of ours that does nothing, and whose signals stay pending */
static size_t pids_n, pids_size;

static bool is_warm(pid_t pid) { /* the server, its spare, or the one between them: no job's */
    if (pid == job.pid) return false;
    return (warm.spare && pid == warm.spare) || (warm.server && (pid == warm.server || getsid(pid) == warm.server));
}

static void add_pid(long pid) {
    if (pid <= 1 || pid == own_pid || pid == canary || pid == looker.pid || is_warm((pid_t)pid)) return;
    if (pids_n == pids_size) pids = need(realloc(pids, (pids_size = pids_size * 2 + 64) * sizeof *pids));
    pids[pids_n++] = (pid_t)pid;
}

static void add_all_from(int fd) { /* numbers between spaces or line ends */
    char text[4096];
    long value = 0;
    off_t at = 0;
    for (ssize_t n = sizeof text; n > PAGE / 2 && (n = pread(fd, text, sizeof text, at)) > 0; at += n) /* less: the end */
        for (ssize_t i = 0; i < n; i++) {
            bool digit = text[i] >= '0' && text[i] <= '9';
            if (!digit) add_pid(value);
            value = digit ? value * 10 + text[i] - '0' : 0;
        }
}

static void add_all_in(int folder, const char *file) {
    int fd = openat(folder, file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    add_all_from(fd);
    close(fd);
}

static bool has_children_files(void) { /* /proc/PID/task/TID/children: not in every kernel */
    static int known = -1;
    if (known < 0) known = access("/proc/thread-self/children", R_OK) == 0;
#ifdef AVER_NO_CHILDREN
    known = 0;
#endif
    return known;
}

static void add_children(pid_t pid) {
    char path[64], *name_end;
    struct stat st;
    bool direct = has_children_files();
    if (direct && pid != own_pid) snprintf(path, sizeof path, "/proc/%d/task", pid);
    if (direct && (pid == own_pid || (!stat(path, &st) && st.st_nlink == 3))) { /* it has one thread */
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
        return add_all_in(AT_FDCWD, path);
    }
    snprintf(path, sizeof path, direct ? "/proc/%d/task" : "/proc", pid);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "%.20s/%s", e->d_name, direct ? "children" : "stat");
        if (direct) add_all_in(dirfd(folder), path);
        else if (slurp(dirfd(folder), path, scratch, sizeof scratch) > 0 && (name_end = strrchr(scratch, ')')))
            if (strlen(name_end) > 4 && atoi(name_end + 4) == pid) add_pid(atol(e->d_name)); /* ") S PARENT" */
    }
    if (folder) closedir(folder);
}

static bool is_apart(pid_t pid) { /* a coordinator that was started below us, or a witness of it: by its mark */
    char path[64];
    if (getsid(pid) == (slot ? job.pid : getsid(0))) return false; /* they leave the session that they are started in */
    snprintf(path, sizeof path, "/proc/%d/limits", pid);
    const char *mark = slurp(AT_FDCWD, path, scratch, sizeof scratch) < 0 ? NULL : value_of(scratch, "Max file locks");
    return mark && strtoull(mark, NULL, 10) >> MARK_BITS == 1;
}

static void add_descendants(size_t from) { /* of those from there on; who is apart is left out, with all below it */
    for (size_t i = from; i < pids_n; i++)
        if (is_apart(pids[i])) pids[i--] = pids[--pids_n];
        else add_children(pids[i]);
}

typedef void visitor(const char *path);
static bool no_inner; /* of the cgroup that is being looked at: known already */

static bool has_inner(const char *folder) {
    struct stat st;
    if (no_inner) return false;
    const bool is_jobs = folder == job.cgroup_path && job.cgroup >= 0;
    return !(is_jobs ? fstat(job.cgroup, &st) : stat(folder, &st)) && st.st_nlink > 2;
}

static void each_inner(const char *folder, visitor *visit) { /* cgroups that the job made inside its own, inmost first */
    char path[PATH_KEPT];
    DIR *inside = has_inner(folder) ? opendir(folder) : NULL;
    for (struct dirent *e; inside && (e = readdir(inside));) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.') continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path) continue;
        each_inner(path, visit);
        visit(path);
    }
    if (inside) closedir(inside);
}

static void add_members(const char *folder) {
    char path[PATH_KEPT + 16];
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    add_all_in(AT_FDCWD, path);
}

static int by_number(const void *a, const void *b) { return *(const pid_t *)a - *(const pid_t *)b; }

static void list_job(void) { /* all descendants, and all in the cgroup, each once */
    size_t n = 0;
    pids_n = 0;
    add_children(own_pid);
    add_descendants(0);
    if (job.cgroup < 0) return;
    add_all_in(job.cgroup, "cgroup.procs");
    each_inner(job.cgroup_path, add_members);
    qsort(pids, pids_n, sizeof *pids, by_number);
    for (size_t i = 0; i < pids_n; i++)
        if (!n || pids[i] != pids[n - 1]) pids[n++] = pids[i];
    pids_n = n;
}

static pid_t group_of(pid_t pid) { /* that is the job's alone: outside our session; 0: it has none */
    const pid_t session = getsid(pid), group = getpgid(pid);
    return session > 0 && session != getsid(0) && group > 1 ? group : 0;
}

static void kill_all(void) { /* a group's kill is atomic against its forks */
    pid_t group;
    if (job.cgroup_version == 2 && job.own_cgroup) spit_number(job.cgroup_path, "cgroup.kill", 1);
    list_job();
    for (size_t i = 0; i < pids_n; i++) {
        if ((group = group_of(pids[i]))) kill(-group, SIGKILL);
        kill(pids[i], SIGKILL);
    }
}

static bool reread(int fd) { /* a file of the kernel's that stays open, to scratch */
    const ssize_t n = pread(fd, scratch, sizeof scratch - 1, 0);
    if (n > 0) scratch[n] = 0;
    return n > 0;
}

static bool has_in(pid_t pid, const char *set, int sig) { /* one of the sets of signals in its status */
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    const char *bits = slurp(AT_FDCWD, path, scratch, sizeof scratch) < 0 ? NULL : value_of(scratch, set);
    return bits && strtoull(bits, NULL, 16) & bit(sig);
}

static void replace_canary(pid_t by) {
    if (canary > 0 && !kill(canary, SIGKILL)) waitpid(canary, NULL, 0);
    canary = by;
}

static void start_canary(void) { /* the next is there before the last is gone: no signal comes in between */
    const pid_t own = getpid(), next = fork();
    if (next) {
        replace_canary(next);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    syscall(SYS_close_range, 0u, ~0u, 0u);
    while (getppid() == own) pause();
    _exit(0);
}

static bool came_to_all(int sig) { /* a scheduler signals every process of a job, or the first one alone */
    struct timespec pause = {0, 1000 * 1000};
    for (int i = 0; i < 50 && canary > 0; i++) {
        if (has_in(canary, "ShdPnd", sig)) {
            start_canary(); /* for the next one */
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

static bool look_at_program(struct stat *to) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", job.pid);
    return !stat(path, to);
}

static bool is_another_program(void) { /* a shell that made way for the program is the program */
    struct stat it;
    return job.program.st_ino && look_at_program(&it) &&
           (it.st_ino != job.program.st_ino || it.st_dev != job.program.st_dev);
}

static char state_of(pid_t pid) { /* as the kernel says; X: it is gone */
    char path[64], *end;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const bool gone = slurp(AT_FDCWD, path, scratch, sizeof scratch) < 0 || !(end = strrchr(scratch, ')')) || !end[1];
    return gone ? 'X' : end[2];
}

static bool takes(pid_t pid, int sig) { /* one that lives: a zombie takes signals, too; who ignores it has none */
    return !strchr("ZX", state_of(pid)) && !has_in(pid, "SigIgn", sig);
}

static bool send_to(pid_t pid, int sig) {
    const bool is_taken = takes(pid, sig);
    return !kill(pid, sig) && is_taken;
}

static int signal_job(int sig, char scope) { /* a: all; p: the program, see the contract; b: the child alone */
    int reached = 0;
    if (scope == 'b') return send_to(job.pid, sig);
    if (scope == 'a' && sig == SIGKILL) {
        kill_all();
        return (int)pids_n;
    }
    list_job();
    for (size_t i = 0; i < pids_n; i++)
        if (scope == 'a' || pids[i] != job.pid || is_another_program() || has_in(job.pid, "SigCgt", sig))
            reached += send_to(pids[i], sig);
    return reached;
}

static void note_at(usec at, const char *what, int sig) {
    if (job.acts < ACTS) acted[job.acts++] = (struct act){what, at, at, sig, 1, -1, 0, 0};
}

static void note(const char *what, int sig) { /* what decides is there once or twice, so there is always room for it */
    note_at(now() - job.start, what, sig);
}

static void note_signal(int sig) { /* one act for each signal: who repeats one is counted */
    struct act *a = acted, *end = acted + job.acts;
    while (a < end && (strcmp(a->what, "signal") || a->sig != sig)) a++;
    if (a == end) note("signal", sig);
    else if (a->times < INT32_MAX) a->times++, a->last = now() - job.start;
}

/* ---- the warning: who took it ---- */
#define LAUNCHER "-ISXaver-srun" /* the option that client/slurm_bin.py starts our srun with, where it is in Python */
#define LAUNCHER_C "/aver-srun"  /* where it is in C, its program */
#define PROMPT SECOND            /* who waits for a signal takes it within this time */

static struct { /* processes that blocked the warning when it came, and have not taken it yet */
    int n, fd[64]; /* their status: of a process that is gone it can't be read, whoever has its pid now */
    usec at, since;
} unheard;

static bool is_launcher(pid_t pid) { /* our srun, or what it put around a task: not one of the user's processes */
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    const ssize_t n = slurp(AT_FDCWD, path, scratch, sizeof scratch);
    const size_t second = n > 0 ? strlen(scratch) + 1 : 0;
    if (n > 0 && second < (size_t)n && !strcmp(scratch + second, LAUNCHER)) return true;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    const ssize_t length = readlink(path, scratch, sizeof scratch - 1);
    const ssize_t from = length - (ssize_t)strlen(LAUNCHER_C);
    return from >= 0 && !strncmp(scratch + from, LAUNCHER_C, strlen(LAUNCHER_C));
}

static bool passes_on(pid_t pid) { /* Slurm's srun whose tasks have witnesses, by engines/slurm/submit/shim.py: these count */
    static const char words[] = "\0task\0--records";
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    const ssize_t n = slurp(AT_FDCWD, path, scratch, sizeof scratch);
    return n > 0 && memmem(scratch, (size_t)n, words, sizeof words);
}

static bool is_called(pid_t pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    const ssize_t n = slurp(AT_FDCWD, path, scratch, sizeof scratch);
    return n > 0 && (size_t)n == strlen(name) + 1 && !memcmp(scratch, name, strlen(name));
}

static bool is_child_of(pid_t parent, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    const char *its = slurp(AT_FDCWD, path, scratch, sizeof scratch) < 0 ? NULL : value_of(scratch, "PPid");
    return its && atoi(its) == parent;
}

static struct act *act_of(const char *what, int sig) {
    for (struct act *a = acted; a < acted + job.acts; a++)
        if (!strcmp(a->what, what) && a->sig == sig) return a;
    return NULL;
}

static void warn_process(pid_t pid, struct act *warning, bool is_sent) { /* who blocks it is counted when it takes it */
    char path[64];
    if (is_called(pid, "srun")) { /* Slurm's, and its tasks have no witness: nobody sees who takes it */
        if (is_sent || !kill(pid, job.warn_signal)) warning->unseen++;
        return;
    }
    const bool is_over = is_sent && pid == job.pid && state_of(pid) == 'Z'; /* it may have ended so: it counts */
    if (!(is_sent ? takes(pid, job.warn_signal) || is_over : send_to(pid, job.warn_signal))) return;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    const bool blocks = has_in(pid, "SigBlk", job.warn_signal);
    const int fd = blocks && unheard.n < (int)(sizeof unheard.fd / sizeof *unheard.fd) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) warning->to++;
    else unheard.fd[unheard.n++] = fd;
}

static void warn_job(bool is_sent) { /* the user's own processes: steps have witnesses of their own, which warn them */
    struct act *warning = job.warned ? act_of("warn", job.warn_signal) : NULL;
    job.warned = true;
    if (!warning) note("warn", job.warn_signal);
    if (!warning && !(warning = act_of("warn", job.warn_signal))) return;
    if (warning->to < 0) warning->to = 0;
    unheard.since = now();
    unheard.at = unheard.since + MS;
    const bool is_around = is_launcher(job.pid); /* then the program of the task is its child */
    if (job.warn_scope == 'b' && !is_around) {
        warn_process(job.pid, warning, is_sent);
        return;
    }
    list_job();
    for (size_t i = 0; i < pids_n; i++) {
        const pid_t pid = pids[i];
        if (is_launcher(pid)) continue;
        if (job.warn_scope == 'b' && !is_child_of(job.pid, pid)) continue;
        if (job.warn_scope == 'p' && pid == job.pid && !is_another_program() && !has_in(pid, "SigCgt", job.warn_signal)) continue;
        if (!passes_on(pid)) warn_process(pid, warning, is_sent);
        else if (!is_sent) kill(pid, job.warn_signal);
    }
}

static void hear_warning(int sig, char scope, bool is_sent) { /* it comes from the witness of the job, which can't see who takes it */
    job.warn_signal = sig;
    job.warn_scope = is_sent ? 'a' : scope;
    warn_job(is_sent);
}

static void ask_shell(void) { /* around a container: spec/container_command.py names it so if nobody inside took the warning */
    struct act *warning = act_of("warn", job.warn_signal);
    if (!warning) return;
    const bool is_blocked = is_called(job.pid, "aver-blocked");
    if (is_blocked || is_called(job.pid, "aver-unheard")) warning->to = 0;
    if (is_blocked) warning->blocked = 1;
}

static void look_at_unheard(bool is_over) { /* is_over: the child has ended, and is not reaped */
    struct act *warning = act_of("warn", job.warn_signal);
    const bool is_other = act_of("signal", job.warn_signal); /* what is pending may be that one */
    const bool was_prompt = now() - unheard.since < PROMPT;
    int kept = 0;
    for (int i = 0; i < unheard.n; i++) {
        const bool is_there = reread(unheard.fd[i]);
        const char *bits = is_there ? value_of(scratch, "ShdPnd") : NULL;
        const bool is_pending = bits && strtoull(bits, NULL, 16) & bit(job.warn_signal);
        if (is_pending && !is_over) {
            unheard.fd[kept++] = unheard.fd[i];
            continue;
        }
        if (is_there ? !is_pending || is_other : was_prompt || is_other) warning->to++;
        else warning->blocked++;
        close(unheard.fd[i]);
    }
    unheard.n = kept;
    unheard.at = now() + (was_prompt ? 2 : 20) * MS;
}

static bool move_job(int sig) { /* STOP or CONT, to groups as in kill_all; returns whether somebody was found running, or
                                   went meanwhile: its children may have been missed */
    bool ran = false; /* who is in D has the STOP pending: it waits for a device, or in vfork for a child that is stopped */
    pid_t last = 0, group;
    list_job();
    for (size_t i = 0; i < pids_n; i++, last = group) {
        group = group_of(pids[i]);
        ran = ran || (!strchr("TtDZ", state_of(pids[i])) && (!kill(pids[i], 0) || errno == ESRCH));
        if (!group) kill(pids[i], sig);
        else if (group != last) kill(-group, sig);
    }
    return ran;
}

static void tell_moved(const char *what) { /* suspended or resumed: it is done, not only asked for */
    open_line(what);
    say(",\"key\":\"%s\",\"at\":%.6f", job.key, seconds(now() - job.start));
    close_line();
    tell();
}

static void stop_job(void) { /* again and again: who forked meanwhile is stopped as well, and who was continued by others */
    const usec since = now();
    job.stop_gap = move_job(SIGSTOP) || !job.stop_gap ? MS : job.stop_gap < SECOND ? 2 * job.stop_gap : SECOND;
    const usec rest = 4 * (now() - since);
    job.stop_at = now() + (job.stop_gap > rest ? job.stop_gap : rest);
    if (!job.is_still && job.stop_gap > 2 * MS) { /* two looks in a row found nobody running */
        job.is_still = true;
        tell_moved("suspended");
    }
}

static void continue_job(void) {
    move_job(SIGCONT);
    if (job.stopped_at && !job.is_still) move_job(SIGCONT); /* somebody ran, and may have left a child that is stopped while it was looked for */
}

static void resume(void) {
    job.stop_gap = 0;
    job.is_still = false;
    if (job.stopped_at) job.suspended += now() - job.stopped_at;
    job.stopped_at = 0;
}

static pid_t clerk; /* writes to the job's stderr; 0: it is done */

static void drop_errors(void) {
    if (errors >= 0) close(errors);
    errors = -1;
}

static void tell_errors(const char *due) { /* once, as Slurm's daemon does; before the signal, and thus before traps */
    char at[32], text[NAMED_MAX + 128];
    struct tm local;
    const time_t seconds_now = time(NULL);
    if (errors < 0 || !localtime_r(&seconds_now, &local) || !strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &local)) return;
    const int n = snprintf(text, sizeof text, "slurmstepd: error: *** %s CANCELLED AT %s%s ***\n", job.named, at, due);
    clerk = fork(); /* a file system that hangs holds up no signal; no room: there is nobody to say so to */
    if (clerk == 0) _exit(write(errors, text, (size_t)n) < 0);
    drop_errors();
    for (int i = 0; clerk > 0 && i < 200; i++)
        if (waitpid(clerk, NULL, WNOHANG)) clerk = 0;
        else usleep(1000);
    if (clerk > 0) kill(clerk, SIGKILL);
}

static void tell_limit(void) { /* before anything follows from it: who hears of that has heard of this */
    open_line("limit");
    say(",\"key\":\"%s\",\"at\":%.6f", job.key, seconds(now() - job.start));
    close_line();
    keep();
    tell();
}

static void end_job(const char *why, bool is_requeue) { /* time, jobtime or cancel: TERM, then KILL after the kill wait */
    if (job.ending) return;
    note(why, SIGTERM);
    if (!strcmp(why, "time")) tell_limit();
    tell_errors(!strcmp(why, "time") ? " DUE TO TIME LIMIT" : is_requeue ? " DUE TO JOB REQUEUE" : "");
    job.ending = true;
    job.kill_at = now() + job.kill_wait;
    signal_job(SIGTERM, 'a');
    continue_job();
    resume();
}

static void kill_job(const char *why) { /* again and again, until the child is reaped */
    if (!job.killed) note(why, SIGKILL);
    if (!strcmp(why, "cancel")) tell_errors("");
    job.ending = job.killed = true;
    job.kill_at = now() + 100 * MS;
    kill_all();
    resume();
}

/* ---- memory ---- */
static const struct { const char *limit, *swap, *events, *local, *highest, *anon, *shmem; } cgroup_files[] = {
    [1] = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", NULL,
           "memory.max_usage_in_bytes", "total_rss", "total_shmem"},
    [2] = {"memory.max", "memory.swap.max", "memory.events", "memory.events.local", "memory.peak", "anon", "shmem"},
};

static bool read_of(const char *folder, const char *file) { /* to scratch */
    char path[PATH_KEPT + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return slurp(AT_FDCWD, path, scratch, sizeof scratch) > 0;
}

static bool is_counted(const char *folder, const char *counter) {
    return read_of(folder, counter) && strtoll(scratch, NULL, 10) > 0;
}

static bool is_in_pair(void) { return pair.is_open && job.cgroup == pair.folder; }

static struct kills found; /* by the visitor */

static void count_inner(const char *folder) { /* v1: each cgroup counts the kills of its own members alone */
    if (read_of(folder, cgroup_files[1].events)) found.inner += number_in(scratch, "oom_kill");
    if (is_counted(folder, "memory.failcnt")) found.inner_limits++;
}

static bool count_kills(const char *folder, struct kills *to) { /* for memory, so far; false: can't be read */
    const int version = job.cgroup_version;
    const int events = folder == home.path ? home.events : is_in_pair() ? pair.events : -1;
    const char *count = (events >= 0 ? reread(events) : read_of(folder, cgroup_files[version].events))
                            ? value_of(scratch, "oom_kill") : NULL;
    if (!count) return false;
    found = (struct kills){strtoll(count, NULL, 10), 0, number_in(scratch, "oom")};
    if (version == 1) {
        found.inner_limits = 0;
        each_inner(folder, count_inner);
        found.all += found.inner;
    } else if (found.all && read_of(folder, cgroup_files[2].local)) {
        found.inner = found.all - number_in(scratch, "oom_kill");
        found.inner_limits = found.inner_limits - number_in(scratch, "oom");
    } else found.inner_limits = 0;
    *to = found;
    return true;
}

static bool is_full(const char *folder) { /* v1: the limit with swap is met first, and not every kernel counts that */
    if (!read_of(folder, cgroup_files[1].highest)) return false;
    const bytes highest = strtoll(scratch, NULL, 10);
    return read_of(folder, cgroup_files[1].limit) && highest > strtoll(scratch, NULL, 10) - CHARGE;
}

static bool is_limit_reached(void) { /* of the job, its step or its task: any level that has one */
    char path[PATH_KEPT];
    snprintf(path, sizeof path, "%s", job.cgroup_path);
    for (int i = job.depth - 1; i >= 0; i--) {
        if (job.cgroup_version == 2 && read_of(path, cgroup_files[2].local) && number_in(scratch, "oom")) return true;
        if (job.cgroup_version == 1 && (is_counted(path, "memory.failcnt") || is_full(path))) return true;
        *strrchr(path, '/') = 0;
    }
    return false;
}

static bytes mark_of_oomd(const char *folder, const char *name) {
    char text[32] = "";
    const ssize_t n = getxattr(folder, name, text, sizeof text - 1);
    return n > 0 ? strtoll(text, NULL, 10) : 0;
}

static bytes oomd_kills(const char *folder, int levels) { /* systemd-oomd moves no counter of the kernel's */
    char path[PATH_KEPT];
    bytes count = 0;
    snprintf(path, sizeof path, "%s", folder);
    for (; levels > 0; levels--) { /* it writes how often before it kills, and how many only after that */
        const bytes times = mark_of_oomd(path, "user.oomd_ooms"), killed = mark_of_oomd(path, "user.oomd_kill");
        count += killed > times ? killed : times;
        *strrchr(path, '/') = 0;
    }
    return count;
}

static void remove_levels(void) { /* those above the job's own go when the last one inside has gone */
    for (; job.depth > 0; job.depth--) {
        rmdir(job.cgroup_path);
        *strrchr(job.cgroup_path, '/') = 0;
    }
}

static void forget_pair(void) {
    const int fds[] = {pair.folder, pair.procs, pair.events, pair.cpu_stat, pair.limit, pair.usage, pair.all_events};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    pair.is_open = false;
}

static void remove_pair(void) { /* nobody is in it */
    if (!pair.is_open) return;
    forget_pair();
    rmdir(pair_path);
    *strrchr(pair_path, '/') = 0;
    rmdir(pair_path);
}

static void close_own_cgroup(void) {
    if (is_in_pair()) forget_pair();
    else if (job.cgroup >= 0) close(job.cgroup);
    remove_levels();
}

static bool take_pair(void) { /* that of the job before this one, if it has this limit */
    if (!pair.is_open) return false;
    if (order.level[0].limit != pair.asked || !reread(pair.limit) || strtoll(scratch, NULL, 10) != pair.rounded) {
        remove_pair();
        return false;
    }
    snprintf(own_path, sizeof own_path, "%s", pair_path);
    order.level[0].name = pair.name;
    job.depth = 2;
    job.cgroup = pair.folder;
    job.procs = pair.procs;
    return job.is_second = true;
}

static bool name_pair(void) { /* each has a number: steps of an earlier job may still be in that one's */
    char path[PATH_KEPT + sizeof pair.name];
    const char *mine = order.value['G'] ? order.value['G'] : job.key;
    order.level[0].name = pair.name;
    for (int tries = 0; tries < 1000; tries++) {
        if (snprintf(pair.name, sizeof pair.name, "%s-j%d", mine, pair.made++) >= (int)sizeof pair.name) return false;
        snprintf(path, sizeof path, "%s/%s", job.cgroup_path, pair.name);
        if (!mkdir(path, 0755)) return true;
        if (errno != EEXIST) return false;
    }
    return false;
}

static int beside(const char *file) { /* one of the outer cgroup */
    char path[64];
    snprintf(path, sizeof path, "../%s", file);
    return openat(job.cgroup, path, O_RDONLY | O_CLOEXEC);
}

static void open_pair(int version) { /* what it takes to use it again; what can't be opened can't be read later */
    pair.is_open = true;
    pair.folder = job.cgroup;
    pair.procs = job.procs;
    pair.events = openat(job.cgroup, cgroup_files[version].events, O_RDONLY | O_CLOEXEC);
    pair.cpu_stat = openat(job.cgroup, "cpu.stat", O_RDONLY | O_CLOEXEC);
    pair.limit = beside(cgroup_files[version].limit);
    pair.usage = beside(version == 1 ? "memory.usage_in_bytes" : "memory.current");
    pair.all_events = beside(cgroup_files[version].events);
    pair.asked = order.level[0].limit;
    pair.rounded = reread(pair.limit) ? strtoll(scratch, NULL, 10) : -1;
    pair.cpu = (struct cpu){0};
    snprintf(pair_path, sizeof pair_path, "%s", job.cgroup_path);
}

static bool is_pair_clean(void) { /* after a short job nothing of it is left in the cgroups that could touch another */
    struct stat outer;
    return is_in_pair() && !order.value['n'] && job.end - job.start < SECOND && !failure.op && WIFEXITED(job.raw) &&
           !job.stuck && !job.left && !job.oom && !job.inner_oom && no_inner &&
           !fstatat(pair.folder, "..", &outer, 0) && outer.st_nlink == 3 && /* without steps */
           reread(pair.usage) && strtoll(scratch, NULL, 10) <= pair.rounded / LEFT_PART &&
           (job.cgroup_version == 1 ? !is_limit_reached() : reread(pair.all_events) && !number_in(scratch, "oom"));
}

static void use_home(void) { /* the job is in the witness's own cgroup, if there is one */
    job.own_cgroup = false;
    job.cgroup = home.folder;
    job.cgroup_version = home.version;
    job.kills_base = home.seen;
    job.cgroup_path = home.path;
}

static void leave_cgroup(void) { /* the job is not in it */
    if (job.procs >= 0 && !is_in_pair()) close(job.procs);
    job.procs = -1;
    close_own_cgroup();
    use_home();
}

static bool make_level(int version, int i) {
    const size_t have = strlen(own_path), size = sizeof own_path - have;
    if (snprintf(own_path + have, size, "/%s", order.level[i].name) >= (int)size) return false;
    job.depth++;
    job.is_fresh = !mkdir(job.cgroup_path, 0755);
    if (!job.is_fresh && errno != EEXIST) return false;
    if (order.level[i].limit) {
        const bytes limit = order.level[i].limit;
        if (!spit_number(job.cgroup_path, cgroup_files[version].limit, limit)) return false;
        spit_number(job.cgroup_path, cgroup_files[version].swap, version == 1 ? limit : 0);
    }
    if (version == 2 && order.value['n']) spit_number(job.cgroup_path, "pids.max", strtoll(order.value['n'], NULL, 10));
    if (version == 2 && i + 1 < order.levels) {
        spit(job.cgroup_path, "cgroup.subtree_control", "+memory");
        spit(job.cgroup_path, "cgroup.subtree_control", "+pids");
    }
    return true;
}

static void move_home(const char *folder, const char *name) { /* once: whoever is started later is born there */
    const int version = folder[0] - '0', size = PATH_KEPT;
    char path[PATH_KEPT];
    if (home.version || snprintf(path, (size_t)size, "%s/%s", folder + 2, name) >= size) return;
    if (home.path != nowhere) free(home.path);
    home.path = need(strdup(path));
    mkdir(home.path, 0755);
    home.folder = open(home.path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    home.events = openat(home.folder, cgroup_files[version].events, O_RDONLY | O_CLOEXEC);
    home.members = openat(home.folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    home.cpu_stat = openat(home.folder, "cpu.stat", O_RDONLY | O_CLOEXEC);
    job.cgroup_version = version;
    bool good = home.events >= 0 && home.members >= 0 && count_kills(home.path, &home.seen);
    if (good && spit_number(home.path, "cgroup.procs", getpid())) home.version = version;
    else {
        const int fds[] = {home.folder, home.events, home.members, home.cpu_stat};
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
            if (fds[i] >= 0) close(fds[i]);
        home.folder = -1;
        rmdir(home.path);
    }
    home.oomd_seen = version == 2 ? oomd_kills(home.path, 1) : 0;
    job.cgroup_version = 0;
}

static void leave_home(void) { /* the last one who was in it has gone; v2: who started us removes it */
    char *end = strrchr(home.path, '/');
    remove_pair();
    if (!home.version) return;
    *end = 0;
    spit_number(home.path, "cgroup.procs", getpid());
    *end = '/';
    rmdir(home.path);
}

static void open_cgroup(const char *where) { /* VERSION FOLDER; on any failure there is none, and memory is sampled */
    const int version = where[0] - '0', size = sizeof own_path;
    if (order.value['G']) move_home(where, order.value['G']);
    use_home();
    if (!order.levels && (job.mem_limit || !order.value['G'])) {
        order.level[0].name = job.key;
        order.level[order.levels++].limit = job.mem_limit;
    }
    if (!order.levels || snprintf(own_path, (size_t)size, "%s", where + 2) >= size) return;
    job.cgroup_path = own_path;
    job.own_cgroup = true;
    job.cgroup = -1;
    job.cgroup_version = version;
    const bool is_pair = order.levels == 2 && !strcmp(order.level[0].name, "*");
    if (is_pair && take_pair()) return;
    bool good = !is_pair || name_pair();
    for (int i = 0; i < order.levels && good; i++) good = make_level(version, i);
    if (good) job.cgroup = open(job.cgroup_path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    good = job.cgroup >= 0 && !faccessat(job.cgroup, "memory.stat", R_OK, 0);
    if (good) job.procs = openat(job.cgroup, "cgroup.procs", O_RDWR | O_CLOEXEC);
    job.kills_base = (struct kills){0};
    if (job.procs < 0 || (!job.is_fresh && !count_kills(job.cgroup_path, &job.kills_base))) leave_cgroup();
    else if (is_pair) open_pair(version);
}

static int own_folder(char *to, size_t size) { /* the memory cgroup that we are in: its version, 0: none */
    const char *path;
    int version;
    if (slurp(AT_FDCWD, "/proc/self/cgroup", scratch, sizeof scratch) < 0) return 0;
    if ((path = strstr(scratch, ":memory:/"))) path += sizeof ":memory:" - 1, version = 1;
    else if ((path = strstr(scratch, "0::/"))) path += sizeof "0::" - 1, version = 2;
    else return 0;
    const int n = (int)strcspn(path, "\n");
    snprintf(to, size, "/sys/fs/cgroup%s%.*s/", version == 1 ? "/memory" : "", n, path);
    return version;
}

static void find_cgroup(void) { /* the one that a scheduler made for this job, and that the child will share */
    const char *id = getenv("SLURM_JOB_ID");
    char mark[64];
    job.cgroup_path = own_path;
    if (!id || !(job.cgroup_version = own_folder(own_path, sizeof own_path))) return;
    snprintf(mark, sizeof mark, "/job_%s/", id); /* a daemon's own has kills of other jobs, too */
    if (!strstr(job.cgroup_path, mark) || !count_kills(job.cgroup_path, &job.kills_base)) job.cgroup_version = 0;
}

static void find_around(void) { /* where the witness was started; a container may see no folder but its own, on top */
    char folder[PATH_KEPT];
    const int version = own_folder(folder, sizeof folder);
    const char *tops[] = {folder, version == 1 ? "/sys/fs/cgroup/memory/" : "/sys/fs/cgroup/"};
    const char *files[] = {cgroup_files[version == 1 ? 1 : 2].local, cgroup_files[version == 1 ? 1 : 2].events};
    for (int i = 0; version && i < 4; i++) {
        if (!files[i % 2]) continue;
        snprintf(around_path, sizeof around_path, "%s%s", tops[i / 2], files[i % 2]);
        if (!access(around_path, R_OK)) return;
    }
    around_path[0] = 0;
}

static bytes around_kills(void) { /* for memory, in the cgroup that the job shares with others; -1: nobody knows */
    if (!is_around_known) find_around();
    is_around_known = true;
    const bool is_read = around_path[0] && slurp(AT_FDCWD, around_path, scratch, sizeof scratch) > 0;
    const char *count = is_read ? value_of(scratch, "oom_kill") : NULL;
    return count ? strtoll(count, NULL, 10) : -1;
}

static void read_around_end(void) { /* without a counter of ours, that of the machine is the nearest */
    const bytes count = job.around_base < 0 ? -1 : around_kills();
    job.around = count < 0 ? job.hostoom : count > job.around_base ? count - job.around_base : 0;
}

static void read_cgroup_end(void) {
    struct kills end;
    bytes highest = 0;
    if (!count_kills(job.cgroup == home.folder && home.version ? home.path : job.cgroup_path, &end)) {
        job.cgroup_version = 0; /* nobody knows */
        return;
    }
    job.oom = end.all > job.kills_base.all ? end.all - job.kills_base.all : 0;
    const bytes inner = end.inner - (job.cgroup_version == 2 ? job.kills_base.inner : 0);
    const bytes inner_limits = end.inner_limits - (job.cgroup_version == 2 ? job.kills_base.inner_limits : 0);
    if (job.cgroup >= 0 && inner > 0 && inner_limits > 0 && !is_limit_reached()) { /* a limit that the job set itself */
        job.inner_oom = inner < job.oom ? inner : job.oom;
        job.oom -= job.inner_oom;
    }
    if (job.oom && job.cgroup >= 0 && !is_limit_reached()) job.beyond = job.oom;
    if (job.cgroup_version == 2 && job.cgroup >= 0 && WIFSIGNALED(job.raw) && WTERMSIG(job.raw) == SIGKILL)
        job.oomd = oomd_kills(job.cgroup_path, job.own_cgroup ? job.depth : 1) - (job.own_cgroup ? 0 : home.oomd_seen);
    if (!job.own_cgroup) {
        home.seen = end;
        if (job.oomd > 0) home.oomd_seen += job.oomd;
    }
    if (!job.oom || (job.cgroup >= 0 && !job.own_cgroup)) return;
    if (job.is_second) highest = job.beyond ? 0 : job.mem_limit;
    else if (read_of(job.cgroup_path, cgroup_files[job.cgroup_version].highest)) highest = strtoll(scratch, NULL, 10);
    if (job.mem_limit && highest > job.mem_limit) highest = job.mem_limit;
    if (highest > job.peak) job.peak = highest; /* looking may have missed the spike */
    job.sampled = job.peak > 0;
}

static void read_forks_end(void) { /* v2: processes that could not be started, since its limit was reached */
    char path[PATH_KEPT];
    snprintf(path, sizeof path, "%s", job.cgroup_path);
    for (int i = job.depth - 1; i >= 0; i--) { /* which of the levels counts depends on the kernel */
        const bytes count = read_of(path, "pids.events") ? number_in(scratch, "max") : 0;
        if (count > job.forks) job.forks = count;
        *strrchr(path, '/') = 0;
    }
}

static void look_at_status(void) { /* of a process, in scratch */
    const bytes highest = number_in(scratch, "VmHWM") * 1024;
    const char *ignored = value_of(scratch, "SigIgn");
    if (highest > job.maxrss) job.maxrss = highest;
    if (ignored && strtoull(ignored, NULL, 16) & bit(SIGCHLD)) job.unwaited = true;
}

static void read_cpu_end(void) { /* v2: of all processes, also of those that nobody waited for */
    struct rusage own;
    const int kept = is_in_pair() ? pair.cpu_stat : job.own_cgroup ? -1 : home.cpu_stat;
    if (!(kept >= 0 ? reread(kept) : read_of(job.cgroup_path, "cpu.stat"))) return;
    if (!value_of(scratch, "user_usec")) return;
    usec user = number_in(scratch, "user_usec"), sys = number_in(scratch, "system_usec");
    if (!job.own_cgroup) { /* less our own */
        const struct cpu before = home.cpu;
        getrusage(RUSAGE_SELF, &own);
        home.cpu.user = user - own.ru_utime.tv_sec * SECOND - own.ru_utime.tv_usec;
        home.cpu.sys = sys - own.ru_stime.tv_sec * SECOND - own.ru_stime.tv_usec;
        user = home.cpu.user - before.user;
        sys = home.cpu.sys - before.sys;
    } else if (is_in_pair()) {
        const struct cpu before = pair.cpu;
        pair.cpu = (struct cpu){user, sys};
        user -= before.user;
        sys -= before.sys;
    }
    job.unwaited = false;
    if (user + sys <= (job.user.tv_sec + job.sys.tv_sec) * SECOND + job.user.tv_usec + job.sys.tv_usec) return;
    if (user < 0) sys += user; /* the kernel divides our own time and that of the cgroup apart: their sums are right */
    else if (sys < 0) user += sys;
    user = user < 0 ? 0 : user;
    sys = sys < 0 ? 0 : sys;
    job.user = (struct timeval){user / SECOND, user % SECOND};
    job.sys = (struct timeval){sys / SECOND, sys % SECOND};
}

static bytes sum_processes(bool shares) { /* anonymous and shared memory; shares: each page divided among its users */
    bytes sum = 0;
    char path[64];
    for (size_t i = 0; i < pids_n; i++) {
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pids[i]);
        bool divided = shares && glance(path) && value_of(scratch, "Pss_Anon");
        snprintf(path, sizeof path, "/proc/%d/status", pids[i]);
        if (!divided && !glance(path)) continue;
        if (!divided) look_at_status();
        sum += number_in(scratch, divided ? "Pss_Anon" : "RssAnon");
        sum += number_in(scratch, divided ? "Pss_Shmem" : "RssShmem");
    }
    return sum * 1024;
}

static void look_at_cpu(void) { /* of the processes that are listed, with what each has waited for, and of those reaped */
    const usec tick = SECOND / sysconf(_SC_CLK_TCK);
    usec user = job.user.tv_sec * SECOND + job.user.tv_usec, sys = job.sys.tv_sec * SECOND + job.sys.tv_usec;
    char path[64], *end;
    job.last_cpu = -1;
    for (size_t i = 0; i < pids_n; i++) {
        long long times[4];
        snprintf(path, sizeof path, "/proc/%d/stat", pids[i]);
        if (!glance(path) || !(end = strrchr(scratch, ')'))) return;
        if (sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", times, times + 1, times + 2,
                   times + 3) != 4) return;
        user += (times[0] + times[2]) * tick;
        sys += (times[1] + times[3]) * tick;
    }
    for (size_t i = 0; i < pids_n; i++) /* who was waited for meanwhile may be counted twice */
        if (kill(pids[i], 0) && errno == ESRCH) return;
    job.last_cpu = user + sys;
    if (user + sys <= job.seen_user + job.seen_sys) return;
    job.seen_user = user;
    job.seen_sys = sys;
}

static void count_unwaited(void) { /* a look found more than the kernel has told of those that were waited for */
    const usec waited = (job.user.tv_sec + job.sys.tv_sec) * SECOND + job.user.tv_usec + job.sys.tv_usec;
    if (job.seen_user + job.seen_sys <= waited + 50 * MS) return; /* its clock and the other's differ by ticks */
    job.unwaited = true;
    job.user = (struct timeval){job.seen_user / SECOND, job.seen_user % SECOND};
    job.sys = (struct timeval){job.seen_sys / SECOND, job.seen_sys % SECOND};
}

static bytes memory_in_use(bytes *own) { /* own: without what tasks of its steps use, which are measured apart */
    *own = 0;
    if (job.own_cgroup) {
        if (job.cgroup_version == 1) { /* for what only the processes say */
            list_job();
            look_at_cpu();
            sum_processes(false);
        }
        if (!read_of(job.cgroup_path, "memory.stat")) return 0;
        return *own = number_in(scratch, cgroup_files[job.cgroup_version].anon) +
                      number_in(scratch, cgroup_files[job.cgroup_version].shmem);
    }
    list_job();
    look_at_cpu();
    bytes used = sum_processes(false);
    if (pids_n > 1 && used > job.peak) used = sum_processes(true);
    *own = used;
    for (size_t i = 0; i < others_n; i++) {
        const size_t n = pids_n;
        add_children(others[i]);
        add_descendants(n);
    }
    if (others_n) used = sum_processes(false);
    return others_n && used > job.whole ? sum_processes(true) : used;
}

static void sample(void) { /* less often while nothing changes, and for at most a twentieth of the time */
    usec began_at = now(), longest = job.mem_limit ? 2 * SECOND : 5 * SECOND;
    const usec cpu = job.sampled ? job.last_cpu : -1;
    if (!job.sampled) host_oom_seen = host_oom_kills();
    bytes own, used = memory_in_use(&own), change = used > job.last ? used - job.last : job.last - used;
    const bool is_over = !job.own_cgroup && job.mem_limit && used > job.mem_limit;
    if (!job.own_cgroup && job.mem_limit && used > job.mem_limit / 2) longest = 100 * MS;
    if (is_over) kill_job("memory");
    const bool is_asleep = slot && !job.own_cgroup && !job.mem_limit && cpu >= 0 && job.last_cpu == cpu && !change;
    if (is_asleep) longest = 60 * SECOND; /* it has done nothing since the last look; `once` looks for its own stops, too */
    job.interval = change > job.last / 8 ? job.interval / 2 : is_asleep ? job.interval * 8 : job.interval * 2;
    if (job.interval > longest) job.interval = longest;
    if (job.interval < 20 * MS) job.interval = 20 * MS;
    if (is_over) own = used; /* the limit is that of all of them together */
    if (own > job.peak) job.peak = own;
    if (used > job.whole) job.whole = used;
    job.last = used;
    job.sampled = true;
    usec cost = now() - began_at;
    job.sample_at = now() + (job.interval > cost * 20 ? job.interval : cost * 20);
}

/* ---- starting ---- */
static bool fail(const char *op, const char *path) {
    failure.err = errno;
    failure.op = op;
    int n = 0;
    for (; path[n] && n < PATH_KEPT; n++) failure_path[n] = path[n];
    failure_path[n] = 0;
    return false;
}

/* ---- the job's files ----
 * A process of its own looks at them, since a folder may hang. It is there from before the start until after the end,
 * so that it knows which outputs were there before: a file is the attempt's if its inode, size, mtime or ctime is
 * another than then. No clock decides that. */
enum { NAMES_MAX = 20, NAME_BYTES = 4096, REMOTE_WAIT_S = 10 };

struct mark { dev_t dev; ino_t ino; off_t size; struct timespec modified, changed; };
struct marks { struct mark *all; size_t n, size; };

static struct marks before, inputs;
static struct { /* of the pattern that is looked at */
    bool is_after, lists;
    size_t found, fresh; /* files; fresh: not as they were before the start */
    int err;             /* why something of it could not be seen */
} look;
static struct { char **all; size_t n, size; } fresh_paths;
static usec granule_wait; /* until a change of what was seen can be told by its times */

static struct mark mark_of(const struct stat *st) {
    struct mark mark;
    memset(&mark, 0, sizeof mark);
    mark.dev = st->st_dev, mark.ino = st->st_ino, mark.size = st->st_size;
    mark.modified.tv_sec = st->st_mtim.tv_sec, mark.modified.tv_nsec = st->st_mtim.tv_nsec;
    mark.changed.tv_sec = st->st_ctim.tv_sec, mark.changed.tv_nsec = st->st_ctim.tv_nsec;
    return mark;
}

static int by_mark(const void *a, const void *b) { return memcmp(a, b, sizeof(struct mark)); }

static int by_inode(const void *a, const void *b) {
    return memcmp(a, b, offsetof(struct mark, size));
}

static void add_mark(struct marks *to, const struct stat *st) {
    if (to->n == to->size) to->all = need(realloc(to->all, (to->size = to->size * 2 + 64) * sizeof *to->all));
    to->all[to->n++] = mark_of(st);
}

static bool is_remote(const char *path) { /* or of a kind that we don't know: what others wrote there may come late */
    char name[PATH_KEPT];
    struct statfs fs;
    snprintf(name, sizeof name, "%s", *path == '/' ? path : ".");
    while (statfs(name, &fs)) {
        char *slash = strrchr(name, '/');
        if (!slash || slash == name) return false;
        *slash = 0;
    }
    switch ((unsigned)fs.f_type) {
    case 0xef53: case 0x58465342: case 0x9123683e: case 0x01021994: case 0x794c7630: case 0x2fc12fc1:
    case 0xf2f52010: case 0x858458f6: case 0xca451a4e: return false; /* ext, xfs, btrfs, tmpfs, overlay, zfs, … */
    default: return true;
    }
}

static void note_granule(const struct stat *st, const char *path) { /* a change right after this must show */
    struct timespec t;
    const bool remote = is_remote(path);
    const usec granule = st->st_ctim.tv_nsec ? (remote ? 50 : 20) * MS : 2 * SECOND;
    const usec doubt = remote ? 3600 * SECOND : granule; /* another machine's clock may be wrong by that much */
    clock_gettime(CLOCK_REALTIME, &t);
    const usec age = (t.tv_sec - st->st_ctim.tv_sec) * SECOND + (t.tv_nsec - st->st_ctim.tv_nsec) / 1000;
    if (age < doubt && granule > granule_wait) granule_wait = granule;
}

static void see_file(const char *path, const struct stat *st) {
    const struct mark mark = mark_of(st);
    look.found++;
    if (!look.is_after) {
        if (!look.lists) add_mark(&inputs, st);
        else add_mark(&before, st), note_granule(st, path);
        return;
    }
    if (before.n && bsearch(&mark, before.all, before.n, sizeof mark, by_mark)) return;
    look.fresh++;
    if (!looker.cleans && fresh_paths.n >= NAMES_MAX) return;
    if (fresh_paths.n == fresh_paths.size)
        fresh_paths.all = need(realloc(fresh_paths.all, (fresh_paths.size = fresh_paths.size * 2 + 64) * sizeof(char *)));
    fresh_paths.all[fresh_paths.n++] = need(strdup(path));
}

static bool is_absent(int err) { return err == ENOENT || err == ENOTDIR || err == ELOOP; }

static void note_unseen(int err) {
    if (!is_absent(err)) look.err = err;
}

static void see_below(char *path, size_t n) { /* all files below a folder; links to folders are files */
    struct stat st;
    errno = 0;
    DIR *folder = opendir(path);
    if (!folder) note_unseen(errno);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        const size_t more = strlen(e->d_name) + 1;
        if (n + more >= PATH_KEPT) {
            look.err = ENAMETOOLONG;
            continue;
        }
        sprintf(path + n, "/%s", e->d_name);
        if (lstat(path, &st)) note_unseen(errno);
        else if (S_ISDIR(st.st_mode)) see_below(path, n + more);
        else see_file(path, &st);
    }
    path[n] = 0;
    if (folder) closedir(folder);
}

static void see(char *path, size_t n) {
    struct stat st;
    if (stat(path, &st)) note_unseen(errno);
    else if (!S_ISDIR(st.st_mode)) see_file(path, &st);
    else {
        while (n > 1 && path[n - 1] == '/') path[--n] = 0;
        see_below(path, n);
    }
}

static void match(char *path, size_t n, const char *rest) { /* path: a folder and a slash, or empty */
    const char *end = strchrnul(rest, '/');
    const int part = (int)(end - rest);
    if (!strpbrk(rest, "*?[")) {
        if (snprintf(path + n, PATH_KEPT - n, "%s", rest) >= (int)(PATH_KEPT - n)) look.err = ENAMETOOLONG;
        else see(path, strlen(path));
        path[n] = 0;
        return;
    }
    const bool deep = part == 2 && !strncmp(rest, "**", 2);
    char wanted[NAME_BYTES];
    if (part >= (int)sizeof wanted) return;
    snprintf(wanted, sizeof wanted, "%.*s", part, rest);
    if (deep && !*end) {
        if (!n) strcpy(path, "."); /* as the folder itself */
        see(path, strlen(path));
        path[n] = 0;
        return;
    }
    if (deep) match(path, n, end + 1);
    else if (!strpbrk(wanted, "*?[")) { /* a plain name on the way */
        if (n + (size_t)part + 1 >= PATH_KEPT) return;
        sprintf(path + n, "%s/", wanted);
        match(path, n + (size_t)part + 1, end + 1);
        path[n] = 0;
        return;
    }
    DIR *folder = opendir(n ? path : ".");
    if (!folder) note_unseen(errno);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        struct stat st;
        const size_t more = strlen(e->d_name);
        if (n + more + 1 >= PATH_KEPT || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        strcpy(path + n, e->d_name);
        if (deep ? *e->d_name != '.' && !lstat(path, &st) && S_ISDIR(st.st_mode)
                 : !fnmatch(wanted, e->d_name, FNM_PERIOD | FNM_NOESCAPE)) {
            if (!*end) see(path, n + more);
            else {
                strcpy(path + n + more, "/");
                match(path, n + more + 1, deep ? rest : end + 1);
            }
        }
        path[n] = 0;
    }
    if (folder) closedir(folder);
}

static void look_at(const char *pattern) { /* a name that is there is itself, whatever characters it has */
    char path[PATH_KEPT] = "";
    struct stat st;
    look.found = look.fresh = 0;
    look.err = 0;
    if (strlen(pattern) < sizeof path && !lstat(pattern, &st)) {
        strcpy(path, pattern);
        see(path, strlen(path));
    } else match(path, 0, pattern);
}

static _Noreturn void answer(void) { /* what is in the line, and no more */
    for (size_t done = 0; done < line_len;) {
        const ssize_t n = write(1, line + done, line_len - done);
        if (n <= 0) break;
        done += (size_t)n;
    }
    _exit(0);
}

static size_t names_left, name_bytes_left;
static bool is_first_name;

static void say_name(const char *name) { /* of a list; names that are too many are counted by their list's reader */
    if (!names_left || strlen(name) > name_bytes_left) return;
    names_left--, name_bytes_left -= strlen(name);
    if (!is_first_name) say(",");
    is_first_name = false;
    say_text(name);
}

static void open_names(const char *list) {
    say(",\"%s\":[", list);
    is_first_name = true;
}

static bool is_input(const struct stat *st) {
    const struct mark mark = mark_of(st);
    return inputs.n && bsearch(&mark, inputs.all, inputs.n, sizeof mark, by_inode);
}

static bool remove_fresh(const char *path) { /* a file that the attempt wrote and that is ours; never an input */
    struct stat st;
    return !lstat(path, &st) && !S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !is_input(&st) && !unlink(path);
}

static void look_before(void) {
    char absent[PATH_KEPT] = "";
    int err = ENOENT;
    for (size_t i = 0; i < order.files_n; i++) {
        look.lists = *order.files[i] != 'i';
        look_at(order.files[i] + 2);
        if (look.lists || look.found) continue;
        if (look.err) err = look.err;
        const size_t n = strlen(absent);
        snprintf(absent + n, sizeof absent - n, "%s%s", n ? ", " : "", order.files[i] + 2);
    }
    if (before.n) qsort(before.all, before.n, sizeof *before.all, by_mark);
    if (inputs.n) qsort(inputs.all, inputs.n, sizeof *inputs.all, by_inode);
    line_len = 0;
    if (*absent) {
        say("%d %s", err, absent);
        line_len++; /* the NUL is the end */
        answer();
    }
    if (granule_wait) usleep((useconds_t)granule_wait);
    if (write(1, "", 1) != 1) _exit(1);
}

static void look_after(char how) { /* how: g it ended well, f it failed, k it failed and nothing is removed */
    enum { MISSING, OLD, UNSEEN, STATES };
    static const char *const lists[] = {"missing", "old", "unseen"};
    const usec until = now() + REMOTE_WAIT_S * SECOND;
    unsigned char *state = need(calloc(order.files_n + 1, 1));
    size_t outputs = 0, wrong, fresh;
    struct timespec t;
    look.is_after = true;
    for (;;) {
        bool may_come = false;
        while (fresh_paths.n) free(fresh_paths.all[--fresh_paths.n]);
        outputs = wrong = fresh = 0;
        for (size_t i = 0; i < order.files_n; i++) {
            state[i] = STATES;
            if (*order.files[i] == 'i') continue;
            outputs++;
            look_at(order.files[i] + 2);
            fresh += look.fresh;
            if (look.fresh || *order.files[i] == 'p') continue;
            state[i] = look.found ? OLD : look.err ? UNSEEN : MISSING;
            wrong++;
            may_come = may_come || is_remote(order.files[i] + 2);
        }
        if (how != 'g' || !may_come || now() >= until) break;
        usleep(200 * 1000);
    }
    clock_gettime(CLOCK_REALTIME, &t);
    line_len = 0;
    names_left = NAMES_MAX, name_bytes_left = NAME_BYTES;
    say("{\"at\":%.6f,\"outputs\":%zu,\"wrong\":%zu,\"written\":%zu", (double)t.tv_sec + (double)t.tv_nsec / 1e9, outputs,
        wrong, fresh);
    for (int kind = 0; kind < STATES; kind++) {
        open_names(lists[kind]);
        for (size_t i = 0; i < order.files_n; i++)
            if (state[i] == kind) say_name(order.files[i] + 2);
        say("]");
    }
    if (looker.cleans && (how == 'f' || (how == 'g' && wrong))) {
        size_t removed = 0;
        open_names("names");
        for (size_t i = 0; i < fresh_paths.n; i++)
            if (remove_fresh(fresh_paths.all[i])) removed++, say_name(fresh_paths.all[i]);
        say("],\"removed\":%zu}", removed);
    } else {
        open_names("names");
        for (size_t i = 0; i < fresh_paths.n; i++) say_name(fresh_paths.all[i]);
        say("],\"removed\":0}");
    }
    answer();
}

static _Noreturn void looker_main(pid_t witness, int from, int to) {
    char how = 'k';
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != witness || dup2(from, 0) < 0 || dup2(to, 1) < 0) _exit(1);
    syscall(SYS_close_range, 2u, ~0u, 0u);
    setlocale(LC_CTYPE, "C.UTF-8"); /* a ? is a character */
    if (order.value['d'] && chdir(order.value['d'])) {
        if (write(1, "", 1) != 1) _exit(1); /* the start says it */
    } else look_before();
    if (read(0, &how, 1) == 1) look_after(how);
    _exit(0);
}

static void end_looker(void) {
    if (looker.ask >= 0) close(looker.ask);
    if (looker.answer >= 0) close(looker.answer);
    looker.ask = looker.answer = -1;
    if (looker.pid > 0) kill(looker.pid, SIGKILL);
    if (looker.pid > 0 && !job.stuck) waitpid(looker.pid, NULL, 0);
    looker.pid = 0;
}

static bool start_looker(void) { /* false: an input is missing */
    int to[2], from[2];
    char text[PATH_KEPT + 16] = "";
    size_t n = 0;
    ssize_t got = 1;
    const pid_t own = getpid();
    if (pipe2(to, O_CLOEXEC)) return fail("fork", "");
    if (pipe2(from, O_CLOEXEC)) {
        const int why = errno;
        close(to[0]), close(to[1]);
        errno = why;
        return fail("fork", "");
    }
    looker.pid = fork();
    if (!looker.pid) looker_main(own, to[0], from[1]);
    const int why = errno;
    close(to[0]), close(from[1]);
    looker.ask = to[1], looker.answer = from[0];
    errno = why;
    if (looker.pid < 0) {
        fail("fork", "");
        end_looker();
        return false;
    }
    while (n < sizeof text - 1 && (got = read(looker.answer, text + n, 1)) == 1 && text[n]) n++;
    text[n] = 0;
    if (got != 1) { /* whoever looked was ended: so is the job, which has no other process yet */
        job.pid = looker.pid;
        looker.pid = 0;
        end_looker();
    }
    if (!n || got != 1) return true;
    char *pattern;
    errno = (int)strtol(text, &pattern, 10);
    fail("input", *pattern ? pattern + 1 : pattern);
    end_looker();
    return false;
}

static bool has_failed(void) {
    for (struct act *a = acted; a < acted + job.acts; a++)
        if (strcmp(a->what, "warn") && strcmp(a->what, "signal")) return true;
    return job.raw || ((job.oom || job.oomd) && !looker.unless_oom);
}

static void ask_looker(void) { /* the job has ended, and nobody of it is left who could write */
    const char how = !has_failed() ? 'g' : job.warned && looker.unless_warned ? 'k' : 'f';
    looker.since = now();
    looker.is_told = false;
    fcntl(looker.answer, F_SETFL, O_NONBLOCK);
    if (write(looker.ask, &how, 1) == 1) return;
    end_looker();
    job.phase = RECORD;
}

static void hear_looker(void) {
    const size_t room = sizeof looker_said - 1 - looker.said_n;
    const ssize_t n = room ? read(looker.answer, looker_said + looker.said_n, room) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) looker.said_n += (size_t)n;
    if (n > 0) return;
    if (!looker.said_n || looker_said[looker.said_n - 1] != '}') looker.said_n = 0;
    looker_said[looker.said_n] = 0;
    end_looker();
    job.phase = RECORD;
}

static void tell_looking(void) {
    looker.is_told = true;
    open_line("look");
    say(",\"key\":\"%s\",\"at\":%.6f", job.key, seconds(looker.since - job.start));
    close_line();
    tell();
}

static void stop_looking(const char *why) { /* whoever looks may be stuck: the next job must not have it */
    note(why, SIGKILL);
    job.stuck = true;
    looker.said_n = 0;
    end_looker();
    job.phase = RECORD;
}

static bool add_file(char *text) { /* KIND PATTERN */
    if (!strchr("iop", *text) || text[1] != ' ' || !text[2]) return false;
    order.files = need(realloc(order.files, (order.files_n + 1) * sizeof *order.files));
    order.files[order.files_n++] = text;
    return true;
}

static void child_fails(const char *op, const char *path) {
    fail(op, path);
    _exit(127);
}

static void child_makes_folders(const char *path) { /* those above it; a failure is the next open's to tell */
    static SPARE char folder[PATH_KEPT];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) return;
    for (char *p = folder + 1; folder[0] && (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(folder, 0755);
    }
}

static int open_now(int at, const char *name, int how) { /* waits for a lease, never for a FIFO's other end */
    struct timespec pause = {0, 10 * 1000 * 1000};
    struct stat st;
    for (;;) {
        const int fd = openat(at, name, how | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EWOULDBLOCK || fstatat(at, name, &st, 0) || !S_ISREG(st.st_mode)) return fd;
        nanosleep(&pause, NULL);
    }
}

static void child_opens(const char *op, const char *path, int flags, int to) {
    int fd = open_now(AT_FDCWD, path, flags);
    if (fd < 0 && errno == ENOENT && flags & O_CREAT) {
        child_makes_folders(path);
        fd = open_now(AT_FDCWD, path, flags);
    }
    if (fd < 0 || fcntl(fd, F_SETFL, flags & O_APPEND) || dup2(fd, to) < 0) child_fails(op, path);
}

static void child_opens_own(const char *path, int flags) { /* a name of Aver's: not what somebody else put there */
    static SPARE char folder[PATH_KEPT];
    const char *slash = strrchr(path, '/'), *name = path;
    struct stat st;
    int at = AT_FDCWD, fd;
    if (*order.value['O'] == '2' && slash && slash > path) { /* the folder's name is Aver's as well */
        errno = ENAMETOOLONG;
        if (snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path) >= PATH_KEPT) child_fails("stdout", path);
        name = slash + 1;
        at = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool good = at >= 0 && !fstat(at, &st) && st.st_uid == geteuid() && !(st.st_mode & 022);
        if (at >= 0 || errno == ENOTDIR || errno == ELOOP) errno = EEXIST;
        if (!good) child_fails("stdout", folder);
    }
    fd = openat(at, name, (flags & ~O_TRUNC) | O_EXCL | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        fd = open_now(at, name, (flags & ~(O_TRUNC | O_CREAT)) | O_NOFOLLOW);
        bool good = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
        if (fd >= 0 || errno == ELOOP || errno == ENXIO) errno = EEXIST;
        if (!good) child_fails("stdout", path);
        if (flags & O_TRUNC && ftruncate(fd, 0)) child_fails("stdout", path);
    }
    if (fd < 0 || fcntl(fd, F_SETFL, flags & O_APPEND) || dup2(fd, 1) < 0) child_fails("stdout", path);
}

static void child_opens_all(void) {
    const char *in_file = order.value['i'], *out_file = order.value['o'], *err_file = order.value['r'];
    const int flags = O_WRONLY | O_CREAT | O_APPEND | (order.value['A'] ? 0 : O_TRUNC);
    const bool given = order.value['F'], same = out_file && (err_file ? !strcmp(err_file, out_file) : !given);
    errno = EBADF;
    if (given && streams_n < 3) child_fails("stdin", "");
    for (int i = 0; i < 3 && given; i++) dup2(streams[i], i);
    if (in_file) child_opens("stdin", in_file, O_RDONLY, 0);
    if (out_file && order.value['O']) child_opens_own(out_file, flags);
    else if (out_file) child_opens("stdout", out_file, flags, 1);
    if (same) dup2(1, 2);
    else if (err_file) child_opens("stderr", err_file, flags, 2);
}

static void child_sets_limits(void) {
    for (int i = 0; i < order.limits; i++) {
        struct rlimit own, want = order.limit[i].value;
        if (getrlimit(order.limit[i].resource, &own)) child_fails("limit", "");
        if (want.rlim_max > own.rlim_max) want.rlim_max = own.rlim_max;
        if (want.rlim_cur > want.rlim_max) want.rlim_cur = want.rlim_max;
        if (want.rlim_cur == own.rlim_cur && want.rlim_max == own.rlim_max) continue;
        if (setrlimit(order.limit[i].resource, &want)) child_fails("limit", "");
    }
}

static void child_tries(const char *path, char **argv) { /* what it becomes is noted first: it may soon become something else */
    char mark[2];
    int fd = job.warn_scope == 'p' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    job.program.st_ino = 0;
    if (fd >= 0) {
        bool is_known = !fstat(fd, &job.program) && read(fd, mark, 2) == 2 && memcmp(mark, "#!", 2);
        if (!is_known) job.program.st_ino = 0;
        close(fd);
    }
    execve(path, argv, environ);
}

static char task_pid[sizeof "SLURM_TASK_PID=" + 20];
static const char *child_path; /* what could not be started */

static bool child_finds(char **argv) { /* becomes the program; or false, and errno and child_path say why not */
    const char *name = argv[0], *given = getenv("PATH"), *list = given ? given : "/bin:/usr/bin", *next;
    int refused = ENOENT;
    child_path = name;
    if (strchr(name, '/') || !*name) {
        child_tries(name, argv);
        return false;
    }
    for (; list; list = *next ? next + 1 : NULL) {
        static SPARE char path[PATH_KEPT + 256];
        next = strchrnul(list, ':');
        int n = snprintf(path, sizeof path, "%.*s%s%s", (int)(next - list), list, next > list ? "/" : "", name);
        if (n >= (int)sizeof path) continue;
        if (access(path, F_OK) && errno == ENOENT) continue; /* sooner said than by an exec */
        child_tries(path, argv);
        if (errno == EACCES) refused = access(path, F_OK) ? refused : EACCES; /* not by a closed folder */
        else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE) {
            child_path = path;
            return false;
        }
    }
    errno = refused;
    return false;
}

static bool is_plain_bash(void) { /* it has no functions, files and options that could change what a command means */
    const char *path = getenv("PATH");
    if (path && strchr(path, '~')) return false; /* bash looks in the folder that is meant */
    for (char **one = environ; *one; one++)
        if (!strncmp(*one, "BASH_FUNC_", 10) || !strncmp(*one, "AVER_BASH_ENV=", 14) ||
            !strncmp(*one, "SHELLOPTS=", 10) || !strncmp(*one, "BASHOPTS=", 9))
            return false;
    return true;
}

static void child_execs(void) {
    snprintf(task_pid, sizeof task_pid, "SLURM_TASK_PID=%d", (int)getpid());
    if (order.bares && is_plain_bash()) child_finds(order.bare); /* or the shell says what is wrong */
    child_finds(order.argv);
    child_fails("exec", child_path);
}

/* ---- warm calls ----
 * The server, our child, keeps one process forked in advance: the spare, which is our child too, since the process
 * between them has ended and we are sub-reaper. A call is handed to the spare, with the files that were opened for it;
 * without a spare the order's own command is started. */
#define SPARE_WAIT (100 * MS) /* for the next spare of a server that has made one before */

static bool is_living_child(pid_t pid) {
    siginfo_t ended = {.si_pid = 0};
    return pid > 0 && !waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) && !ended.si_pid;
}

static void end_child(pid_t pid) {
    if (pid > 0 && !kill(pid, SIGKILL)) waitpid(pid, NULL, 0);
}

static void end_warm(void) { /* a spare that is just being made sees the end of the link */
    if (warm.link >= 0) close(warm.link);
    end_child(warm.spare);
    end_child(warm.server);
    for (char **word = warm.words; word && *word; word++) free(*word);
    free(warm.words);
    if (*warm_cgroup) {
        rmdir(warm_cgroup);
        *warm_cgroup = 0;
    }
    memset(&warm, 0, sizeof warm);
    warm.link = -1;
}

static __attribute__((noinline)) pid_t spawn_server(char **env, int link, int procs) { /* shares our memory until its exec */
    spread();
    pid_t pid = vfork();
    if (pid) return pid;
    setsid();
    if (procs >= 0 && write(procs, "0", 1) < 0) _exit(126);
    if (order.value['d'] && chdir(order.value['d'])) _exit(126);
    dup2(link, 3);
    set_mask(SIG_SETMASK, 0);
    execve(warm.words[0], warm.words, env);
    _exit(127);
}

static void start_warm(void) { /* with the environment of this order, of which the order after it has the same */
    int ends[2], procs = -1;
    char path[PATH_KEPT + 16];
    size_t n = 0;
    warm.words = need(calloc(order.warms + 1, sizeof *warm.words));
    for (size_t i = 0; i < order.warms; i++) warm.words[i] = need(strdup(order.warm[i]));
    if (home.version && snprintf(warm_cgroup, sizeof warm_cgroup, "%s-warm", home.path) < (int)sizeof warm_cgroup) {
        mkdir(warm_cgroup, 0755);
        snprintf(path, sizeof path, "%s/cgroup.procs", warm_cgroup);
        if ((procs = open(path, O_WRONLY | O_CLOEXEC)) < 0) return;
    }
    if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        for (char **one = environ; *one; one++) n++;
        char **env = need(calloc(n + 1, sizeof *env)), **to = env;
        for (char **one = environ; *one; one++)
            if (strncmp(*one, "AVER_KEY=", 9)) *to++ = *one;
        const pid_t pid = spawn_server(env, ends[1], procs);
        free(env);
        close(ends[1]);
        warm.link = ends[0];
        warm.server = pid > 0 ? pid : 0;
    }
    if (procs >= 0) close(procs);
}

static void find_spare(void) {
    struct pollfd link = {warm.link, POLLIN, 0};
    const usec until = now() + (warm.is_proven ? SPARE_WAIT : 0);
    if (is_living_child(warm.spare)) return;
    if (warm.spare) waitpid(warm.spare, NULL, WNOHANG);
    warm.spare = 0;
    while (!warm.spare && warm.link >= 0) {
        const usec left = until - now();
        char text[16] = "";
        if (poll(&link, 1, left > 0 ? (int)((left + MS - 1) / MS) : 0) <= 0) return;
        if (recv(warm.link, text, sizeof text - 1, MSG_DONTWAIT) <= 0) return; /* it is gone */
        const pid_t pid = (pid_t)strtol(text, NULL, 10);
        if (is_living_child(pid)) warm.spare = pid;
        warm.is_proven = warm.is_proven || warm.spare;
    }
}

static void prepare_warm(void) { /* the server that the order names, and no other */
    bool is_same = warm.words && order.warms;
    for (size_t i = 0; i < order.warms && is_same; i++) is_same = warm.words[i] && !strcmp(warm.words[i], order.warm[i]);
    is_same = is_same && !warm.words[order.warms];
    if (is_same) find_spare();
    if (!is_same || (warm.is_proven && !warm.spare && !is_living_child(warm.server))) end_warm();
    if (order.warms && !warm.words) start_warm(); /* one that never came so far is not started again */
}

static pid_t heir; /* the spare that the child hands its order to; 0: the child is the job */

static bool heir_joins(void) { /* the cgroup of the job */
    char text[16];
    const int n = snprintf(text, sizeof text, "%d", heir);
    if (job.procs >= 0) return write(job.procs, text, (size_t)n) == n;
    return !home.version || spit_number(home.path, "cgroup.procs", heir);
}

static SPARE struct { char text[8192]; size_t length; } gathered; /* of the order, to write much at once */

static bool put_gathered(int fd) {
    const ssize_t written = write(fd, gathered.text, gathered.length);
    const bool good = written == (ssize_t)gathered.length;
    gathered.length = 0;
    return good;
}

static bool put(int fd, char tag, const char *text) {
    const size_t length = strlen(text) + 1;
    if (gathered.length + 1 + length > sizeof gathered.text && !put_gathered(fd)) return false;
    if (1 + length > sizeof gathered.text) {
        const struct iovec parts[2] = {{&tag, 1}, {(void *)text, length}};
        return writev(fd, parts, 2) == (ssize_t)length + 1;
    }
    gathered.text[gathered.length] = tag;
    memcpy(gathered.text + gathered.length + 1, text, length);
    gathered.length += 1 + length;
    return true;
}

static bool put_order(int fd) {
    char text[96];
    snprintf(text, sizeof text, "%d", heir);
    gathered.length = 0;
    bool good = put(fd, 'p', text);
    snprintf(text, sizeof text, "%d", order.umask);
    if (order.umask >= 0) good = good && put(fd, 'u', text);
    for (int i = 0; i < order.limits; i++) {
        const struct rlimit *want = &order.limit[i].value;
        const long long soft = want->rlim_cur == RLIM_INFINITY ? -1 : (long long)want->rlim_cur;
        const long long hard = want->rlim_max == RLIM_INFINITY ? -1 : (long long)want->rlim_max;
        snprintf(text, sizeof text, "%u %lld %lld", order.limit[i].resource, soft, hard);
        good = good && put(fd, 'l', text);
    }
    for (int i = 0; order.value['B'] && i < CPU_SETSIZE; i++) {
        snprintf(text, sizeof text, "%d", i);
        if (CPU_ISSET(i, &order.cpus)) good = good && put(fd, 'B', text);
    }
    for (char **one = order.argv; *one; one++) good = good && put(fd, 'a', *one);
    for (char **one = environ; *one; one++) good = good && put(fd, 'E', *one);
    return good && put_gathered(fd);
}

static _Noreturn void child_hands_over(void) { /* what it has opened, where it is, and the rest of the order */
    int fds[5] = {0, 1, 2, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), memfd_create("order", MFD_CLOEXEC)};
    union { struct cmsghdr align; char space[CMSG_SPACE(sizeof fds)]; } control = {.space = {0}};
    struct iovec part = {"", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_LEN(sizeof fds);
    control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.align), fds, sizeof fds);
    if (fds[3] >= 0 && fds[4] >= 0 && put_order(fds[4]))
        is_handed_over = sendmsg(warm.link, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
    _exit(0);
}

static bool is_born_inside;

static struct msghdr *about_errors(void) { /* one descriptor */
    static union { struct cmsghdr align; char space[CMSG_SPACE(sizeof(int))]; } control;
    static char byte[1];
    static struct iovec part = {byte, 1};
    static struct msghdr message;
    message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_LEN(sizeof(int));
    control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    return &message;
}

static void child_hands_errors(void) { /* the job may rename its file, and have another one as its stderr soon */
    struct msghdr *message = about_errors();
    struct stat st;
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(message)), &(int){2}, sizeof(int));
    if (!fstat(2, &st) && S_ISREG(st.st_mode)) sendmsg(errors_link[1], message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_errors(void) {
    struct msghdr *message = about_errors();
    const bool came = recvmsg(errors_link[0], message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1;
    const struct cmsghdr *head = came ? CMSG_FIRSTHDR(message) : NULL;
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&errors, CMSG_DATA(head), sizeof errors);
    for (int i = 0; i < 2; i++) {
        close(errors_link[i]);
        errors_link[i] = -1;
    }
}

static _Noreturn void child_main(void) {
    if (slot) setsid();
    if (heir && !heir_joins()) _exit(0);
    if (job.procs >= 0 && !is_born_inside && write(job.procs, "0", 1) < 0) failure.join = errno;
    if (order.umask >= 0) umask((mode_t)order.umask);
    if (order.value['d'] && chdir(order.value['d'])) child_fails("chdir", order.value['d']);
    child_opens_all();
    if (errors_link[1] >= 0) child_hands_errors();
    if (heir) child_hands_over();
    child_sets_limits();
    if (order.value['B'] && !near.is_set) sched_setaffinity(0, sizeof order.cpus, &order.cpus); /* CPUs that are gone: it runs on all */
    set_mask(SIG_SETMASK, 0);
    child_execs();
    _exit(127);
}

static __attribute__((noinline)) pid_t spawn(void) { /* shares our memory until its exec; nothing here is live across */
#if defined(__x86_64__)
    if (job.cgroup_version == 2 && job.procs >= 0) { /* born in its cgroup, where the kernel can do that */
        static struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
                        set_tid_size, cgroup; } how;
        long pid;
        how.flags = 0x200000000ULL | CLONE_VM | CLONE_VFORK; /* CLONE_INTO_CGROUP */
        how.exit_signal = SIGCHLD;
        how.cgroup = (uint64_t)job.cgroup;
        is_born_inside = true;
        __asm__ volatile("syscall" : "=a"(pid) : "a"(435L), "D"(&how), "S"(sizeof how) : "rcx", "r11", "memory");
        if (pid == 0) child_main();
        if (pid > 0) return (pid_t)pid;
    }
#endif
    is_born_inside = false;
    pid_t pid = vfork();
    if (pid == 0) child_main();
    return pid;
}

static pid_t spawn_warm(void) { /* the job's process is the spare if there is one that takes it */
    heir = warm.spare;
    warm.spare = 0;
    is_handed_over = false;
    const pid_t helper = heir ? spawn() : 0;
    if (helper > 0) waitpid(helper, NULL, 0);
    const pid_t taken = heir;
    heir = 0;
    if (is_handed_over) return taken;
    end_child(taken);
    return failure.op ? helper : spawn();
}

static struct { char *text; size_t size; struct stat from; } env_file; /* the last one: jobs of a run have the same */

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool read_env_file(const char *path) {
    struct stat st;
    if (stat(path, &st)) return false;
    if (env_file.text && is_same_file(&st, &env_file.from)) return true;
    free(env_file.text);
    env_file.text = need(malloc((size_t)st.st_size + 1));
    const ssize_t n = slurp(AT_FDCWD, path, env_file.text, (size_t)st.st_size + 1);
    env_file.size = (size_t)st.st_size;
    env_file.from = st;
    if (n == st.st_size) return true;
    if (n >= 0) errno = EIO; /* a part of it is not the environment that the job was submitted with */
    free(env_file.text);
    env_file.text = NULL;
    return false;
}

static bool load_env(const char *path) {
    size_t count = 0;
    if (!read_env_file(path)) return false;
    char *const end = env_file.text + env_file.size;
    for (char *p = env_file.text; p < end; p += strlen(p) + 1) count++;
    environ = order.env = need(calloc(count + 1, sizeof *order.env));
    for (char *p = env_file.text; p < end; p += strlen(p) + 1) *order.env++ = p;
    order.env = environ;
    return true;
}

static void add_to_env(void) { /* to `environ`, which nobody but the job needs; NAME alone removes */
    static char key[KEY_MAX + 16];
    snprintf(key, sizeof key, "AVER_KEY=%s", job.key);
    for (size_t i = 0; i < order.overs; i++) putenv(order.over[i]);
    for (size_t i = 0; i < order.unsets; i++) {
        char *value = strchr(order.unset[i], '=');
        *value = 0;
        const bool is_set = getenv(order.unset[i]);
        *value = '=';
        if (!is_set) putenv(order.unset[i]);
    }
    putenv(key);
    if (getenv("SLURM_JOB_ID")) putenv(strcpy(task_pid, "SLURM_TASK_PID=0")); /* the child fills it in */
}

static void sweep(void) { /* the child is gone or never was; from here on only left-over processes are waited for */
    replace_canary(0);
    drop_errors();
    job.phase = SWEEP;
    job.retry_at = 0;
    job.sweep_until = job.end + 10 * SECOND;
}

static bool launch(void) {
    if (order.value['e'] && !load_env(order.value['e'])) return fail("env", order.value['e']);
    if (order.files_n && !start_looker()) return false;
    if (job.pid) return true;
    add_to_env();
    if (order.value['g']) open_cgroup(order.value['g']);
    else if (!slot) find_cgroup();
    if (slot && !job.cgroup_version) job.around_base = around_kills();
    prepare_warm();
    stay_near();
    if (*job.named && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, errors_link)) *job.named = 0;
    pid_t pid = spawn_warm();
    job.end = now();
    if (*job.named) take_errors();
    close_streams();
    if (failure.join) leave_cgroup();
    if (job.procs >= 0 && !is_in_pair()) close(job.procs);
    job.procs = -1;
    if (pid < 0) return fail("fork", "");
    job.pid = pid;
    if (failure.op) waitpid(pid, NULL, 0);
    if (!failure.op && job.warn_scope == 'p' && !job.program.st_ino) look_at_program(&job.program);
    return !failure.op;
}

static void start_job(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    memset((void *)&failure, 0, sizeof failure);
    job.wall = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    job.start = job.end = now();
    open_line("begin");
    say(",\"key\":\"%s\",\"at\":%.6f,\"boot\":\"%s\"", job.key, job.wall, boot);
    if (order.value['B']) say(",\"cpus\":\"%s\"", order.value['B']);
    close_line();
    if (!keep()) { /* nothing was started, nothing is written */
        fail("journal", "");
        make_record(false);
        tell();
        return;
    }
    if (!launch()) {
        end_looker();
        sweep();
        return;
    }
    job.phase = RUN;
    job.interval = 20 * MS;
    job.sample_at = job.start + job.interval;
    open_line("start");
    say(",\"key\":\"%s\",\"pid\":%d,\"witness\":%d,\"at\":%.6f", job.key, job.pid, getpid(), job.wall);
    say(",\"mem\":\"%s\"", how_memory_is_watched());
    say_cgroup();
    say_due();
    close_line();
    keep(); /* who finds us dead sees whose processes to end; without room it does without */
    tell_soon();
}

/* ---- ending ---- */
static void remove_cgroup(const char *path) { rmdir(path); }

static size_t count_members(void) { /* of the cgroup, inner ones too; none is ours to keep */
    pids_n = 0;
    if (job.cgroup_version == 2 && !job.own_cgroup) add_all_from(home.members);
    else if (job.cgroup_version == 2 && is_in_pair()) add_all_from(pair.procs);
    else add_all_in(job.cgroup, "cgroup.procs"); /* v1 keeps the list of an open file for a second */
    each_inner(job.cgroup_path, add_members);
    return pids_n;
}

static void finish(void) { /* no descendant is left: close the books; comes again while the cgroup is not empty */
    if (job.cgroup >= 0) no_inner = !has_inner(job.cgroup_path);
    if (job.cgroup >= 0 && !job.stuck && count_members()) {
        no_inner = false;
        job.stuck = now() >= job.sweep_until;
        kill_all(); /* who is no descendant any more, or never was */
        if (!job.stuck) return;
    }
    if (job.stuck) job.stays = (bytes)pids_n;
    count_unwaited();
    if (job.cgroup_version) read_cgroup_end();
    if (job.cgroup >= 0) {
        if (job.cgroup_version == 2) read_cpu_end(); /* then all is known */
        if (job.own_cgroup && order.value['n']) read_forks_end();
        each_inner(job.cgroup_path, remove_cgroup);
        if (job.own_cgroup && !is_pair_clean()) close_own_cgroup();
        job.cgroup = -1;
    }
    no_inner = false;
    const bool is_killed = !failure.op && WIFSIGNALED(job.raw) && WTERMSIG(job.raw) == SIGKILL;
    const bool is_short = job.end - job.start < SECOND && job.cgroup_version; /* and its cgroup counts its own */
    if (is_killed || (job.sampled && !is_short)) {
        bytes count = host_oom_kills();
        job.hostoom = count > host_oom_seen ? count - host_oom_seen : 0;
        host_oom_seen = count;
    }
    if (slot && !failure.op && !job.cgroup_version) read_around_end();
    job.phase = looker.pid > 0 ? LOOK : RECORD;
    job.retry_at = 0;
    if (job.phase == LOOK) ask_looker();
    else end_looker();
}

static void save(void) { /* into the journal, then to the coordinator; without room, after 1 s, to it alone */
    make_record(true);
    bool kept = keep();
    job.retry_at = now() + 100 * MS;
    if (!kept && (conn < 0 || ++job.tries <= 10)) return; /* until there is room, or somebody comes */
    if (!kept) make_record(false);
    tell();
    if (kept || conn >= 0) job.phase = IDLE;
}

static void note_passed_limit(void) { /* it ended after its limit, and before we came to act on that */
    if (!job.ending && job.limit >= 0 && job.end - job.start - job.suspended >= job.limit)
        note_at(job.end - job.start, "time", 0);
}

static void reap(void) {
    struct rusage use;
    siginfo_t ended;
    int raw, none;
    while (ended.si_pid = 0, !(none = waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT)) && ended.si_pid) {
        const pid_t pid = ended.si_pid;
        const bool is_others = pid != job.pid && (is_warm(pid) || is_apart(pid));
        if (unheard.n) look_at_unheard(pid == job.pid);
        if (job.warned && pid == job.pid) ask_shell();
        wait4(pid, &raw, 0, &use);
        if (is_others || pid == canary || pid == looker.pid || pid == clerk) {
            if (pid == clerk) clerk = 0;
            if (pid == canary) canary = 0;
            if (pid == warm.server) warm.server = 0;
            if (pid == warm.spare) warm.spare = 0;
            if (pid == looker.pid) looker.pid = 0;
            continue;
        }
        timeradd(&job.user, &use.ru_utime, &job.user);
        timeradd(&job.sys, &use.ru_stime, &job.sys);
        if ((bytes)use.ru_maxrss * 1024 > job.maxrss) job.maxrss = (bytes)use.ru_maxrss * 1024;
        if (pid == job.pid && job.phase == RUN) {
            job.raw = raw;
            job.end = now();
            resume();
            note_passed_limit();
            sweep();
        } else if (job.phase == SWEEP && WIFSIGNALED(raw) && WTERMSIG(raw) == SIGKILL) job.left++;
    }
    if (job.phase != SWEEP) return;
    job.retry_at = now() + 2 * MS;
    if (!none) kill_all();
    bool left = !none && pids_n > 0; /* who is apart stays */
    job.stuck = job.stuck || (left && now() >= job.sweep_until);
    if (!left || job.stuck) finish();
}

static bool enforce(void) { /* do one thing that is due and return true; else `wake` is when something will be */
    if (held.size && due(held.until)) {
        tell_held();
        return true;
    }
    if (job.phase == IDLE || (job.phase == RECORD && !slot)) return false;
    if (near.is_set && due(job.start + HOLD)) spread();
    if (aheads && due(job.start + PATIENCE)) {
        drop_all_ahead();
        return true;
    }
    if (job.phase == LOOK) {
        if (looker.is_told || !due(looker.since + 500 * MS)) return false;
        tell_looking();
        return true;
    }
    if (job.phase != RUN) {
        if (!due(job.retry_at)) return false;
        if (job.phase == SWEEP) reap();
        else save();
        return true;
    }
    const usec own = own_limit_at(), jobs = limit_at(job.job_limit), first = own < jobs ? own : jobs;
    if (job.warn_signal && !job.warned && first < NEVER && due(first - job.warn_lead)) {
        warn_job(false);
    } else if (unheard.n && due(unheard.at)) {
        look_at_unheard(false);
    } else if (due(own)) end_job("time", false);
    else if (jobs < NEVER && due(jobs + GRACE)) end_job("jobtime", false);
    else if (job.ending && due(job.kill_at)) kill_job("kill");
    else if (job.stopped_at && due(job.stop_at)) stop_job();
    else if (!job.killed && due(job.sample_at)) sample();
    else return false;
    return true;
}

/* ---- orders ---- */
static void clear_order(void) {
    memset(&job, 0, sizeof job);
    memset(&order, 0, sizeof order);
    job.cgroup = job.procs = order.umask = -1;
    job.limit = job.job_limit = job.around_base = -1;
    job.cgroup_path = home.path;
    job.kill_wait = 30 * SECOND;
    others_n = looker.said_n = 0;
    looker.cleans = looker.unless_warned = looker.unless_oom = false;
}

static bool set_key(const char *key) { /* it names a cgroup's folder, and stands in lines as it is */
    size_t n = strlen(key);
    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~' || strchr("/\"\\", key[i])) return false;
    if (!n || n > KEY_MAX || key[0] == '.') return false;
    memcpy(job.key, key, n + 1);
    return true;
}

static bool set_warning(const char *text) {
    long long sig, lead;
    int used = 0;
    if (sscanf(text, "%lld %lld %c%n", &sig, &lead, &job.warn_scope, &used) != 3 || text[used]) return false;
    if (sig < 1 || sig > 64 || lead < 0 || lead > TIME_MAX || !strchr("apb", job.warn_scope)) return false;
    job.warn_signal = (int)sig;
    job.warn_lead = lead * MS;
    return true;
}

static bool set_limit(const char *text) {
    unsigned resource;
    long long soft, hard;
    int used = 0;
    if (order.limits == LIMITS || sscanf(text, "%u %lld %lld%n", &resource, &soft, &hard, &used) != 3) return false;
    order.limit[order.limits].resource = resource;
    order.limit[order.limits].value.rlim_cur = soft < 0 ? RLIM_INFINITY : (rlim_t)soft;
    order.limit[order.limits++].value.rlim_max = hard < 0 ? RLIM_INFINITY : (rlim_t)hard;
    return !text[used] && soft >= -1 && hard >= -1;
}

static bool is_name(const char *text) {
    const size_t n = strlen(text);
    return n && n <= KEY_MAX && text[0] != '.' && !strchr(text, '/');
}

static bool set_level(char *text) { /* BYTES NAME; 0: no limit of its own */
    char *name;
    const long long limit = strtoll(text, &name, 10);
    if (order.levels == LEVELS || name == text || *name++ != ' ' || limit < 0 || !is_name(name)) return false;
    order.level[order.levels].limit = limit;
    order.level[order.levels++].name = name;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool set_cpus(const char *text) { /* 0-3,8 */
    do {
        char *end;
        if (!is_digit(*text)) return false;
        unsigned long low = strtoul(text, &end, 10), high = low;
        if (*end == '-' && !is_digit(end[1])) return false;
        if (*end == '-') high = strtoul(end + 1, &end, 10);
        if (low > high || high >= CPU_SETSIZE) return false;
        for (; low <= high; low++) CPU_SET(low, &order.cpus);
        text = end;
    } while (*text++ == ',');
    return !text[-1];
}

static bool set_field(char tag, char *v) { /* one field of a run order, or the same as an option of once */
    usec offset;
    switch (tag) {
    case 'k': return set_key(v);
    case 'l': return set_limit(v);
    case 'w': return set_warning(v);
    case 't': return parse(v, TIME_MAX, MS, &job.limit);
    case 'D': return parse(v, TIME_MAX, MS, &job.job_limit);
    case 'K': return parse(v, TIME_MAX, MS, &job.kill_wait);
    case 'm': return parse(v, INT64_MAX, 1, &job.mem_limit);
    case 'J':
        if (strlen(v) > NAMED_MAX) return false;
        strcpy(job.named, v);
        return true;
    case 'L': return set_level(v);
    case 'f': return add_file(v);
    case 'c': /* failed attempts leave no outputs; k: but where it was warned; m: an out-of-memory kill is no failure */
        looker.cleans = true;
        looker.unless_warned = strchr(v, 'k');
        looker.unless_oom = strchr(v, 'm');
        return true;
    case 'a':
        order.argv[order.args++] = v;
        return true;
    case 'b':
        order.bare[order.bares++] = v;
        return true;
    case 'W':
        order.warm[order.warms++] = v;
        return true;
    case 'E':
        order.over[order.overs++] = v;
        return true;
    case 'v':
        order.unset[order.unsets++] = v;
        return strchr(v, '=');
    case 'B':
        if (!set_cpus(v)) return false;
        break;
    case 'u':
        order.umask = (int)strtol(v, &v, 8);
        return !*v && order.umask >= 0 && order.umask <= 0777;
    case 'j': /* so much of the journal is durable elsewhere */
        if (!parse(v, INT64_MAX, 1, &offset)) return false;
        if (offset && offset == journal_size && !ftruncate(JOURNAL, 0)) journal_size = 0;
        return true;
    case 'g':
        if (strncmp(v, "1 /", 3) && strncmp(v, "2 /", 3)) return false;
        break;
    case 'G':
        if (!is_name(v)) return false;
        break;
    case 'n':
        if (!parse(v, INT64_MAX, 1, &offset) || !offset) return false;
        break;
    case 'O':
        if (strcmp(v, "1") && strcmp(v, "2")) return false;
        break;
    case 'x': /* a daemon starts its processes: what they use is not seen here */
        if (strcmp(v, "1")) return false;
        break;
    default:
        if (!strchr("deiorAF", tag)) return false;
    }
    order.value[(int)tag] = v;
    return true;
}

static const char *order_run(char *p, char *end) {
    static char *none[] = {NULL};
    size_t fields = 1; /* and the NULL behind the arguments */
    bool good = true;
    environ = none;
    for (char *f = p; f < end; f += strlen(f) + 1) fields++;
    clear_order();
    order.argv = need(calloc(fields, sizeof *order.argv));
    order.bare = need(calloc(fields, sizeof *order.bare));
    order.over = need(calloc(fields, sizeof *order.over));
    order.unset = need(calloc(fields, sizeof *order.unset));
    order.warm = need(calloc(fields, sizeof *order.warm));
    for (; p < end && good; p += strlen(p) + 1) good = set_field(*p, p + 1);
    const char *wrong = !good ? "unknown or malformed field in a run order"
                      : !*job.key ? "an order without a key"
                      : !order.args ? "an order without a program" : NULL;
    if (!wrong) start_job();
    free(order.argv);
    free(order.bare);
    free(order.over);
    free(order.files);
    free(order.unset);
    free(order.warm);
    free(order.env);
    environ = none;
    return wrong;
}

static bool has_ended_itself(void) { /* who was killed may have been so in our place: see the coordinator's watchdog */
    siginfo_t ended = {.si_pid = 0};
    if (waitid(P_PID, (id_t)job.pid, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid) return false;
    return ended.si_code == CLD_EXITED || ended.si_status != SIGKILL;
}

static const char *order_other(const char *tags, char verb, char *p, char *end) {
    const char *value[128] = {['c'] = "a"};
    long long n;
    for (; p < end; p += strlen(p) + 1) {
        if (!strchr(tags, *p)) return "unknown field";
        value[(unsigned char)*p] = p + 1;
    }
    const char *sig = value['s'], *scope = value['c'], *limit = value['t'], *jobs = value['D'];
    if (value['k'] && drop_named(value['k'])) return NULL; /* whoever gives it again knows what was asked of it */
    if (!value['k'] || job.phase == IDLE || strcmp(value['k'], job.key)) return "this key does not run here";
    if (job.phase == LOOK && verb == 'C') {
        stop_looking("cancel");
        return NULL;
    }
    if (job.phase != RUN) return "the job has ended";
    if (verb == 'S') {
        if (!sig || !parse(sig, 64, 1, &n) || !n) return "bad signal or scope";
        if (strlen(scope) != 1 || !strchr("apb", *scope)) return "bad signal or scope";
        note_signal((int)n);
        signal_job((int)n, *scope);
    } else if (verb == 'T' && jobs) {
        if (limit || (*jobs && !parse(jobs, TIME_MAX, MS, &n))) return "bad time limit";
        job.job_limit = !*jobs ? -1 : n > job.suspended ? n - job.suspended : 0;
    } else if (verb == 'T') {
        if (!limit || (*limit && !parse(limit, TIME_MAX, MS, &job.limit))) return "bad time limit";
        if (!*limit) job.limit = -1;
        tell_due();
    } else if (verb == 'C') {
        if (has_ended_itself()) return "the job has ended";
        if (sig && strcmp(sig, "9")) return "a cancel is TERM first, or KILL at once";
        if (sig) kill_job("cancel");
        else end_job(jobs ? "jobtime" : "cancel", value['q']);
    } else if (verb == 'N') {
        if (!value['p'] || !parse(value['p'], INT32_MAX, 1, &n) || n < 2) return "bad process";
        others = need(realloc(others, (others_n + 1) * sizeof *others));
        others[others_n++] = (pid_t)n;
    } else if (verb == 'P' && !job.stopped_at && !job.ending) {
        job.stopped_at = now();
        drop_all_ahead();
        tell_due();
        stop_job();
    } else if (verb == 'P' && job.is_still) {
        tell_moved("suspended"); /* who asks again may not have heard it */
    } else if (verb == 'U') {
        if (job.stopped_at) {
            continue_job();
            resume();
            tell_due();
        }
        tell_moved("resumed");
    }
    return NULL;
}

static bool has_hung_up(void) { /* who gave an order and is gone may have given it to another witness since */
    struct pollfd peer = {conn, POLLRDHUP, 0};
    return poll(&peer, 1, 0) > 0 && peer.revents;
}

static void take_frame(char *p, size_t n) { /* p[n] is 0 */
    static const char *const tags['Z'] = {['S'] = "ksc", ['C'] = "ksDq", ['P'] = "k", ['U'] = "k", ['T'] = "ktD",
                                           ['N'] = "kp"};
    const char *wrong = NULL;
    char verb = *p, *end = p + n;
    bool whole = n >= 2 && !end[-1] && !p[1];
    for (char *f = p; f < end; f += strlen(f) + 1) whole = whole && *f;
    if (!whole) wrong = "malformed frame";
    else if (verb == 'Q' && job.phase != IDLE) put_ahead(p, n);
    else if (verb == 'R' && job.phase != IDLE) wrong = "a job runs";
    else if (strchr("RQ", verb) && has_hung_up()) wrong = "who gave this order is gone";
    else if (strchr("RQ", verb)) wrong = order_run(p + 2, end);
    else if (verb < 'A' || verb > 'Y' || !tags[(int)verb]) wrong = "unknown verb";
    else wrong = order_other(tags[(int)verb], verb, p + 2, end);
    if (strchr("RQ", verb)) close_streams();
    if (wrong) complain(wrong);
}

static void take_ahead(void) { /* the first of them, as if it came now */
    char *frame = ahead[0].frame;
    const size_t size = ahead[0].size;
    ahead[0].frame = NULL;
    remove_ahead(0);
    take_frame(frame, size);
    free(frame);
}

static ssize_t receive_bytes(void *to, size_t size) { /* and up to three descriptors; the kernel closes what is more */
    union { struct cmsghdr align; char space[CMSG_SPACE(sizeof streams)]; } control;
    struct iovec part = {to, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_LEN(sizeof streams);
    ssize_t n = recvmsg(conn, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return n;
    close_streams();
    streams_n = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof *streams);
    memcpy(streams, CMSG_DATA(head), (size_t)streams_n * sizeof *streams);
    return n;
}

static bool receive(void) { /* whether a frame was taken; reads no further than the frame's end, so that descriptors stay with theirs */
    uint32_t size;
    if (!in.data) in.data = need(malloc(in.want = sizeof size));
    do {
        ssize_t n = receive_bytes(in.data + in.have, in.want - in.have);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) disconnect();
        if (n <= 0) return false;
        in.have += (size_t)n;
        if (in.have != sizeof size) continue;
        memcpy(&size, in.data, sizeof size);
        if ((size = le32toh(size)) > FRAME_MAX) {
            complain("frame too long");
            disconnect();
            return false;
        }
        in.want += size;
        in.data = need(realloc(in.data, in.want + 1));
    } while (in.have < in.want);
    char *frame = in.data;
    frame[in.want] = 0;
    in.data = NULL;
    in.have = 0;
    take_frame(frame + sizeof size, in.want - sizeof size);
    free(frame);
    return conn >= 0;
}

/* ---- the forms ---- */
static void set_up(void) {
    char zero[64] = {0};
    for (int sig = 1; sig <= SIGNALS; sig++) syscall(SYS_rt_sigaction, sig, zero, NULL, sizeof(sigs));
    sigs mask = ~(bit(SIGCONT) | bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU));
    set_mask(SIG_SETMASK, mask);
    mask &= ~(bit(SIGPIPE) | bit(SIGXFSZ) | bit(SIGURG) | bit(SIGWINCH));
    signals = (int)syscall(SYS_signalfd4, -1, &mask, sizeof mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) _exit(70);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (slurp(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) boot[strcspn(boot, "\n")] = 0;
    host_oom_seen = host_oom_kills();
    own_pid = getpid();
    began = now();
}

static void note_got(int sig) { /* the first ones as they came; after them each signal that is new */
    int known = 0;
    while (known < job.gots && (job.gots < GOTS - SIGNALS || signals_got[known] != sig)) known++;
    if (known == job.gots && job.gots < GOTS) signals_got[job.gots++] = sig;
}

/* ---- a coordinator that died ---- */
enum holder { NONE, LIVES, DIED };

static enum holder find_holder(void) { /* of the home: the text of its lock names one, which holds a byte of the store */
    char path[PATH_KEPT + 16], own[sizeof boot], *to = own;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1LL << 62, .l_len = 1};
    for (const char *from = boot; *from; from++)
        if (*from != '-') *to++ = *from;
    *to = 0;
    snprintf(path, sizeof path, "%s/lock", restart.home);
    if (slurp(AT_FDCWD, path, scratch, sizeof scratch) <= 0 || !*own || !strstr(scratch, own)) return NONE;
    snprintf(path, sizeof path, "%s/aver.db", restart.home);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool known = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock);
    if (fd >= 0) close(fd);
    return !known ? NONE : lock.l_type == F_UNLCK ? DIED : LIVES;
}

static bool claim_restart(void) { /* of all witnesses one starts it, and the others leave */
    char path[PATH_KEPT + 16];
    if (restart.claim >= 0) return true;
    snprintf(path, sizeof path, "%s/witness", restart.home);
    restart.claim = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (restart.claim < 0 || !flock(restart.claim, LOCK_EX | LOCK_NB)) return restart.claim >= 0;
    close(restart.claim);
    restart.claim = -1;
    return false;
}

static void end_restart(void) { /* somebody came, or it has answered */
    if (restart.answer >= 0) close(restart.answer);
    if (conn >= 0 && restart.claim >= 0) close(restart.claim);
    if (conn >= 0) restart.claim = -1;
    restart.answer = -1;
    restart.connected = now();
    restart.at = now() + back_off();
    restart.until = restart.at + 60 * SECOND;
}

static void start_coordinator(void) { /* nobody's child, as if a command had started it */
    int pipe[2];
    char number[16];
    size_t words = 0;
    restart.tries++;
    if (pipe2(pipe, O_CLOEXEC)) return;
    restart.answer = pipe[0];
    restart.until = now() + 120 * SECOND;
    snprintf(number, sizeof number, "%d", pipe[1]);
    while (restart.command[words]) words++;
    restart.command[words] = number; /* the place behind the last word was kept for it */
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (fork()) _exit(0);
        setsid();
        fcntl(pipe[1], F_SETFD, 0);
        set_mask(SIG_SETMASK, 0);
        execve(restart.command[0], restart.command, restart.env);
        _exit(127);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    restart.command[words] = NULL;
    close(pipe[1]);
}

static bool stays_for_restart(void) { /* with nobody connected and nothing to do */
    if (!restart.command) return false;
    if (restart.answer >= 0 && !due(restart.until)) return true;
    if (restart.answer >= 0) end_restart();
    const bool waits = !due(restart.at) && !due(now() + SECOND); /* looks meanwhile: one may have come, and left */
    const enum holder holder = find_holder();
    if (waits) return holder != NONE;
    if (holder == NONE || (holder == LIVES && now() >= restart.until)) return false;
    if (holder == DIED && (restart.tries == RESTARTS || !claim_restart())) return false;
    if (holder == DIED) start_coordinator();
    restart.at = now() + 100 * MS;
    due(restart.answer >= 0 ? restart.until : restart.at);
    return true;
}

static int lease = -1; /* once: a pipe that who asked for the container holds open while it lives */
static char relay; /* once: in a container, whose engine hands signals on: to whom they go, as in signal_job */
static int heeded; /* once: the signal that is the job's warning, which its own witness has sent */
static usec got_by_all[SIGNALS]; /* when a signal came to all last: what an engine hands on of it is a second one */

static void take_signals(void) {
    struct signalfd_siginfo info[16];
    ssize_t n = read(signals, info, sizeof info);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof *info; i++) {
        int sig = (int)info[i].ssi_signo;
        if (job.phase == IDLE && (sig == SIGTERM || sig == SIGINT)) {
            end_warm();
            leave_home();
            exit(0);
        }
        if (job.phase == IDLE || sig == SIGCHLD) continue;
        note_got(sig);
        bool of_terminal = info[i].ssi_code == SI_KERNEL; /* the whole group got it */
        if (job.phase != RUN || of_terminal) continue;
        const bool is_to_all = came_to_all(sig), is_again = relay && now() - got_by_all[sig - 1] <= RELAY;
        const char scope = !relay ? 'b' : sig == SIGTERM ? 'a' : relay;
        if (is_to_all) got_by_all[sig - 1] = now();
        if (!is_to_all && is_again) continue;
        if (sig == heeded) hear_warning(sig, scope, is_to_all);
        else if (!is_to_all) signal_job(sig, scope);
    }
    if (job.phase == RUN || job.phase == SWEEP) reap();
}

static void take_lease(const char *path) { /* who died before it could be seen to die never wants the job */
    char none;
    lease = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (lease >= 0 && !read(lease, &none, 1)) _exit(128 + SIGKILL);
}

static void lose_lease(void) { /* the engine's daemon keeps the container alive: nobody else ends it */
    close(lease);
    lease = -1;
    kill_all();
}

static __attribute__((noinline)) void rest(void) { /* there may be thousands of us, whose jobs run for hours: memory that holds nothing is given back */
    extern char __start_spare[] __attribute__((visibility("hidden"))), __stop_spare[] __attribute__((visibility("hidden")));
    char *const below = (char *)((uintptr_t)__builtin_frame_address(0) & -(uintptr_t)PAGE) - PAGE;
    free(env_file.text); /* this job has it, and the next one may be hours away */
    env_file.text = NULL;
    malloc_trim(0);
    madvise(__start_spare, (size_t)(__stop_spare - __start_spare) & -(size_t)PAGE, MADV_DONTNEED);
    madvise(below - 15 * PAGE, 15 * PAGE, MADV_DONTNEED); /* of the stack */
}

static void loop(void) { /* returns when there is nothing left to do */
    for (;;) {
        do wake = NEVER;
        while (enforce());
        bool idle = job.phase == IDLE, lonely = idle && !served && due(began + 60 * SECOND);
        if (!slot && job.phase == RECORD) return;
        if (idle && job.stuck) return; /* the next job must not have the last one's processes */
        if (idle && aheads) {
            if (now() - ahead[0].at > PATIENCE) drop_all_ahead();
            else take_ahead();
            continue;
        }
        if (job.phase == RUN && due(job.start + SECOND) && wake - now() > SECOND / 10) rest();
        bool leaving = idle && conn < 0 && (served || lonely) && !stays_for_restart();
        usec left = wake - now(), wait = wake == NEVER ? -1 : left > 0 ? (left + MS - 1) / MS : 0;
        struct pollfd fds[4] = {{signals, POLLIN, 0}, {job.phase == LOOK ? looker.answer : -1, POLLIN, 0},
                                {!slot ? lease : conn >= 0 ? conn : LISTENER, slot ? POLLIN : 0, 0}, {restart.answer, POLLIN, 0}};
        const int had = conn;
        int n = poll(fds, slot ? 4 : 3, leaving ? 0 : wait > INT32_MAX ? INT32_MAX : (int)wait);
        if (leaving && n <= 0) return;
        if (!slot && wake < NEVER && now() - wake > SECOND) job.suspended += now() - wake; /* stopped with our job */
        if (fds[1].revents) hear_looker();
        for (int i = 0; fds[2].revents && had >= 0 && i < FRAMES && receive(); i++)
            if (!fds[0].revents) break; /* else all of them: what was asked before the job ended comes before its end */
        if (fds[0].revents) take_signals();
        if (!slot && fds[2].revents) lose_lease();
        if (!slot || had >= 0) continue;
        if (fds[2].revents && (conn = accept4(LISTENER, NULL, NULL, SOCK_CLOEXEC)) >= 0) say_hello();
        if (conn >= 0 || fds[3].revents) end_restart();
    }
}

static int run_slot(int argc, char **argv) { /* slot [HOME PROGRAM ARGS…] */
    struct stat st;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    slot = true;
    clear_order();
    restart.env = environ;
    if (argc > 3) {
        restart.home = argv[2];
        restart.command = need(calloc((size_t)argc, sizeof *argv));
        memcpy(restart.command, argv + 3, (size_t)(argc - 3) * sizeof *argv);
    }
    mallopt(M_MMAP_THRESHOLD, 65536); /* a large order's memory goes back to the system */
    if (fcntl(LISTENER, F_SETFD, FD_CLOEXEC) || null < 0 || chdir("/")) return 2;
    if (null != JOURNAL && !fstat(JOURNAL, &st)) journal_size = st.st_size;
    fcntl(JOURNAL, F_SETFD, FD_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    fcntl(OWN_FILE, F_SETFD, FD_CLOEXEC); /* kept open: who has no path to us connects through /proc */
    syscall(SYS_close_range, OWN_FILE + 1u, ~0u, 0u);
    set_up();
    loop();
    end_warm();
    leave_home();
    return 0;
}

static bool write_record(const char *path) {
    char part[2 * PATH_KEPT]; /* longer than any name that the kernel takes */
    snprintf(part, sizeof part, "%s.%d.tmp", path, getppid());
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    bool good = write(fd, line, line_len) == (ssize_t)line_len && !fsync(fd);
    good = !close(fd) && good && !rename(part, path);
    if (!good) unlink(part);
    fd = good ? open(dirname(part), O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) fsync(fd); /* the name, too; the record itself is there already */
    return good;
}

static void leave_record(const char *path) { /* by a process of its own: a folder that hangs holds up no job */
    struct pollfd ended = {signals, POLLIN, 0};
    struct signalfd_siginfo info[16];
    usec until = now() + 10 * SECOND;
    int raw = ETIMEDOUT << 8;
    pid_t pid = fork(), done = 0;
    if (pid == 0) _exit(write_record(path) ? 0 : errno);
    if (pid < 0) raw = errno << 8;
    while (pid > 0 && !(done = waitpid(pid, &raw, WNOHANG)) && now() < until)
        if (poll(&ended, 1, (int)((until - now()) / MS) + 1) > 0 && read(signals, info, sizeof info) < 0) continue;
    if (pid > 0 && !done) kill(pid, SIGKILL);
    if (raw) fprintf(stderr, "aver-witness: can't write the exit record %s: %s\n", path, strerror(WEXITSTATUS(raw)));
}

static int end_as_the_child(void) {
    struct rlimit no_core = {0, 0};
    int sig = WTERMSIG(job.raw);
    if (!WIFSIGNALED(job.raw)) return WEXITSTATUS(job.raw);
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a core_pattern that is a pipe does not ask for the limit */
    kill(getpid(), sig);
    set_mask(SIG_UNBLOCK, bit(sig));
    return 128 + sig;
}

static const char *digits(const char *value) {
    return value && *value && strlen(value) < 12 && !value[strspn(value, "0123456789")] ? value : NULL;
}

static const char *digits_of(const char *name) { return digits(getenv(name)); }

static bool name_task(char *path, size_t size, const char *folder, const char *step, const char *rank) {
    char key[2 * KEY_MAX]; /* FOLDER/KEY.sSTEP.tTASK; the key alike */
    if (!step) { /* --step, --rank and --tasks: of a launcher that is not srun */
        step = digits_of("SLURM_STEP_ID");
        rank = digits_of("SLURM_PROCID");
        step_tasks = digits_of("SLURM_STEP_NUM_TASKS");
    }
    snprintf(key, sizeof key, "%s.s%s.t%s", job.key, step ? step : "", rank ? rank : "");
    return folder && step && rank && set_key(key) && snprintf(path, size, "%s/%s", folder, key) < (int)size;
}

static int run_once(int argc, char **argv) { /* once, or task */
    static const char names[][12] = {['k'] = "--key", ['t'] = "--time", ['w'] = "--warn", ['K'] = "--kill-wait",
                                     ['m'] = "--mem", ['g'] = "--cgroup", ['E'] = "--env", ['d'] = "--folder",
                                     ['i'] = "--stdin", ['o'] = "--stdout", ['r'] = "--stderr", ['A'] = "--append",
                                     ['O'] = "--own", ['f'] = "--file", ['c'] = "--clean", ['x'] = "--elsewhere"};
    static SELDOM char path[PATH_KEPT];
    static char number[12];
    const char *record = NULL, *folder = NULL, *step = NULL, *rank = NULL;
    const bool task = !strcmp(argv[1], "task");
    int i, tag;
    clear_order();
    set_key("once");
    order.over = need(calloc((size_t)argc, sizeof *order.over));
    for (i = 2; i + 1 < argc && strcmp(argv[i], "--"); i += 2) {
        for (tag = sizeof names / sizeof *names - 1; tag && strcmp(argv[i], names[tag]); tag--) continue;
        if (!task && !strcmp(argv[i], "--record")) record = argv[i + 1];
        else if (!task && !strcmp(argv[i], "--relay") && strspn(argv[i + 1], "apb") == 1) relay = *argv[i + 1];
        else if (!task && !strcmp(argv[i], "--lease")) take_lease(argv[i + 1]);
        else if (!strcmp(argv[i], "--heed") && atoi(argv[i + 1]) > 0) heeded = atoi(argv[i + 1]);
        else if (task && !strcmp(argv[i], "--records")) folder = argv[i + 1];
        else if (task && !strcmp(argv[i], "--step")) step = digits(argv[i + 1]);
        else if (task && !strcmp(argv[i], "--rank")) rank = digits(argv[i + 1]);
        else if (task && !strcmp(argv[i], "--tasks")) step_tasks = digits(argv[i + 1]);
        else if (!tag || !set_field((char)tag, argv[i + 1])) break;
    }
    if (i + 1 >= argc || strcmp(argv[i], "--")) {
        fprintf(stderr, "aver-witness: bad option near '%s'; usage: aver-witness once --record FILE --key KEY "
                        "[options] -- command\n", i < argc ? argv[i] : "the end");
        return 2;
    }
    order.argv = argv + i + 1;
    if (task && name_task(path, sizeof path, folder, step, rank)) record = path;
    else if (task) fputs("aver-witness: no exit record: no step and rank to name it\n", stderr);
    if (job.warn_signal && job.warn_scope != 'b') { /* srun passes it on to its tasks, whose witnesses say who takes it */
        snprintf(number, sizeof number, "%d", job.warn_signal);
        setenv("AVER_WARN_SIGNAL", number, 1);
    } else if (!task) unsetenv("AVER_WARN_SIGNAL");
    set_up();
    start_canary();
    start_job();
    loop();
    make_record(false);
    if (record) leave_record(record);
    if (!failure.op) return end_as_the_child();
    fprintf(stderr, "aver-witness: can't start %s: %s %s: %s\n", order.argv[0], failure.op,
            (const char *)failure_path, strerror(failure.err));
    return task ? failure.err : failure.err == ENOENT ? 127 : 126;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) return puts("aver-witness 1") < 0;
    if ((argc == 2 || argc > 3) && !strcmp(argv[1], "slot")) return run_slot(argc, argv);
    if (argc > 2 && (!strcmp(argv[1], "once") || !strcmp(argv[1], "task"))) return run_once(argc, argv);
    fputs("usage: aver-witness slot | once [options] -- command | task [options] -- command | --version\n", stderr);
    return 2;
}
