#include "base/os.h"

#include <errno.h>

#ifdef NT_TESTING
const nt_os *nt_os_now = &nt_os_posix;
#endif

int nt_os_read(int fd, void *buf, size_t len, uint64_t offset) {
    uint8_t *to = buf;
    while (len > 0) {
        size_t moved = 0;
        int error = NT_OS->pread(fd, to, len, offset, &moved);
        if (error == EINTR) continue;
        if (error != 0) return error;
        if (moved == 0) return EIO;
        to += moved;
        offset += moved;
        len -= moved;
    }
    return 0;
}

/* Bytes of one write: a system that gives a file pages as large as the writes are gives very large ones for
 * larger writes, and clearing and finding those can cost more than all the rest. */
#define PIECE ((size_t)256 << 10)

int nt_os_write(int fd, const void *buf, size_t len, uint64_t offset, size_t *done) {
    const uint8_t *from = buf;
    *done = 0;
    while (*done < len) {
        size_t moved = 0, left = len - *done;
        int error = NT_OS->pwrite(fd, from + *done, left < PIECE ? left : PIECE, offset + *done, &moved);
        if (error == EINTR) continue;
        if (error != 0) return error;
        if (moved == 0) return EIO;
        *done += moved;
    }
    return 0;
}
