/* Which call of a process changes the lake next, and what happens to it?

   Loaded before the C library (LD_PRELOAD). Counts the calls that change files whose path has a mark in it, over all
   processes that share one control file, and at one of them kills the process group, or fails as a full or read-only
   disk would. faults.py writes the control file; both must agree on `struct control`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, CREATE = 2, RENAME = 4, REMOVE = 8, MKDIR = 16, SYNC = 32, TRUNCATE = 64 };
enum { COUNT = 0, KILL = 1, TEAR = 2, FAIL_ONCE = 3, FAIL_ON = 4 };

struct control {
    long calls;     /* counted so far */
    long at;        /* the call to act on, from 1; 0: none */
    int action;
    int error;      /* errno of a failing call */
    int kinds;      /* which kinds of calls count */
    int acted;
    long seen[8];   /* calls so far by kind, whether they count or not */
    char mark[64];  /* part of the paths that count */
    char what[256]; /* the call that was acted on */
};

static struct control *control;
enum { FILES = 65536, INSIDE = 1, WRITES = 2 };
static unsigned char files[FILES];

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

int crash_load(const char *path) {
    int file = REAL(open64)(path, O_RDWR);
    if (file < 0) return -1;
    void *shared = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REAL(close)(file);
    control = shared == MAP_FAILED ? NULL : shared;
    return control ? 0 : -1;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CRASH_CONTROL");
    if (path) crash_load(path);
}

static int inside(int folder, const char *path) {
    if (!control || !path) return 0;
    if (strstr(path, control->mark)) return 1;
    return path[0] != '/' && folder >= 0 && folder < FILES && (files[folder] & INSIDE);
}

static void die(void) {
    kill(0, SIGKILL);
    for (;;) pause();
}

/* What to do about a call: 0 go on, else the errno to fail with. *torn: write half of it first, then die. */
static int gate(int kind, const char *name, const char *path, int *torn) {
    __atomic_add_fetch(&control->seen[__builtin_ctz(kind)], 1, __ATOMIC_SEQ_CST);
    if (!(control->kinds & kind)) return 0;
    long call = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    int now = control->at && call == control->at;
    if (!now && !(control->action == FAIL_ON && control->at && call > control->at)) return 0;
    if (control->action == COUNT) return 0;
    if (!control->acted) {
        control->acted = 1;
        snprintf(control->what, sizeof control->what, "%s %s", name, path ? path : "");
    }
    if (control->action == TEAR && torn) { *torn = 1; return 0; }
    if (control->action == KILL || control->action == TEAR) die();
    return control->error;
}

#define STOP(kind, name, path) do { int why = gate(kind, name, path, NULL); if (why) { errno = why; return -1; } } while (0)

static int noted(int file, int folder, const char *path, int flags) {
    if (file >= 0 && file < FILES) {
        int writes = (flags & O_ACCMODE) != O_RDONLY;
        files[file] = inside(folder, path) ? (INSIDE | (writes ? WRITES : 0)) : 0;
    }
    return file;
}

static int changes(int flags) { return (flags & O_ACCMODE) != O_RDONLY && (flags & (O_CREAT | O_TRUNC)); }

#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
#define OPEN(name) int name(const char *path, int flags, ...) { MODE(flags) \
    if (inside(-1, path) && changes(flags)) STOP(CREATE, "create", path); \
    return noted(REAL(name)(path, flags, mode), -1, path, flags); }
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { MODE(flags) \
    if (inside(folder, path) && changes(flags)) STOP(CREATE, "create", path); \
    return noted(REAL(name)(folder, path, flags, mode), folder, path, flags); }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int file) {
    if (file >= 0 && file < FILES) files[file] = 0;
    return REAL(close)(file);
}

static int ours(int file) { return control && file >= 0 && file < FILES && (files[file] & WRITES); }

ssize_t write(int file, const void *bytes, size_t size) {
    if (ours(file)) {
        int torn = 0, why = gate(WRITE, "write", "", &torn);
        if (why) { errno = why; return -1; }
        if (torn) { REAL(write)(file, bytes, size / 2); die(); }
    }
    return REAL(write)(file, bytes, size);
}
ssize_t writev(int file, const struct iovec *pieces, int count) {
    if (ours(file)) STOP(WRITE, "write", "");
    return REAL(writev)(file, pieces, count);
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    if (ours(file)) STOP(WRITE, "write", "");
    return REAL(pwrite)(file, bytes, size, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    if (ours(file)) STOP(WRITE, "write", "");
    return REAL(pwrite64)(file, bytes, size, at);
}
int ftruncate(int file, off_t size) {
    if (ours(file)) STOP(TRUNCATE, "truncate", "");
    return REAL(ftruncate)(file, size);
}
int ftruncate64(int file, off64_t size) {
    if (ours(file)) STOP(TRUNCATE, "truncate", "");
    return REAL(ftruncate64)(file, size);
}
static int is_inside(int file) { return control && file >= 0 && file < FILES && (files[file] & INSIDE); }
int fsync(int file) {
    if (is_inside(file)) STOP(SYNC, "fsync", "");
    return REAL(fsync)(file);
}
int fdatasync(int file) {
    if (is_inside(file)) STOP(SYNC, "fsync", "");
    return REAL(fdatasync)(file);
}
int rename(const char *from, const char *to) {
    if (inside(-1, from) || inside(-1, to)) STOP(RENAME, "rename to", to);
    return REAL(rename)(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    if (inside(a, from) || inside(b, to)) STOP(RENAME, "rename to", to);
    return REAL(renameat)(a, from, b, to);
}
int link(const char *from, const char *to) {
    if (inside(-1, to)) STOP(RENAME, "link", to);
    return REAL(link)(from, to);
}
int unlink(const char *path) {
    if (inside(-1, path)) STOP(REMOVE, "unlink", path);
    return REAL(unlink)(path);
}
int unlinkat(int folder, const char *path, int flags) {
    if (inside(folder, path)) STOP(REMOVE, "unlink", path);
    return REAL(unlinkat)(folder, path, flags);
}
int rmdir(const char *path) {
    if (inside(-1, path)) STOP(REMOVE, "rmdir", path);
    return REAL(rmdir)(path);
}
int mkdir(const char *path, mode_t mode) {
    if (inside(-1, path)) STOP(MKDIR, "mkdir", path);
    return REAL(mkdir)(path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
    if (inside(folder, path)) STOP(MKDIR, "mkdir", path);
    return REAL(mkdirat)(folder, path, mode);
}
