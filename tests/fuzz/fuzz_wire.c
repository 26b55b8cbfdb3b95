/*
 * fuzz_wire: requests from any bytes, and pages of any bytes. What is accepted must come out of the encoder
 * again.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_wire.c \
 *     src/format/wire.c src/base/{status,buf,os,os_posix}.c -o fuzz_wire && ./fuzz_wire -max_total_time=30
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/wire.h"

static void must(int ok) {
    if (!ok) abort();
}

static void read_writes(const uint8_t *data, size_t size) {
    nt_wire_reader reader = {.at = data, .remaining = size, .item = -1};
    nt_wire_write write;
    nt_buf out = {0};
    ntee_error err;
    int got;
    while ((got = nt_wire_next_write(&reader, &write, &err)) == 1) {
        must(nt_wire_add_write(&out, write.type, write.key, write.key_len, write.value, write.value_len));
    }
    must(out.len + reader.remaining == size && (got == 0) == (reader.remaining == 0));
    must(out.len == 0 || memcmp(out.data, data, out.len) == 0);
    must(got == 0 || (err.status == NTEE_INVALID && err.item == reader.item));
    nt_buf_free(&out);
}

static void read_keys(const uint8_t *data, size_t size) {
    nt_wire_reader reader = {.at = data, .remaining = size, .item = -1};
    const uint8_t *key;
    size_t key_len, used = 0;
    ntee_error err;
    while (nt_wire_next_key(&reader, &key, &key_len, &err) == 1) {
        must(key_len >= 1 && nt_load16(key - 2) == key_len && key == data + used + 2);
        used += 2 + key_len;
    }
    must(used + reader.remaining == size);
}

static void read_scan(const uint8_t *data, size_t size) {
    ntee_scan_options scan;
    ntee_error err;
    if (nt_wire_scan(data, size, &scan, &err) != NTEE_OK) return;
    must(scan.range.lower_len + scan.range.upper_len + scan.after_len + 32 == size);
    const uint8_t *lower = scan.range.lower, *upper = scan.range.upper, *after = scan.after;
    must(lower == NULL || lower == data + 32);
    must(upper == NULL || upper == data + 32 + scan.range.lower_len);
    must(after == NULL || after + scan.after_len == data + size);
}

static void read_page(const uint8_t *data, size_t size) {
    if (size < 56) return;
    const uint8_t *bytes = data + 56;
    size_t len = size - 56;
    ntee_page page = {.data = bytes,
                      .capacity = len,
                      .count = nt_load64(data),
                      .keys_len = nt_load64(data + 8),
                      .values_len = nt_load64(data + 16),
                      .flags = nt_load32(data + 24),
                      .next = nt_load64(data + 32),
                      .key_at = nt_load64(data + 40),
                      .value_at = nt_load64(data + 48)};
    ntee_entry e;
    while (ntee_page_next(&page, &e)) {
        const uint8_t *key = e.key, *value = e.value;
        must(key >= bytes && e.key_len <= (size_t)(bytes + len - key));
        must(value == NULL || (value >= bytes && e.value_len <= (size_t)(bytes + len - value)));
    }
}

/* Plans, forgets and fills as the bytes say. */
static void make_page(const uint8_t *data, size_t size) {
    uint8_t room[512];
    nt_page_plan page;
    if (size < 2) return;
    nt_page_begin(&page, room, (size_t)data[0] * 2);
    for (size_t i = 1; i + 1 < size; i += 2) {
        if (data[i] == 255) nt_page_truncate(&page, data[i + 1]);
        else if (data[i] < 250) nt_page_add(&page, data[i] / 5, data[i + 1] / 4, (ntee_kind)(data[i] % 5));
        must(page.keys_len + page.values_len + 8 * page.count <= page.capacity);
    }
    for (uint64_t count = page.count / 2 + data[1] % 3; page.filled < page.count;) {
        uint8_t *key, *value;
        nt_page_fill(&page, &key, &value);
        must(key >= room && value >= room && value < room + page.capacity);
        if (page.filled == count) nt_page_truncate(&page, count - (data[1] & 1));
    }
    nt_page_end(&page);
    must(page.capacity == 0 || room[page.keys_len + page.values_len - 1] == ']');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_writes(data, size);
    read_keys(data, size);
    read_scan(data, size);
    read_page(data, size);
    make_page(data, size);
    return 0;
}
