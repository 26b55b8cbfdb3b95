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

int nt_os_write(int fd, const void *buf, size_t len, uint64_t offset, size_t *done) {
    const uint8_t *from = buf;
    *done = 0;
    while (*done < len) {
        size_t moved = 0;
        int error = NT_OS->pwrite(fd, from + *done, len - *done, offset + *done, &moved);
        if (error == EINTR) continue;
        if (error != 0) return error;
        if (moved == 0) return EIO;
        *done += moved;
    }
    return 0;
}
