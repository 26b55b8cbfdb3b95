/*
 * status: how a failure travels.
 *
 * A function that can fail returns an ntee_status and takes the caller's ntee_error as its last
 * argument, never NULL inside the library. nt_fail fills it where the failure is born and returns the
 * status, so `return nt_fail(err, NTEE_INVALID, "...")` is the idiom. Whoever passes a failure on
 * leaves the error as it is. Messages name files, offsets, keys and errno texts, never values.
 */
#ifndef NT_BASE_STATUS_H
#define NT_BASE_STATUS_H

#include "ntee.h"

/* Sets *err (offset and item to -1, os_errno to 0) from a printf format and returns `status`. */
ntee_status nt_fail(ntee_error *err, ntee_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call on `file`: NTEE_FULL for ENOSPC, EDQUOT and EFBIG, NTEE_NOMEM for
 * ENOMEM, else NTEE_IO. `action` is a verb phrase: "write", "open". */
ntee_status nt_fail_os(ntee_error *err, int os_errno, const char *action, const char *file);

/* The same for bytes that are not what was written: NTEE_CORRUPT in `file` at `offset`. */
ntee_status nt_fail_corrupt(ntee_error *err, const char *file, uint64_t offset, const char *what);

/* Writes a key for a message: printable ASCII as it is, other bytes as \xNN, cut with "..." to fit
 * `cap`. Always NUL-terminated; returns out. */
char *nt_show_key(char *out, size_t cap, const void *key, size_t key_len);

/* The calling thread's last error, behind ntee_last_error(). */
ntee_error *nt_last_error(void);

#endif
