/* A layer between a program and its disk and clock, loaded with LD_PRELOAD.
 *
 * It fails reads, writes and flushes of the database of Sully on request, and records writes and
 * flushes, so that the state of the disk after a power failure can be computed. layer.py writes
 * the requests into a shared control block, powercut.py reads the record.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum fault { NONE, WRITE_EIO, WRITE_ENOSPC, WRITE_SHORT, WRITE_TORN, SYNC_EIO, READ_EIO, POWER_CUT };
enum call { READ, WRITE, SYNC };

struct control {
    uint32_t fault;
    uint32_t skip;     /* so many calls pass before the first that fails */
    uint32_t count;    /* so many calls fail */
    uint32_t injected; /* so many have failed */
    int64_t clock_ns;  /* added to the time of day */
};

struct head {
    uint8_t kind; /* 'W' write, 'T' truncate, 'S' flush, 'F' failed flush, 'U' unlink */
    uint8_t file; /* 0 database, 1 write-ahead log */
    uint8_t padding[6];
    uint64_t offset;
    uint64_t length;
};

static struct control *control;
static int record = -1;
static char paths[2][PATH_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void) {
    const char *directory = getenv("SULLY_FAULTS_DIRECTORY");
    const char *block = getenv("SULLY_FAULTS_CONTROL");
    const char *log = getenv("SULLY_FAULTS_RECORD");
    if (!directory || !block || !log) return;
    snprintf(paths[0], PATH_MAX, "%s/store.db", directory);
    snprintf(paths[1], PATH_MAX, "%s/store.db-wal", directory);
    int opened = open(block, O_RDWR | O_CLOEXEC);
    if (opened < 0) abort();
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    close(opened);
    if (mapped == MAP_FAILED) abort();
    record = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (record < 0) abort();
    control = mapped;
}

/* Return the number of a file that faults are for, or -1. */
static int file_of(int fd) {
    char link[32], path[PATH_MAX];
    if (!control) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return -1;
    path[length] = 0;
    for (int file = 0; file < 2; file++)
        if (!strcmp(path, paths[file])) return file;
    return -1;
}

static void note(char kind, int file, uint64_t offset, const void *data, uint64_t length) {
    struct head head = {(uint8_t)kind, (uint8_t)file, {0}, offset, length};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, data ? length : 0}};
    if (writev(record, parts, 2) != (ssize_t)(sizeof head + parts[1].iov_len)) abort();
}

static int concerns(enum fault fault, enum call call) {
    switch (fault) {
    case WRITE_EIO: case WRITE_ENOSPC: case WRITE_SHORT: case WRITE_TORN: return call == WRITE;
    case SYNC_EIO: return call == SYNC;
    case READ_EIO: return call == READ;
    case POWER_CUT: return call != READ;
    default: return 0;
    }
}

/* Return the fault of this call. Called with the mutex. */
static enum fault next(enum call call) {
    enum fault fault = __atomic_load_n(&control->fault, __ATOMIC_ACQUIRE);
    if (!concerns(fault, call)) return NONE;
    if (control->skip) {
        control->skip--;
        return NONE;
    }
    if (!control->count) return NONE;
    control->count--;
    __atomic_add_fetch(&control->injected, 1, __ATOMIC_RELEASE);
    return fault;
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static ssize_t fault_write(int fd, const void *data, size_t size, off_t offset) {
    ssize_t (*real)(int, const void *, size_t, off_t) =
        REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    int file = file_of(fd);
    if (file < 0) return real(fd, data, size, offset);
    pthread_mutex_lock(&mutex);
    static int torn;
    ssize_t done = -1;
    int error = 0;
    enum fault fault = next(WRITE);
    size_t half = size > 1 ? size / 2 : size;
    if (torn || fault == WRITE_ENOSPC) {
        torn = 0;
        error = ENOSPC;
    } else if (fault == WRITE_EIO) {
        error = EIO;
    } else {
        if (fault == WRITE_SHORT || fault == WRITE_TORN || fault == POWER_CUT) size = half;
        note('W', file, (uint64_t)offset, data, size);
        if (fault == POWER_CUT) kill(getpid(), SIGKILL);
        torn = fault == WRITE_TORN;
        done = real(fd, data, size, offset);
        error = errno;
    }
    pthread_mutex_unlock(&mutex);
    if (done < 0) errno = error;
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) {
    return fault_write(fd, data, size, offset);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    return fault_write(fd, data, size, offset);
}

static ssize_t fault_read(int fd, void *data, size_t size, off_t offset) {
    if (control && control->fault == READ_EIO && file_of(fd) >= 0) {
        pthread_mutex_lock(&mutex);
        enum fault fault = next(READ);
        pthread_mutex_unlock(&mutex);
        if (fault == READ_EIO) {
            errno = EIO;
            return -1;
        }
    }
    return REAL(ssize_t, "pread64", int, void *, size_t, off_t)(fd, data, size, offset);
}

ssize_t pread64(int fd, void *data, size_t size, off_t offset) {
    return fault_read(fd, data, size, offset);
}
ssize_t pread(int fd, void *data, size_t size, off_t offset) {
    return fault_read(fd, data, size, offset);
}

static int fault_sync(int fd, const char *name) {
    int (*real)(int) = REAL(int, name, int);
    int file = file_of(fd);
    if (file < 0) return real(fd);
    pthread_mutex_lock(&mutex);
    int done = -1, error = EIO;
    enum fault fault = next(SYNC);
    if (fault == POWER_CUT) kill(getpid(), SIGKILL);
    if (fault == SYNC_EIO) {
        note('F', file, 0, NULL, 0);
    } else {
        /* The disk of the machine is not tested: what is recorded as flushed counts. */
        done = 0;
        note('S', file, 0, NULL, 0);
    }
    pthread_mutex_unlock(&mutex);
    if (done < 0) errno = error;
    return done;
}

int fsync(int fd) { return fault_sync(fd, "fsync"); }
int fdatasync(int fd) { return fault_sync(fd, "fdatasync"); }

static int fault_truncate(int fd, off_t size) {
    int (*real)(int, off_t) = REAL(int, "ftruncate64", int, off_t);
    int file = file_of(fd);
    if (file < 0) return real(fd, size);
    pthread_mutex_lock(&mutex);
    note('T', file, (uint64_t)size, NULL, 0);
    int done = real(fd, size);
    pthread_mutex_unlock(&mutex);
    return done;
}

int ftruncate(int fd, off_t size) { return fault_truncate(fd, size); }
int ftruncate64(int fd, off_t size) { return fault_truncate(fd, size); }

int unlink(const char *path) {
    for (int file = 0; control && file < 2; file++)
        if (!strcmp(path, paths[file])) {
            pthread_mutex_lock(&mutex);
            note('U', file, 0, NULL, 0);
            pthread_mutex_unlock(&mutex);
        }
    return REAL(int, "unlink", const char *)(path);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int done = real(clock, now);
    if (done || !control || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return done;
    int64_t moved = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec +
                    __atomic_load_n(&control->clock_ns, __ATOMIC_ACQUIRE);
    now->tv_sec = moved / 1000000000;
    now->tv_nsec = moved % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
