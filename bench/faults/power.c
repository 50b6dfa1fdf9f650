/* A file layer that remembers what a power loss would leave: preloaded, it stands between a process and libc.

It keeps, under `keep`, a second name for every file, and under `synced` what each file held at its last fsync. The
journal has the changes of names in their order: C (created), M (mkdir), R (renamed, with the inode), U (unlinked), D (rmdir), and the
syncs S (of a file) and F (of a folder). The call of number `at` is not done any more: every process is killed. What
was written between two syncs needs no record: it is the difference of a file to its synced copy.

Not seen: system calls past libc, io_uring, O_TMPFILE, links, and msync, so that what a program syncs by it counts as not synced.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define SETTING "BENCH_FAULTS_POWER"

struct shared { atomic_int held, count; int at; };
static struct shared *shared;
static char root[PATH_MAX], keep[PATH_MAX];
static int journal = -1;

/* record: a folder with keep/ and synced/. The call of number `at` in `below` is the one that the power fails at. */
int power_begin(const char *below, const char *record, int at) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/shared", record);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *shared)) return -1;
    struct shared *found = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    snprintf(path, sizeof path, "%s/journal", record);
    journal = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (found == MAP_FAILED || journal < 0) return -1;
    if (at >= 0) found->at = at;
    snprintf(keep, sizeof keep, "%s", record);
    snprintf(path, sizeof path, "%s\n%s", below, record);
    setenv(SETTING, path, 1); /* for the processes that this one starts */
    shared = found;
    snprintf(root, sizeof root, "%s", below);
    return 0;
}

__attribute__((constructor)) static void begun_by_parent(void) {
    char *given = getenv(SETTING), below[2 * PATH_MAX];
    if (!given || strlen(given) >= sizeof below) return;
    strcpy(below, given);
    char *record = strchr(below, '\n');
    *record++ = 0;
    power_begin(below, record, -1);
}

static int is_below(const char *path) {
    size_t length = strlen(root);
    return length && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

/* The absolute name; whether it is one that is watched. */
static int named(int folder, const char *path, char *into) {
    if (!root[0]) return 0;
    if (path[0] == '/') return snprintf(into, PATH_MAX, "%s", path) < PATH_MAX && is_below(into);
    char link[64], base[PATH_MAX];
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
    return snprintf(into, PATH_MAX, "%s/%s", base, path) < PATH_MAX && is_below(into);
}

static void begin(void) {
    while (atomic_exchange(&shared->held, 1)) usleep(50);
    if (atomic_fetch_add(&shared->count, 1) + 1 == shared->at)
        for (;;) { kill(0, SIGKILL); pause(); }
}

static void end(void) { atomic_store(&shared->held, 0); }

static void note(const char *format, ...) {
    char line[2 * PATH_MAX + 64];
    int error = errno;
    va_list given;
    va_start(given, format);
    int length = vsnprintf(line, sizeof line, format, given);
    va_end(given);
    if (write(journal, line, length) != length) abort();
    errno = error;
}

static void created(const char *path) {
    struct stat found;
    char kept[PATH_MAX + 64];
    int error = errno;
    if (stat(path, &found)) return;
    snprintf(kept, sizeof kept, "%s/keep/%lu", keep, (unsigned long)found.st_ino);
    if (link(path, kept) && errno != EEXIST) abort();
    note("C\t%lu\t%s\n", (unsigned long)found.st_ino, path);
    errno = error;
}

static int is_new(int folder, const char *path, int flags, char *full) {
    struct stat found;
    return (flags & O_CREAT) && named(folder, path, full) && lstat(full, &found);
}

#define OPEN(call) \
    char full[PATH_MAX]; \
    int new = is_new(folder, path, flags, full); \
    if (new) begin(); \
    int file = call; \
    if (new && file >= 0) created(full); \
    if (new) end(); \
    return file

#define MODE mode_t mode = 0; \
    if (flags & O_CREAT) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) { int folder = AT_FDCWD; REAL(open); MODE OPEN(real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { int folder = AT_FDCWD; REAL(open64); MODE OPEN(real(path, flags, mode)); }
int openat(int folder, const char *path, int flags, ...) { REAL(openat); MODE OPEN(real(folder, path, flags, mode)); }
int openat64(int folder, const char *path, int flags, ...) { REAL(openat64); MODE OPEN(real(folder, path, flags, mode)); }
int creat(const char *path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

#define FOPEN(name) \
    FILE *name(const char *path, const char *how) { \
        REAL(name); \
        char full[PATH_MAX]; \
        int new = is_new(AT_FDCWD, path, strpbrk(how, "wa") ? O_CREAT : 0, full); \
        if (new) begin(); \
        FILE *file = real(path, how); \
        if (new && file) created(full); \
        if (new) end(); \
        return file; \
    }
FOPEN(fopen)
FOPEN(fopen64)

/* What a file holds now is what it holds after a power loss. The disk itself is not waited for. */
static int sync_file(int file) {
    char link[64], path[PATH_MAX], copy[PATH_MAX + 64];
    struct stat found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = root[0] ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    if (!is_below(path) || fstat(file, &found)) return 0;
    begin();
    if (S_ISDIR(found.st_mode)) {
        note("F\t%s\n", path);
    } else {
        snprintf(copy, sizeof copy, "%s/synced/%lu", keep, (unsigned long)found.st_ino);
        int from = open(link, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        off_t left = found.st_size;
        while (left > 0) {
            ssize_t done = sendfile(to, from, NULL, left);
            if (done <= 0) abort();
            left -= done;
        }
        close(from);
        close(to);
        note("S\t%lu\n", (unsigned long)found.st_ino);
    }
    end();
    return 1;
}

int fsync(int file) { REAL(fsync); return sync_file(file) ? 0 : real(file); }
int fdatasync(int file) { REAL(fdatasync); return sync_file(file) ? 0 : real(file); }

#define RENAME(from_folder, to_folder, call) \
    char old[PATH_MAX], new[PATH_MAX]; \
    int seen = named(from_folder, from, old), kept = named(to_folder, to, new); \
    if (!seen && !kept) return call; \
    if (!seen || !kept) { errno = EXDEV; return -1; } /* as between two disks: one of them is not watched */ \
    begin(); \
    int failed = call; \
    struct stat moved; \
    if (!failed && !stat(new, &moved)) note("R\t%s\t%s\t%lu\n", old, new, (unsigned long)moved.st_ino); \
    end(); \
    return failed

int rename(const char *from, const char *to) { REAL(rename); RENAME(AT_FDCWD, AT_FDCWD, real(from, to)); }
int renameat(int a, const char *from, int b, const char *to) { REAL(renameat); RENAME(a, b, real(a, from, b, to)); }
int renameat2(int a, const char *from, int b, const char *to, unsigned int how) {
    REAL(renameat2);
    RENAME(a, b, real(a, from, b, to, how));
}

#define CHANGE(folder, letter, call) \
    char full[PATH_MAX]; \
    if (!named(folder, path, full)) return call; \
    begin(); \
    int failed = call; \
    if (!failed) note("%c\t%s\n", letter, full); \
    end(); \
    return failed

int unlink(const char *path) { REAL(unlink); CHANGE(AT_FDCWD, 'U', real(path)); }
int remove(const char *path) { struct stat found; return !lstat(path, &found) && S_ISDIR(found.st_mode) ? rmdir(path) : unlink(path); }
int rmdir(const char *path) { REAL(rmdir); CHANGE(AT_FDCWD, 'D', real(path)); }
int unlinkat(int folder, const char *path, int how) { REAL(unlinkat); CHANGE(folder, how & AT_REMOVEDIR ? 'D' : 'U', real(folder, path, how)); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); CHANGE(AT_FDCWD, 'M', real(path, mode)); }
int mkdirat(int folder, const char *path, mode_t mode) { REAL(mkdirat); CHANGE(folder, 'M', real(folder, path, mode)); }
