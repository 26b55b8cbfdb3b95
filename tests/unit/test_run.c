/* ntee_run: every operation, what is at hand and what is not, and requests that are not what they should be. */
#include "unit/store.h"

#include "format/wire.h"

static _Alignas(8) uint8_t out[1 << 20];
static ntee_reply reply;

static ntee_status run(ntee *db, uint32_t op, uint32_t flags, const void *in, size_t len, size_t cap) {
    memset(&reply, 0xAB, sizeof reply);
    ntee_status status = ntee_run(db, op, flags, in, len, out, cap, &reply);
    if (reply.error.status != status) print_error("op %u: %d in the reply\n", op, reply.error.status);
    assert_int_equal(reply.error.status, status);
    if (status != NTEE_OK) {
        assert_true(reply.error.offset >= -1 && reply.error.item >= -1);
        assert_non_null(memchr(reply.error.message, 0, sizeof reply.error.message));
    }
    return status;
}

/* ---- Requests ------------------------------------------------------------------------------------- */

static uint8_t request[1 << 18];
static size_t request_len;

static void begin(void) { request_len = 0; }

static void add_write(uint8_t type, const char *key, const char *value) {
    uint8_t *at = request + request_len;
    at[0] = type;
    at[1] = 0;
    nt_store16(at + 2, (uint16_t)strlen(key));
    nt_store32(at + 4, (uint32_t)strlen(value));
    memcpy(at + 8, key, strlen(key));
    memcpy(at + 8 + strlen(key), value, strlen(value));
    request_len += 8 + strlen(key) + strlen(value);
}

static void add_key(const char *key) {
    nt_store16(request + request_len, (uint16_t)strlen(key));
    memcpy(request + request_len + 2, key, strlen(key));
    request_len += 2 + strlen(key);
}

static void make_scan(uint32_t flags, uint64_t limit, const char *prefix) {
    memset(request, 0, 32);
    nt_store32(request, flags | (prefix ? NTEE_PREFIX << 8 | 1u << 16 : 0));
    nt_store64(request + 8, limit);
    nt_store32(request + 16, prefix ? (uint32_t)strlen(prefix) : 0);
    request_len = 32;
    if (!prefix) return;
    memcpy(request + 32, prefix, strlen(prefix));
    request_len += strlen(prefix);
}

/* A page's keys and values as text: "a=1 b=2". */
static const char *page_text(size_t cap) {
    static char text[4096];
    ntee_page page = {.data = out, .capacity = cap, .count = reply.count, .keys_len = reply.keys_len,
                      .values_len = reply.values_len, .flags = reply.flags};
    ntee_entry e = {0};
    text[0] = 0;
    while (ntee_page_next(&page, &e))
        sprintf(text + strlen(text), "%s%.*s%s%.*s", text[0] ? " " : "", (int)e.key_len, (const char *)e.key,
                e.value ? "=" : "", (int)e.value_len, (const char *)e.value);
    return text;
}

static ntee *open_small(void) {
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "a", "1"), NTEE_OK);
    assert_int_equal(t_put(db, "b", "{}"), NTEE_OK);
    assert_int_equal(t_put(db, "c", "not json"), NTEE_OK);
    return db;
}

/* ---- The operations ------------------------------------------------------------------------------- */

static void get_and_has_answer(void **state) {
    (void)state;
    ntee *db = open_small();
    assert_int_equal(run(db, NTEE_OP_GET, 0, "b", 1, 100), NTEE_OK);
    assert_int_equal(reply.length, 2);
    assert_int_equal(reply.kind, NTEE_OBJECT);
    assert_memory_equal(out, "{}", 2);
    assert_int_equal(run(db, NTEE_OP_GET, 0, "c", 1, 7), NTEE_SHORT_BUFFER);
    assert_int_equal(reply.needed, 8);
    assert_int_equal(run(db, NTEE_OP_GET, 0, "c", 1, 8), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_GET, 0, "x", 1, 8), NTEE_NOT_FOUND);
    assert_int_equal(reply.error.os_errno, 0);
    assert_int_equal(reply.error.offset, -1);
    assert_int_equal(reply.error.item, -1);
    assert_int_equal(run(db, NTEE_OP_GET, 0, "", 0, 8), NTEE_INVALID);
    assert_int_equal(run(db, NTEE_OP_GET, 0, out, 65536, 8), NTEE_TOO_LARGE);
    assert_int_equal(run(db, NTEE_OP_HAS, 0, "a", 1, 0), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_HAS, 0, "x", 1, 0), NTEE_NOT_FOUND);
    assert_int_equal(run(db, NTEE_OP_HAS, NTEE_AT_HAND, "a", 1, 0), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_HAS, 0, NULL, 0, 0), NTEE_INVALID);
    t_close(db);
}

static void get_many_gives_a_page_in_the_order_asked(void **state) {
    (void)state;
    ntee *db = open_small();
    begin();
    add_key("c");
    add_key("nothing");
    add_key("a");
    add_key("c");
    assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, request, request_len, 256), NTEE_OK);
    assert_int_equal(reply.count, 4);
    assert_int_equal(reply.keys_len, 0);
    assert_int_equal(reply.flags, NTEE_PAGE_VALUES);
    assert_string_equal(page_text(256), "=not json =null =1 =not json");
    assert_memory_equal(out, "[not json,null,1,not json]", reply.values_len);
    for (size_t cap = 0; cap < 64; cap += 8)
        if (run(db, NTEE_OP_GET_MANY, 0, request, request_len, cap) != NTEE_OK) {
            assert_int_equal(reply.error.status, NTEE_SHORT_BUFFER);
            uint64_t needed = reply.needed;
            assert_true(needed > cap);
            assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, request, request_len, needed), NTEE_OK);
        }
    begin();
    add_key("a");
    add_key("b");
    assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, request, request_len, 256), NTEE_OK);
    assert_int_equal(reply.flags, NTEE_PAGE_VALUES | NTEE_PAGE_ALL_JSON);
    assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, NULL, 0, 64), NTEE_OK);
    assert_int_equal(reply.count, 0);
    begin();
    add_key("a");
    request[request_len++] = 9; /* cut off */
    assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, request, request_len, 256), NTEE_INVALID);
    assert_int_equal(reply.error.item, 1);
    begin();
    add_key("a");
    add_key("");
    assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, request, request_len, 256), NTEE_INVALID);
    assert_int_equal(reply.error.item, 1);
    t_close(db);
}

static void write_applies_and_counts_effects(void **state) {
    (void)state;
    ntee *db = open_small();
    begin();
    add_write(NT_WIRE_PUT, "k", "1");
    add_write(NT_WIRE_DELETE, "a", "");
    add_write(NT_WIRE_DELETE, "missing", "");
    add_write(NT_WIRE_PUT, "k", "2");
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_OK);
    assert_int_equal(reply.count, 3);
    assert_string_equal(t_get(db, "k"), "2");
    assert_string_equal(t_get(db, "a"), "(missing)");
    begin();
    add_write(NT_WIRE_DELETE, "k", "");
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_OK);
    assert_int_equal(reply.count, 1);
    uint64_t before = t_log_bytes(db);
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_OK);
    assert_int_equal(reply.count, 0);
    assert_int_equal(t_log_bytes(db), before);
    begin();
    add_write(NT_WIRE_PUT_IF_ABSENT, "k", "1");
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_OK);
    assert_int_equal(reply.count, 1);
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_EXISTS);
    assert_int_equal(reply.count, 0);
    for (int first = 0; first < 2; first++) {
        begin();
        add_write(first ? NT_WIRE_PUT_IF_ABSENT : NT_WIRE_PUT, "p", "1");
        add_write(first ? NT_WIRE_PUT : NT_WIRE_PUT_IF_ABSENT, "q", "1");
        assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_INVALID);
        assert_int_equal(reply.error.item, 1);
    }
    begin();
    add_write(NT_WIRE_PUT, "p", "1");
    add_write(NT_WIRE_PUT, "", "1");
    add_write(NT_WIRE_PUT, "q", "1");
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_INVALID);
    assert_int_equal(reply.error.item, 1);
    assert_int_equal(ntee_has(db, "p", 1), NTEE_NOT_FOUND);
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, NULL, 0, 0), NTEE_OK);
    assert_int_equal(reply.count, 0);
    t_close(db);
    db = t_open(t_at("s"), NTEE_READ_ONLY);
    begin();
    add_write(NT_WIRE_PUT, "p", "1");
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_READONLY);
    t_close(db);
}

static void scans_go_on_by_number(void **state) {
    (void)state;
    ntee *db = open_small();
    make_scan(NTEE_VALUES, 0, NULL);
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 256), NTEE_OK);
    assert_int_equal(reply.scan, 0);
    assert_string_equal(page_text(256), "a=1 b={} c=not json");
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 16), NTEE_OK);
    assert_int_equal(reply.count, 1);
    uint64_t number = reply.scan;
    assert_true(number != 0);
    assert_string_equal(page_text(16), "a=1");
    assert_int_equal(t_put(db, "bb", "later"), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &number, 8, 8), NTEE_SHORT_BUFFER);
    assert_true(reply.needed > 8);
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &number, 8, 16), NTEE_OK);
    assert_int_equal(reply.scan, number);
    assert_string_equal(page_text(16), "b={}");
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &number, 8, 24), NTEE_OK);
    assert_int_equal(reply.scan, 0);
    assert_string_equal(page_text(24), "c=not json");
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &number, 8, 24), NTEE_INVALID);
    assert_int_equal(run(db, NTEE_OP_SCAN_CLOSE, 0, &number, 8, 0), NTEE_INVALID);
    make_scan(NTEE_REVERSE, 2, NULL);
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 256), NTEE_OK);
    assert_string_equal(page_text(256), "c bb");
    make_scan(0, 0, "b");
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 256), NTEE_OK);
    assert_string_equal(page_text(256), "b bb");
    assert_int_equal(run(db, NTEE_OP_COUNT, 0, request, request_len, 0), NTEE_OK);
    assert_int_equal(reply.count, 2);
    make_scan(0, 3, NULL);
    assert_int_equal(run(db, NTEE_OP_COUNT, 0, request, request_len, 0), NTEE_OK);
    assert_int_equal(reply.count, 3);
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, 31, 256), NTEE_INVALID);
    assert_int_equal(run(db, NTEE_OP_COUNT, 0, request, 31, 256), NTEE_INVALID);
    t_close(db);
}

static void scan_numbers_that_are_stale_or_foreign_are_refused(void **state) {
    (void)state;
    ntee *db = open_small(), *other = t_open(t_at("t"), 0);
    uint64_t numbers[20];
    make_scan(NTEE_VALUES, 0, NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 24), NTEE_OK);
            numbers[i] = reply.scan;
            for (int j = 0; j < i; j++) assert_true(numbers[j] != numbers[i]);
        }
        assert_int_equal(run(other, NTEE_OP_SCAN_NEXT, 0, &numbers[0], 8, 24), NTEE_INVALID);
        for (int i = 0; i < 20; i += 2) {
            uint64_t n = numbers[i];
            assert_int_equal(run(db, NTEE_OP_SCAN_CLOSE, 0, &n, 8, 0), NTEE_OK);
            assert_int_equal(run(db, NTEE_OP_SCAN_CLOSE, 0, &n, 8, 0), NTEE_INVALID);
            assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &n, 8, 24), NTEE_INVALID);
        }
        uint64_t stale = numbers[0]; /* its place is another scan's now */
        assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 24), NTEE_OK);
        assert_int_equal((uint32_t)reply.scan, (uint32_t)stale);
        assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &stale, 8, 24), NTEE_INVALID);
        assert_int_equal(run(db, NTEE_OP_SCAN_CLOSE, 0, &stale, 8, 24), NTEE_INVALID);
    }
    uint64_t wrong[] = {0, 1, 21, UINT64_MAX, (uint64_t)1 << 32, numbers[1] + ((uint64_t)1 << 32), numbers[1] ^ 64};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &wrong[i], 8, 24), NTEE_INVALID);
        assert_int_equal(run(db, NTEE_OP_SCAN_CLOSE, 0, &wrong[i], 8, 24), NTEE_INVALID);
    }
    for (size_t len = 0; len < 16; len++)
        if (len != 8) assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, numbers, len, 24), NTEE_INVALID);
    t_close(other);
    t_close(db); /* and what is open goes with it */
}

static void stats_and_sync_answer(void **state) {
    (void)state;
    ntee *db = open_small();
    assert_int_equal(run(db, NTEE_OP_STATS, 0, NULL, 0, 16), NTEE_SHORT_BUFFER);
    assert_int_equal(reply.needed, 24);
    assert_int_equal(run(db, NTEE_OP_STATS, NTEE_AT_HAND, NULL, 0, 24), NTEE_OK);
    assert_int_equal(reply.length, 24);
    assert_int_equal(nt_load64(out), 3);
    assert_int_equal(nt_load64(out + 8), t_log_bytes(db));
    assert_int_equal(nt_load64(out + 16), 0);
    assert_int_equal(run(db, NTEE_OP_SYNC, 0, NULL, 0, 0), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_SYNC, NTEE_AT_HAND, NULL, 0, 0), NTEE_OK);
    t_close(db);
}

/* ---- At hand, or not ------------------------------------------------------------------------------ */

static void small_answers_are_at_hand_and_large_ones_are_not(void **state) {
    (void)state;
    static char value[70000];
    ntee *db = open_small();
    int mapped = !(t_flags & NTEE_NO_MMAP);
    ntee_status small = mapped ? NTEE_OK : NTEE_WOULD_BLOCK;
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_AT_HAND, "a", 1, 100), small);
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_AT_HAND, "x", 1, 100), NTEE_NOT_FOUND);
    make_scan(NTEE_VALUES, 0, NULL);
    assert_int_equal(run(db, NTEE_OP_SCAN, NTEE_AT_HAND, request, request_len, 256), small);
    begin();
    add_key("a");
    add_key("c");
    assert_int_equal(run(db, NTEE_OP_GET_MANY, NTEE_AT_HAND, request, request_len, 256), small);
    memset(value, 'v', sizeof value);
    assert_int_equal(ntee_put(db, "limit", 5, value, 65536, NULL), NTEE_OK);
    assert_int_equal(ntee_put(db, "large", 5, value, 65537, NULL), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_AT_HAND, "limit", 5, sizeof out), small);
    assert_int_equal(run(db, NTEE_OP_GET, NTEE_AT_HAND, "large", 5, sizeof out), NTEE_WOULD_BLOCK);
    assert_int_equal(run(db, NTEE_OP_GET, 0, "large", 5, sizeof out), NTEE_OK);
    make_scan(NTEE_VALUES, 0, "l");
    assert_int_equal(run(db, NTEE_OP_SCAN, NTEE_AT_HAND, request, request_len, sizeof out), NTEE_WOULD_BLOCK);
    assert_true(reply.needed > 0);
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, sizeof out), NTEE_OK);
    assert_int_equal(reply.count, 2);
    begin();
    add_key("limit");
    add_key("limit");
    assert_int_equal(run(db, NTEE_OP_GET_MANY, NTEE_AT_HAND, request, request_len, sizeof out), NTEE_WOULD_BLOCK);
    t_close(db);
}

static void a_thousand_keys_are_at_hand_and_one_more_is_not(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_status small = t_flags & NTEE_NO_MMAP ? NTEE_WOULD_BLOCK : NTEE_OK;
    char key[16];
    begin();
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "k%04d", i);
        assert_int_equal(t_put(db, key, "1"), NTEE_OK);
        add_key(key);
    }
    assert_int_equal(run(db, NTEE_OP_GET_MANY, NTEE_AT_HAND, request, request_len, sizeof out), small);
    add_key("nothing");
    assert_int_equal(run(db, NTEE_OP_GET_MANY, NTEE_AT_HAND, request, request_len, sizeof out), NTEE_WOULD_BLOCK);
    assert_int_equal(run(db, NTEE_OP_GET_MANY, 0, request, request_len, sizeof out), NTEE_OK);
    make_scan(0, 0, NULL);
    assert_int_equal(run(db, NTEE_OP_SCAN, NTEE_AT_HAND, request, request_len, sizeof out), NTEE_OK);
    assert_int_equal(reply.count, 1000);
    assert_int_equal(run(db, NTEE_OP_SCAN, NTEE_AT_HAND, request, request_len, 512), NTEE_WOULD_BLOCK);
    assert_true(reply.needed > 512);
    assert_int_equal(reply.scan, 0);
    assert_int_equal(t_put(db, "k1000", "1"), NTEE_OK);
    assert_int_equal(run(db, NTEE_OP_SCAN, NTEE_AT_HAND, request, request_len, sizeof out), NTEE_WOULD_BLOCK);
    uint64_t needed = reply.needed;
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, needed & ~(uint64_t)7), NTEE_OK);
    assert_int_equal(reply.count, 1001);
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 80), NTEE_OK);
    uint64_t number = reply.scan;
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, NTEE_AT_HAND, &number, 8, sizeof out), NTEE_OK);
    t_close(db);
}

static void the_next_page_blocks_where_much_is_left_and_the_scan_stands(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    char key[16];
    for (int i = 0; i < 1500; i++) {
        snprintf(key, sizeof key, "k%04d", i);
        assert_int_equal(t_put(db, key, "1"), NTEE_OK);
    }
    make_scan(0, 0, NULL);
    assert_int_equal(run(db, NTEE_OP_SCAN, 0, request, request_len, 256), NTEE_OK);
    uint64_t number = reply.scan, seen = reply.count;
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, NTEE_AT_HAND, &number, 8, sizeof out), NTEE_WOULD_BLOCK);
    assert_int_equal(reply.scan, number);
    assert_int_equal(run(db, NTEE_OP_SCAN_NEXT, 0, &number, 8, sizeof out), NTEE_OK);
    assert_int_equal(reply.scan, 0);
    assert_int_equal(reply.count + seen, 1500);
    t_close(db);
}

static void writes_at_hand_do_not_wait(void **state) {
    (void)state;
    ntee *db = open_small();
    begin();
    add_write(NT_WIRE_PUT, "k", "1");
    assert_int_equal(run(db, NTEE_OP_WRITE, NTEE_AT_HAND, request, request_len, 0), NTEE_OK);
    assert_string_equal(t_get(db, "k"), "1");
    begin();
    for (int i = 0; i < 3000; i++) add_write(NT_WIRE_PUT, "a key of many", "a value of many");
    assert_int_equal(run(db, NTEE_OP_WRITE, NTEE_AT_HAND, request, request_len, 0), NTEE_WOULD_BLOCK);
    assert_int_equal(ntee_has(db, "a key of many", 13), NTEE_NOT_FOUND);
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_OK);
    t_close(db);
    db = t_open(t_at("s"), NTEE_SYNC_EVERY_WRITE);
    begin();
    add_write(NT_WIRE_PUT, "k", "2");
    assert_int_equal(run(db, NTEE_OP_WRITE, NTEE_AT_HAND, request, request_len, 0), NTEE_WOULD_BLOCK);
    assert_string_equal(t_get(db, "k"), "1");
    assert_int_equal(run(db, NTEE_OP_WRITE, 0, request, request_len, 0), NTEE_OK);
    assert_string_equal(t_get(db, "k"), "2");
    t_close(db);
}

/* ---- Arguments in memory, keys in units ----------------------------------------------------------- */

static ntee_call call_of(ntee *db, uint32_t op, uint32_t flags, const void *in, size_t len, size_t cap) {
    memset(&reply, 0xAB, sizeof reply);
    return (ntee_call){db, op, flags, in, len, out, cap, &reply};
}

/* ntee_run_units for a text of bytes, in memory that has not one unit more. */
static const char *ask(ntee *db, uint32_t op, uint32_t flags, const char *key, size_t len, size_t cap) {
    uint16_t *units = malloc(len * sizeof *units + 1);
    for (size_t i = 0; i < len; i++) units[i] = (uint8_t)key[i];
    ntee_call call = call_of(db, op, flags, NULL, len, cap);
    const char *text = ntee_run_units(&call, units);
    free(units);
    return text;
}

static void a_call_in_memory_is_the_same_call(void **state) {
    (void)state;
    ntee *db = open_small();
    ntee_call call = call_of(db, NTEE_OP_GET, 0, "c", 1, 8);
    assert_int_equal(ntee_run_call(&call), NTEE_OK);
    assert_int_equal(reply.length, 8);
    assert_memory_equal(out, "not json", 8);
    call = call_of(db, NTEE_OP_GET, 0, "c", 1, 7);
    assert_int_equal(ntee_run_call(&call), NTEE_SHORT_BUFFER);
    call = call_of(db, NTEE_OP_GET, 8, "c", 1, 8);
    assert_int_equal(ntee_run_call(&call), NTEE_INVALID);
    call = call_of(db, NTEE_OP_GET, 0, NULL, 1, 8);
    assert_int_equal(ntee_run_call(&call), NTEE_INVALID);
    call.reply = NULL;
    assert_int_equal(ntee_run_call(&call), NTEE_INVALID);
    t_close(db);
}

static void a_key_of_any_units_below_128_is_found(void **state) {
    (void)state;
    char key[NTEE_UNITS_MAX + 1];
    ntee *db = t_open(t_at("s"), 0);
    for (size_t i = 0; i < sizeof key; i++) key[i] = (char)(i % 128);
    for (size_t len = 1; len <= sizeof key; len++) {
        ntee_status want = len <= NTEE_UNITS_MAX ? NTEE_OK : NTEE_INVALID;
        assert_int_equal(ntee_put(db, key, len, &len, sizeof len, NULL), NTEE_OK);
        assert_null(ask(db, NTEE_OP_GET, 0, key, len, 16));
        assert_int_equal(reply.error.status, want);
        if (want == NTEE_OK) assert_memory_equal(out, &len, sizeof len);
        assert_null(ask(db, NTEE_OP_HAS, 0, key, len, 0));
        assert_int_equal(reply.error.status, want);
    }
    assert_null(ask(db, NTEE_OP_HAS, 0, "x", 1, 0));
    assert_int_equal(reply.error.status, NTEE_NOT_FOUND);
    t_close(db);
}

static void units_that_are_no_ascii_are_refused(void **state) {
    (void)state;
    uint16_t units[9];
    ntee *db = open_small();
    for (size_t len = 1; len <= 9; len++)
        for (size_t at = 0; at < len; at++)
            for (unsigned bit = 7; bit < 16; bit++) {
                for (size_t i = 0; i < 9; i++) units[i] = 'a';
                units[at] = (uint16_t)(1u << bit | 'a');
                ntee_call call = call_of(db, NTEE_OP_HAS, 0, NULL, len, 8);
                assert_null(ntee_run_units(&call, units));
                assert_int_equal(reply.error.status, NTEE_INVALID);
            }
    assert_null(ask(db, NTEE_OP_GET, 0, "", 0, 8));
    assert_int_equal(reply.error.status, NTEE_INVALID);
    assert_null(ask(db, NTEE_OP_WRITE, 0, "a", 1, 8));
    assert_int_equal(reply.error.status, NTEE_INVALID);
    ntee_call call = call_of(db, NTEE_OP_GET, 0, NULL, 1, 8);
    assert_null(ntee_run_units(&call, NULL));
    assert_int_equal(reply.error.status, NTEE_INVALID);
    call.reply = NULL;
    assert_null(ntee_run_units(&call, units));
    t_close(db);
}

static void only_a_value_with_fields_comes_as_text(void **state) {
    (void)state;
    ntee *db = open_small();
    assert_int_equal(run(db, NTEE_OP_SHAPE, 0, "\1\0n", 3, 0), NTEE_OK);
    assert_int_equal(t_put(db, "n", "{\"n\":17}"), NTEE_OK);
    assert_int_equal(t_put(db, "w", "{\"n\":1} "), NTEE_OK);
    memset(out, 0xEE, 1024);
    const char *text = ask(db, NTEE_OP_GET, NTEE_FIELDS, "n", 1, 1024);
    assert_true(text == (const char *)out);
    assert_string_equal(text, "{\"n\":17}");
    assert_int_equal(reply.count, 1);
    assert_true((uint32_t)nt_load64(out + 16) == 17);
    static const char *const others = "wbcx";
    for (const char *key = others; *key; key++) assert_null(ask(db, NTEE_OP_GET, NTEE_FIELDS, key, 1, 1024));
    assert_int_equal(reply.error.status, NTEE_NOT_FOUND);
    assert_null(ask(db, NTEE_OP_GET, 0, "n", 1, 1024));
    assert_null(ask(db, NTEE_OP_GET, NTEE_FIELDS, "n", 1, 7));
    assert_int_equal(reply.error.status, NTEE_SHORT_BUFFER);
    assert_null(ask(db, NTEE_OP_HAS, NTEE_FIELDS, "n", 1, 1024));
    assert_int_equal(reply.error.status, NTEE_INVALID);
    t_close(db);
}

/* ---- Nonsense ------------------------------------------------------------------------------------- */

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    ntee *db = open_small();
    assert_int_equal(ntee_run(db, NTEE_OP_GET, 0, "a", 1, out, 8, NULL), NTEE_INVALID);
    assert_int_equal(run(NULL, NTEE_OP_GET, 0, "a", 1, 8), NTEE_INVALID);
    assert_int_equal(run(db, NTEE_OP_GET, 4, "a", 1, 8), NTEE_INVALID);
    assert_int_equal(run(db, NTEE_OP_HAS, NTEE_FIELDS, "a", 1, 8), NTEE_INVALID);
    assert_int_equal(run(db, NTEE_OP_GET, 0, NULL, 1, 8), NTEE_INVALID);
    assert_int_equal(ntee_run(db, NTEE_OP_GET, 0, "a", 1, NULL, 8, &reply), NTEE_INVALID);
    assert_int_equal(ntee_run(db, NTEE_OP_GET, 0, "a", 1, NULL, 0, &reply), NTEE_SHORT_BUFFER);
    static const uint32_t ops[] = {0, 15, 16, 255, 256, UINT32_MAX};
    for (size_t i = 0; i < 6; i++) assert_int_equal(run(db, ops[i], 0, "a", 1, 8), NTEE_INVALID);
    assert_int_equal(ntee_run(db, NTEE_OP_SCAN, 0, request, request_len, out + 4, 64, &reply), NTEE_INVALID);
    t_close(db);
}

static void random_requests_never_crash_and_change_nothing_unasked(void **state) {
    (void)state;
    nt_random r = nt_random_start("random requests");
    ntee *db = open_small();
    for (int i = 0; i < 40000; i++) {
        uint32_t op = (uint32_t)nt_random_below(&r, 12), flags = (uint32_t)nt_random_below(&r, 2);
        size_t len = nt_random_below(&r, 80), cap = nt_random_below(&r, 300) & ~(size_t)7;
        uint8_t *exact = malloc(len + 1);
        nt_random_fill(&r, exact, len);
        if (op == NTEE_OP_SCAN || op == NTEE_OP_COUNT) {
            if (len >= 4) nt_store32(exact, nt_load32(exact) & (nt_random_below(&r, 3) ? 0x70707u : UINT32_MAX));
            if (len >= 32 && nt_random_below(&r, 4)) {
                memset(exact + 4, 0, 28);
                for (size_t at = 16; at < 28; at += 4) exact[at] = (uint8_t)nt_random_below(&r, 20);
            }
        } else if (op == NTEE_OP_WRITE && len >= 8 && nt_random_below(&r, 2)) {
            exact[0] = (uint8_t)nt_random_below(&r, 5);
            exact[1] = 0;
            nt_store16(exact + 2, (uint16_t)nt_random_below(&r, 10));
            nt_store32(exact + 4, (uint32_t)nt_random_below(&r, 80));
        } else if (op == NTEE_OP_GET_MANY && len >= 2) {
            nt_store16(exact, (uint16_t)nt_random_below(&r, 10));
        } else if (op == NTEE_OP_SCAN_NEXT || op == NTEE_OP_SCAN_CLOSE) {
            len = nt_random_below(&r, 4) && len >= 8 ? 8 : len;
            if (len == 8) nt_store64(exact, nt_random_below(&r, 40) << 32 | nt_random_below(&r, 10));
        }
        ntee_status status = ntee_run(db, op, flags, exact, len, out, cap, &reply);
        assert_true(status >= 0 && status <= NTEE_WOULD_BLOCK);
        assert_true(status != NTEE_CORRUPT && status != NTEE_IO && status != NTEE_NOMEM);
        if (status == NTEE_OK && (op == NTEE_OP_SCAN || op == NTEE_OP_SCAN_NEXT || op == NTEE_OP_GET_MANY)) {
            ntee_page page = {.data = out, .capacity = cap, .count = reply.count, .keys_len = reply.keys_len,
                              .values_len = reply.values_len, .flags = reply.flags};
            ntee_entry e = {0};
            uint64_t n = 0;
            while (ntee_page_next(&page, &e)) n++;
            assert_int_equal(n, reply.count);
        }
        free(exact);
    }
    t_close(db);
    db = t_open(t_at("s"), 0);
    t_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(get_and_has_answer),
        T_TEST(get_many_gives_a_page_in_the_order_asked),
        T_TEST(write_applies_and_counts_effects),
        T_TEST(scans_go_on_by_number),
        T_TEST(scan_numbers_that_are_stale_or_foreign_are_refused),
        T_TEST(stats_and_sync_answer),
        T_TEST(small_answers_are_at_hand_and_large_ones_are_not),
        T_TEST(a_thousand_keys_are_at_hand_and_one_more_is_not),
        T_TEST(the_next_page_blocks_where_much_is_left_and_the_scan_stands),
        T_TEST(writes_at_hand_do_not_wait),
        T_TEST(a_call_in_memory_is_the_same_call),
        T_TEST(a_key_of_any_units_below_128_is_found),
        T_TEST(units_that_are_no_ascii_are_refused),
        T_TEST(only_a_value_with_fields_comes_as_text),
        T_TEST(wrong_arguments_are_refused),
        T_TEST(random_requests_never_crash_and_change_nothing_unasked),
    };
    return T_RUN_BOTH(tests);
}
