/* srun, where it is called in loops: `srun PROGRAM …` without an option, in a job on this machine.
 *
 * A Python process takes three times as long to start as such a step takes to run. So the step is asked for here, as
 * command.py does it, and if all goes well there is nothing to say. Everything else is Python's, which this program
 * becomes by exec: options, variables that mean options, refusals, tasks that fail, signals. Where the step was asked
 * for already, Python gets its token and the connection: the same token is the same step, and the coordinator's reply
 * to it says all that has happened. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PYTHON ".srun"         /* the command in Python, beside ours (client/slurm_bin.py) */
#define LONGEST_LINE (1 << 20) /* of the coordinator */
#define TOKEN_BYTES 16

extern char **environ;
static char **words; /* our arguments, after the path of the command, whose `#!` line names this program */
static char token[2 * TOKEN_BYTES + 1];
static int wire = -1;
static struct { /* what the coordinator sent: a line that is being looked at, and what follows it */
    char at[LONGEST_LINE + 1];
    size_t n, used;
} heard;

/* ---- Python ---- */
static bool hear(void) { /* false: there is nobody any more, or nothing that we can read */
    const ssize_t n = heard.n < LONGEST_LINE ? recv(wire, heard.at + heard.n, LONGEST_LINE - heard.n, 0) : 0;
    if (n > 0) heard.n += (size_t)n;
    return n > 0 || (n < 0 && errno == EINTR);
}

static void pass_wire(void) { /* at the end of a line; where that is not to be had Python connects anew */
    while (wire >= 0 && heard.n > heard.used && heard.at[heard.n - 1] != '\n')
        if (!hear()) {
            close(wire);
            wire = -1;
        }
    if (wire >= 0) fcntl(wire, F_SETFD, 0);
}

static _Noreturn void become_python(void) { /* with the step, if one was asked for */
    char path[PATH_MAX], step[sizeof token + 32];
    const char *slash = strrchr(words[0], '/');
    const int folder = slash ? (int)(slash + 1 - words[0]) : 0;
    int n = 0;
    while (words[n]) n++;
    char *args[n + 2], **next = args;
    *next++ = words[0];
    if (*token) {
        pass_wire();
        snprintf(step, sizeof step, "--as-step=%s:%d", token, wire);
        *next++ = step;
    }
    memcpy(next, words + 1, (size_t)n * sizeof *args);
    snprintf(path, sizeof path, "%.*s" PYTHON, folder, words[0]);
    execv(path, args);
    dprintf(2, "srun: error: can't start %s: %s\n", path, strerror(errno));
    _exit(1);
}

/* ---- what is asked ---- */
static const char *const OPTIONS[] = { /* variables that mean options: ENVIRONMENT in options.py */
    "SRUN_CPUS_PER_TASK", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_STDINMODE", "SLURM_LABELIO",
    "SLURM_KILL_BAD_EXIT", "SLURM_WAIT", "SLURM_OVERLAP", "SLURM_EXACT", "SLURM_UNBUFFEREDIO", "SLURM_OPEN_MODE",
    "SRUN_EXPORT_ENV", "SLURM_WORKING_DIR", "SLURM_STEP_MEM", "SLURM_OVERCOMMIT", "SLURM_MPI_TYPE", "SLURM_MULTI_PROG",
    "SLURM_TIMELIMIT", "SLURM_ACCOUNT", "SLURM_QOS", "SLURM_PARTITION", "SLURM_DEPENDENCY", "SLURM_IMMEDIATE",
    "SLURM_EXCLUSIVE", "SLURM_GPUS", "SLURM_GRES", "SLURM_CONSTRAINT", "SLURM_TASK_PROLOG", "SLURM_TASK_EPILOG",
    "SLURM_PROLOG", "SLURM_EPILOG", "SLURM_DEBUG", "SLURM_CONTAINER", "SLURM_PROPAGATE", "AVER_SRUN_EXPORT",
};
static const char *const COUNTS[] = {"SLURM_NTASKS", "SLURM_NPROCS"}; /* one task is what there is without an option */
static const char *const TOLD[] = {"SLURM_UMASK", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST"};
static const int LIMITS[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE,
                             RLIMIT_RSS, RLIMIT_NPROC, RLIMIT_NOFILE, RLIMIT_MEMLOCK, RLIMIT_AS};
#define LENGTH(list) (sizeof list / sizeof *list)

static bool is_plain(void) {
    struct stat info;
    if (!words[1] || !*words[1] || *words[1] == '-') return false;
    for (char **word = words + 1; word[1]; word++)
        if (!strcmp(*word, ":")) return false;
    if (!strchr(words[1], '/') && !access(words[1], X_OK)) return false; /* it may be the one in this folder */
    const char *key = getenv("AVER_KEY"), *home = getenv("AVER_HOME");
    if (!key || !*key || !home || *home != '/') return false;
    for (size_t i = 0; i < LENGTH(OPTIONS); i++) {
        const char *value = getenv(OPTIONS[i]);
        if (value && *value) return false;
    }
    for (size_t i = 0; i < LENGTH(COUNTS); i++) {
        const char *value = getenv(COUNTS[i]);
        if (value && *value && strcmp(value, "1")) return false;
    }
    for (int fd = 0; fd < 3; fd++)
        if (fstat(fd, &info)) return false;
    return true;
}

static struct {
    char *at;
    size_t n, room;
} request;

static void put(const char *data, size_t n) {
    if (request.room - request.n < n) {
        const size_t room = 2 * (request.room + n) + (1 << 14);
        char *at = realloc(request.at, room);
        if (!at) become_python();
        request.at = at;
        request.room = room;
    }
    memcpy(request.at + request.n, data, n);
    request.n += n;
}

static __attribute__((format(printf, 1, 2))) void put_format(const char *format, ...) {
    char text[128];
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put(text, (size_t)n);
}

static size_t length_of(const unsigned char *c) { /* bytes of a character in UTF-8 that is not ASCII; 0: it is none */
    const size_t n = *c >= 0xc2 && *c <= 0xdf ? 2 : (*c & 0xf0) == 0xe0 ? 3 : *c >= 0xf0 && *c <= 0xf4 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    const bool is_overlong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    const bool is_surrogate = *c == 0xed && c[1] > 0x9f;
    const bool is_beyond = *c == 0xf4 && c[1] > 0x8f;
    return is_overlong || is_surrogate || is_beyond ? 0 : n;
}

static void put_text(const char *text) { /* as JSON; Python knows what to do with bytes that are not UTF-8 */
    put("\"", 1);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        if (*c >= 0x80) {
            const size_t n = length_of(c);
            if (!n) become_python();
            put((const char *)c, n);
            c += n;
        } else if (*c < 0x20 || *c == '"' || *c == '\\') put_format("\\u%04x", *c++);
        else put((const char *)c++, 1);
    }
    put("\"", 1);
}

static bool is_named(const char *pair, const char *name) {
    const size_t n = strlen(name);
    return !strncmp(pair, name, n) && pair[n] == '=';
}

static bool is_inherited(const char *pair) {
    bool found = strchr(pair, '=') && !is_named(pair, "AVER_KEY") && !is_named(pair, "AVER_SRUN_EXPORT");
    for (size_t i = 0; found && i < LENGTH(TOLD); i++) found = !is_named(pair, TOLD[i]);
    return found;
}

static void write_request(void) {
    unsigned char bytes[TOKEN_BYTES];
    char folder[PATH_MAX];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes || !getcwd(folder, sizeof folder)) become_python();
    char hex[sizeof token];
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    const mode_t mask = umask(077);
    umask(mask);
    const char *slash = strrchr(words[1], '/');
    put_format("{\"op\":\"step\",\"token\":\"%s\",\"key\":", hex);
    put_text(getenv("AVER_KEY"));
    put_format(",\"spec\":{\"tasks\":1,\"umask\":%d,\"name\":", (int)mask);
    put_text(slash ? slash + 1 : words[1]);
    put_format(",\"folder\":");
    put_text(folder);
    put_format(",\"args\":");
    for (char **word = words + 1; *word; word++) {
        put(word == words + 1 ? "[" : ",", 1);
        put_text(*word);
    }
    put_format("],\"limits\":");
    for (size_t i = 0; i < LENGTH(LIMITS); i++) {
        struct rlimit limit;
        if (getrlimit(LIMITS[i], &limit)) become_python();
        put_format("%c[%d,%lld]", i ? ',' : '[', LIMITS[i], (long long)limit.rlim_cur);
    }
    put_format("]},\"env\":[\"SLURM_UMASK=%04o\",\"%s=127.0.0.1\",\"%s=127.0.0.1\"", mask, TOLD[1], TOLD[2]);
    for (char **pair = environ; *pair; pair++)
        if (is_inherited(*pair)) {
            put(",", 1);
            put_text(*pair);
        }
    put_format("]}\n");
    strcpy(token, hex); /* from here on the step may have begun */
}

/* ---- the coordinator ---- */
static bool is_of_this_version(int home) {
    char text[4096], version[64];
    const int lock = openat(home, "lock", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = lock < 0 ? -1 : read(lock, text, sizeof text);
    if (lock >= 0) close(lock);
    const int length = snprintf(version, sizeof version, "\"version\": \"%s\"", AVER_VERSION);
    return n > 0 && memmem(text, (size_t)n, version, (size_t)length);
}

static void connect_wire(void) { /* where it is not plainly ours, Python looks closer and says what is wrong */
    struct stat info;
    struct ucred peer;
    socklen_t n = sizeof peer;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int home = open(getenv("AVER_HOME"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home < 0 || fstat(home, &info) || info.st_uid != geteuid() || info.st_mode & 077) become_python();
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/sock", home);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) become_python();
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) || peer.uid != geteuid()) become_python();
    if (!is_of_this_version(home)) become_python();
    close(home);
    wire = fd;
}

static bool send_request(void) { /* with our standard streams, which are the step's */
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    struct iovec data = {request.at, request.n};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(3 * sizeof(int));
    memcpy(CMSG_DATA(&control.head), (int[]){0, 1, 2}, 3 * sizeof(int));
    while (data.iov_len) {
        const ssize_t n = sendmsg(wire, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data.iov_base = (char *)data.iov_base + n;
        data.iov_len -= (size_t)n;
        message.msg_control = NULL;
        message.msg_controllen = 0;
    }
    return true;
}

static _Noreturn void lose_wire(void) {
    close(wire);
    wire = -1;
    become_python();
}

static const char *next_line(int signals) { /* of the coordinator; Python takes over when a signal comes */
    memmove(heard.at, heard.at + heard.used, heard.n - heard.used);
    heard.n -= heard.used;
    heard.used = 0;
    for (size_t looked = 0;;) {
        char *end = memchr(heard.at + looked, '\n', heard.n - looked);
        if (end) {
            *end = 0;
            heard.used = (size_t)(end - heard.at) + 1;
            return heard.at;
        }
        looked = heard.n;
        struct pollfd either[] = {{.fd = wire, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        if (poll(either, 2, -1) < 0) continue;
        if (either[1].revents) become_python();
        if (!hear()) lose_wire();
    }
}

/* A quote inside of a JSON text is escaped, so none of these can stand in one. */
static bool has(const char *line, const char *field) { return strstr(line, field); }

int main(int argc, char **argv) {
    sigset_t passed_on; /* what Python forwards to the step: it stays pending over the exec */
    const int numbers[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGALRM, SIGINT};
    if (argc < 2) return 1; /* not by a `#!` line */
    words = argv + 1;
    if (!is_plain()) become_python();
    connect_wire();
    write_request();
    sigemptyset(&passed_on);
    for (size_t i = 0; i < LENGTH(numbers); i++) sigaddset(&passed_on, numbers[i]);
    sigprocmask(SIG_BLOCK, &passed_on, NULL);
    const int signals = signalfd(-1, &passed_on, SFD_CLOEXEC);
    if (signals < 0 || !send_request()) lose_wire();
    for (;;) {
        const char *line = next_line(signals);
        if (has(line, "\"ok\":")) {
            if (has(line, "\"ok\": true") && has(line, "\"waiting\": false") && has(line, "\"tasks\": []") && has(line, "\"ended\": null")) continue;
        } else if (has(line, "\"begun\":")) continue;
        else if (has(line, "\"task\":")) {
            if (has(line, "\"state\": \"COMPLETED\"") && has(line, "\"raw\": 0,") && has(line, "\"because\": false")) continue;
        } else if (has(line, "\"ended\": {\"code\": 0, \"state\": \"COMPLETED\"}")) _exit(0);
        become_python();
    }
}
