#include "engine/salvage.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/os.h"

#define PIECE (64u * 1024u)
#define HEAD 32u

static const char prefix[] = "salvage-";

uint32_t nt_salvage_number(const char *name) {
    uint32_t n = 0;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return 0;
    const char *digit = name + sizeof prefix - 1;
    if (*digit == '0') return 0;
    for (; *digit >= '0' && *digit <= '9' && n < 100000000u; digit++) n = n * 10 + (uint32_t)(*digit - '0');
    return *digit ? 0 : n;
}

/* The salvage files that are there. */
typedef struct kept {
    int dir;
    uint32_t newest;
    uint64_t bytes;
} kept;

static int count(void *arg, const char *name) {
    kept *k = arg;
    uint32_t n = nt_salvage_number(name);
    uint64_t size = 0;
    int fd;
    if (n == 0) return 0;
    if (n > k->newest) k->newest = n;
    if (NT_OS->open_at(k->dir, name, 0, &fd)) return 0;
    if (!NT_OS->size(fd, &size)) k->bytes += size;
    NT_OS->close(fd);
    return 0;
}

static int copy(int fd, const nt_log *log, uint64_t generation, uint64_t offset, uint64_t len) {
    uint8_t *piece = nt_alloc(PIECE);
    ntee_error ignored;
    size_t done;
    uint8_t head[HEAD];
    memcpy(head, NT_SALVAGE_MAGIC, 8);
    nt_store64(head + 8, generation);
    nt_store64(head + 16, offset);
    nt_store64(head + 24, len);
    int failed = piece == NULL || nt_os_write(fd, head, sizeof head, 0, &done);
    for (uint64_t at = 0; at < len && !failed; at += PIECE) {
        size_t n = len - at < PIECE ? (size_t)(len - at) : PIECE;
        failed = nt_log_read(log, offset + at, piece, n, &ignored) != NTEE_OK ||
                 nt_os_write(fd, piece, n, HEAD + at, &done);
    }
    nt_free(piece);
    return failed || NT_OS->sync_data(fd);
}

void nt_salvage(int dir, const nt_log *log, uint64_t generation, uint64_t offset, uint64_t len) {
    kept k = {.dir = dir};
    char name[32];
    int fd;
    if (NT_OS->list(dir, count, &k) || k.bytes + HEAD >= NT_SALVAGE_MOST) return;
    if (len > NT_SALVAGE_MOST - HEAD - k.bytes) len = NT_SALVAGE_MOST - HEAD - k.bytes;
    snprintf(name, sizeof name, "%s%u", prefix, (unsigned)(k.newest + 1));
    if (NT_OS->open_at(dir, name, NT_OS_WRITE | NT_OS_CREATE | NT_OS_EXCL, &fd)) return;
    int failed = copy(fd, log, generation, offset, len);
    NT_OS->close(fd);
    if (failed) NT_OS->unlink_at(dir, name);
    else NT_OS->sync_dir(dir);
}
