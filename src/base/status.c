#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

typedef struct status_text {
    const char *name;
    const char *text;
} status_text;

static const status_text STATUSES[] = {
    [NTEE_OK] = {"NTEE_OK", "success"},
    [NTEE_NOT_FOUND] = {"NTEE_NOT_FOUND", "not found"},
    [NTEE_INVALID] = {"NTEE_INVALID", "invalid argument"},
    [NTEE_TOO_LARGE] = {"NTEE_TOO_LARGE", "key, value or batch over its limit"},
    [NTEE_LOCKED] = {"NTEE_LOCKED", "another handle has the store open"},
    [NTEE_IO] = {"NTEE_IO", "the operating system reported an error"},
    [NTEE_FULL] = {"NTEE_FULL", "no space left"},
    [NTEE_CORRUPT] = {"NTEE_CORRUPT", "the bytes are not what was written"},
    [NTEE_VERSION] = {"NTEE_VERSION", "written by a newer version of the format"},
    [NTEE_NOMEM] = {"NTEE_NOMEM", "out of memory"},
    [NTEE_TYPE] = {"NTEE_TYPE", "the key holds another kind of record"},
    [NTEE_OVERFLOW] = {"NTEE_OVERFLOW", "the number does not fit 64 bits"},
    [NTEE_EXISTS] = {"NTEE_EXISTS", "it is there already"},
    [NTEE_CLOSED] = {"NTEE_CLOSED", "the handle is closed or has failed"},
    [NTEE_READONLY] = {"NTEE_READONLY", "the handle is read-only"},
    [NTEE_FORKED] = {"NTEE_FORKED", "the handle belongs to the parent process"},
    [NTEE_CANCELLED] = {"NTEE_CANCELLED", "stopped on request"},
    [NTEE_SHORT_BUFFER] = {"NTEE_SHORT_BUFFER", "the result is longer than the buffer"},
    [NTEE_WOULD_BLOCK] = {"NTEE_WOULD_BLOCK", "the answer is not at hand"},
};

enum { STATUS_COUNT = sizeof STATUSES / sizeof STATUSES[0] };

typedef struct errno_text {
    int number;
    const char *text;
} errno_text;

/* Texts of our own: strerror depends on the locale, and is not safe in threads everywhere. */
static const errno_text ERRNOS[] = {
    {EACCES, "permission denied"},
    {EAGAIN, "try again"},
    {EBADF, "bad file descriptor"},
    {EBUSY, "device or resource busy"},
    {EDQUOT, "disk quota exceeded"},
    {EEXIST, "file exists"},
    {EFBIG, "file too large"},
    {EINTR, "interrupted"},
    {EINVAL, "invalid argument, or not a regular file"},
    {EIO, "input/output error"},
    {EISDIR, "is a directory"},
    {ELOOP, "is a symbolic link"},
    {EMFILE, "too many open files"},
    {ENAMETOOLONG, "file name too long"},
    {ENFILE, "too many open files in the system"},
    {ENODEV, "no such device"},
    {ENOENT, "no such file or directory"},
    {ENOLCK, "no locks available"},
    {ENOMEM, "out of memory"},
    {ENOSPC, "no space left on device"},
    {ENOSYS, "not supported by this system"},
    {ENOTDIR, "not a directory"},
    {ENOTEMPTY, "directory not empty"},
    {EOPNOTSUPP, "not supported by this file system"},
    {EPERM, "operation not permitted"},
    {EROFS, "read-only file system"},
    {ESTALE, "stale file handle"},
};

static const char *errno_string(int number) {
    for (size_t i = 0; i < sizeof ERRNOS / sizeof ERRNOS[0]; i++) {
        if (ERRNOS[i].number == number) return ERRNOS[i].text;
    }
    return "system error";
}

const char *ntee_strerror(ntee_status status) {
    if (status < 0 || status >= STATUS_COUNT) return "unknown status";
    return STATUSES[status].text;
}

const char *ntee_status_name(ntee_status status) {
    if (status < 0 || status >= STATUS_COUNT) return "NTEE_UNKNOWN";
    return STATUSES[status].name;
}

/* The length of the UTF-8 sequence that `text` begins with, or 0 where it is none. */
static size_t utf8_length(const unsigned char *text) {
    unsigned char first = text[0];
    if (first < 0x80) return 1;
    size_t len = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0; /* a NUL ends the sequence here as well */
    }
    if (first == 0xE0 && text[1] < 0xA0) return 0;
    if (first == 0xED && text[1] > 0x9F) return 0;
    if (first == 0xF0 && text[1] < 0x90) return 0;
    if (first == 0xF4 && text[1] > 0x8F) return 0;
    return len;
}

/* Paths may hold any bytes, and a cut may fall into a character: what is not UTF-8 becomes '?'. */
static void keep_utf8(char *message) {
    size_t i = 0;
    while (message[i] != 0) {
        size_t len = utf8_length((const unsigned char *)message + i);
        if (len == 0) message[i] = '?';
        i += len == 0 ? 1 : len;
    }
}

static void fail(ntee_error *err, ntee_status status, const char *format, va_list args) {
    char message[sizeof err->message]; /* the arguments may lie in err->message */
    int len = vsnprintf(message, sizeof message, format, args);
    if (len < 0) message[0] = 0;
    keep_utf8(message);
    *err = (ntee_error){.status = status, .os_errno = 0, .offset = -1, .item = -1};
    memcpy(err->message, message, strlen(message));
}

ntee_status nt_fail(ntee_error *err, ntee_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(err, status, format, args);
    va_end(args);
    return status;
}

static ntee_status status_of_errno(int os_errno) {
    switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return NTEE_FULL;
    case ENOMEM: return NTEE_NOMEM;
    default: return NTEE_IO;
    }
}

ntee_status nt_fail_os(ntee_error *err, int os_errno, const char *action, const char *file) {
    ntee_status status = nt_fail(err, status_of_errno(os_errno), "cannot %s %s: %s (errno %d)", action,
                                 file, errno_string(os_errno), os_errno);
    err->os_errno = os_errno;
    return status;
}

ntee_status nt_fail_corrupt(ntee_error *err, const char *file, uint64_t offset, const char *what) {
    nt_fail(err, NTEE_CORRUPT, "%s at offset %llu: %s", file, (unsigned long long)offset, what);
    err->offset = offset <= INT64_MAX ? (int64_t)offset : INT64_MAX;
    return NTEE_CORRUPT;
}

/* Writes one byte of a key as a message shows it; returns the number of characters. */
static size_t show_byte(char out[4], uint8_t byte) {
    static const char HEX[] = "0123456789abcdef";
    if (byte >= 0x20 && byte < 0x7F && byte != '\\') {
        out[0] = (char)byte;
        return 1;
    }
    out[0] = '\\';
    out[1] = 'x';
    out[2] = HEX[byte >> 4];
    out[3] = HEX[byte & 15];
    return 4;
}

char *nt_show_key(char *out, size_t cap, const void *key, size_t key_len) {
    const uint8_t *bytes = key;
    size_t used = 0;
    size_t safe = 0; /* the last length that leaves room for "..." */
    if (cap == 0) return out;
    for (size_t i = 0; i < key_len; i++) {
        char shown[4];
        size_t len = show_byte(shown, bytes[i]);
        if (len > cap - 1 - used) {
            size_t dots = nt_min(3, cap - 1 - safe);
            memcpy(out + safe, "...", dots);
            out[safe + dots] = 0;
            return out;
        }
        memcpy(out + used, shown, len);
        used += len;
        if (used + 3 <= cap - 1) safe = used;
    }
    out[used] = 0;
    return out;
}

ntee_error *nt_last_error(void) {
    static _Thread_local ntee_error last = {.status = NTEE_OK, .offset = -1, .item = -1};
    return &last;
}

const ntee_error *ntee_last_error(void) { return nt_last_error(); }
