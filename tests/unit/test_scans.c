/* Scans and counts of the C API, against a model. */
#include "unit/store.h"

/* ---- The model: a sorted array -------------------------------------------------------------------- */

#define KEYS_MAX 600

typedef struct item {
    uint8_t key[1200];
    size_t len;
    uint32_t value; /* the value is value % 50 bytes of itself */
} item;

typedef struct model {
    item items[KEYS_MAX];
    size_t count;
} model;

static int find(const model *m, const uint8_t *key, size_t len, size_t *at) {
    for (*at = 0; *at < m->count; ++*at) {
        int c = nt_compare(m->items[*at].key, m->items[*at].len, key, len);
        if (c >= 0) return c == 0;
    }
    return 0;
}

static size_t make_value(uint8_t out[64], uint32_t value) {
    memset(out, (int)(value & 0xFF), 64);
    return value % 50;
}

/* Keys that are prefixes of each other, with NULs and 0xFF, some long. */
static size_t make_key(nt_random *r, uint8_t *out) {
    static const uint8_t bytes[] = {0x00, 0x01, 'a', 'b', 0x7F, 0x80, 0xFE, 0xFF};
    size_t len = 1 + nt_random_below(r, 4);
    uint64_t shape = nt_random_below(r, 12);
    size_t head = 0;
    if (shape == 0) head = 236 + nt_random_below(r, 8);
    if (shape == 1) head = 700 + nt_random_below(r, 300);
    memset(out, shape == 0 ? 'a' : 0xFF, head);
    for (size_t i = 0; i < len; i++) out[head + i] = bytes[nt_random_below(r, sizeof bytes)];
    return head + len;
}

static void mutate(ntee *db, model *m, nt_random *r) {
    uint8_t key[1200], value[64];
    size_t at, len = make_key(r, key);
    int there = find(m, key, len, &at);
    if (nt_random_below(r, 4) == 0) {
        assert_int_equal(ntee_delete(db, key, len), there ? NTEE_OK : NTEE_NOT_FOUND);
        if (!there) return;
        m->count--;
        memmove(&m->items[at], &m->items[at + 1], (m->count - at) * sizeof(item));
        return;
    }
    if (!there && m->count == KEYS_MAX) return;
    uint32_t number = (uint32_t)nt_random_next(r);
    size_t value_len = make_value(value, number);
    assert_int_equal(ntee_put(db, key, len, value, value_len, NULL), NTEE_OK);
    if (!there) {
        memmove(&m->items[at + 1], &m->items[at], (m->count - at) * sizeof(item));
        m->count++;
        memcpy(m->items[at].key, key, len);
        m->items[at].len = len;
    }
    m->items[at].value = number;
}

static int in_range(const ntee_scan_options *o, const item *i) {
    const ntee_range *r = &o->range;
    if (r->flags & NTEE_PREFIX)
        return !r->lower || (i->len >= r->lower_len && (!r->lower_len || !memcmp(i->key, r->lower, r->lower_len)));
    if (r->lower) {
        int c = nt_compare(i->key, i->len, r->lower, r->lower_len);
        if (c < 0 || (c == 0 && (r->flags & NTEE_LOWER_GT))) return 0;
    }
    if (r->upper) {
        int c = nt_compare(i->key, i->len, r->upper, r->upper_len);
        if (c > 0 || (c == 0 && !(r->flags & NTEE_UPPER_LTE))) return 0;
    }
    return 1;
}

static int wanted(const ntee_scan_options *o, const item *i) {
    if (!in_range(o, i)) return 0;
    if (!o->after) return 1;
    int c = nt_compare(i->key, i->len, o->after, o->after_len);
    return o->flags & NTEE_REVERSE ? c < 0 : c > 0;
}

/* Reads a whole scan in pages of `cap` bytes, growing where the page asks for it, and compares. */
static void check_scan(ntee_scan *scan, const model *m, const ntee_scan_options *o, size_t cap) {
    static _Alignas(8) uint8_t room[8192];
    int down = (o->flags & NTEE_REVERSE) != 0, values = (o->flags & NTEE_VALUES) != 0;
    size_t next = 0;
    uint64_t left = o->limit ? o->limit : UINT64_MAX;
    ntee_page page;
    for (;;) {
        size_t now = cap;
        ntee_status status = ntee_scan_page(scan, room, now, &page);
        if (status == NTEE_SHORT_BUFFER) {
            assert_true(page.needed > (now & ~(size_t)7) && page.needed <= sizeof room);
            assert_int_equal(page.count, 0);
            now = page.needed;
            status = ntee_scan_page(scan, room, now, &page);
        }
        assert_int_equal(status, NTEE_OK);
        ntee_entry entry = {0};
        uint64_t count = 0;
        int ascii = 1;
        while (ntee_page_next(&page, &entry)) {
            const item *i;
            do {
                assert_true(next < m->count);
                i = &m->items[down ? m->count - 1 - next : next];
                next++;
            } while (!wanted(o, i));
            assert_int_equal(entry.key_len, i->len);
            assert_memory_equal(entry.key, i->key, i->len);
            for (size_t b = 0; b < i->len; b++) ascii &= i->key[b] < 128;
            if (values) {
                uint8_t value[64];
                assert_int_equal(entry.value_len, make_value(value, i->value));
                assert_memory_equal(entry.value, value, entry.value_len);
            } else {
                assert_null(entry.value);
            }
            assert_true(left > 0);
            left--;
            count++;
        }
        assert_int_equal(count, page.count);
        if (page.flags & NTEE_PAGE_KEYS_ASCII) assert_true(ascii);
        if (count) assert_int_equal((page.flags & NTEE_PAGE_VALUES) != 0, values);
        if (!page.more) break;
        assert_true(count > 0);
    }
    assert_int_equal(ntee_scan_page(scan, room, sizeof room, &page), NTEE_OK);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.more, 0);
    while (left && next < m->count) {
        assert_false(wanted(o, &m->items[down ? m->count - 1 - next : next]));
        next++;
    }
}

static ntee_scan_options random_options(nt_random *r, uint8_t bounds[3][1200]) {
    ntee_scan_options o = {.size = sizeof o};
    uint64_t bits = nt_random_next(r);
    if (bits & 1) {
        o.range.lower = bounds[0];
        o.range.lower_len = bits & 2 ? make_key(r, bounds[0]) : nt_random_below(r, 2);
        if (o.range.lower_len == 1) bounds[0][0] = 0xFF;
    }
    if (bits & 4) {
        o.range.flags = NTEE_PREFIX;
    } else {
        if (bits & 8) {
            o.range.upper = bounds[1];
            o.range.upper_len = make_key(r, bounds[1]) - (bits >> 4 & 1);
        }
        o.range.flags = (bits & 32 ? NTEE_LOWER_GT : 0u) | (bits & 64 ? NTEE_UPPER_LTE : 0u);
    }
    if (bits & 128) {
        o.after = bounds[2];
        o.after_len = bits & 256 ? make_key(r, bounds[2]) : 0;
        if (bits & 4096 && o.range.lower_len) {
            o.after = o.range.lower;
            o.after_len = o.range.lower_len;
        }
    }
    if (bits & 512) o.limit = 1 + nt_random_below(r, 60);
    o.flags = (bits & 1024 ? NTEE_REVERSE : 0u) | (bits & 2048 ? NTEE_VALUES : 0u);
    return o;
}

static void scans_and_counts_agree_with_a_model(void **state) {
    (void)state;
    nt_random r = nt_random_start("scans");
    model *m = calloc(1, sizeof *m);
    ntee *db = t_open(t_at("s"), 0);
    static uint8_t bounds[3][1200];
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 30; i++) mutate(db, m, &r);
        if (round % 20 == 19) {
            t_close(db);
            db = t_open(t_at("s"), 0);
        }
        for (int i = 0; i < 12; i++) {
            ntee_scan_options o = random_options(&r, bounds);
            static const size_t caps[] = {0, 8, 16, 100, 128, 1001, 4096, 8192};
            ntee_scan *scan;
            uint64_t count, expected = 0;
            assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_OK);
            check_scan(scan, m, &o, caps[nt_random_below(&r, 8)]);
            ntee_scan_close(scan);
            for (size_t j = 0; j < m->count; j++) expected += (uint64_t)in_range(&o, &m->items[j]);
            assert_int_equal(ntee_count(db, &o.range, &count), NTEE_OK);
            assert_int_equal(count, expected);
        }
        assert_int_equal(t_records(db), m->count);
    }
    free(m);
    t_close(db);
}

static void an_open_scan_keeps_its_state(void **state) {
    (void)state;
    nt_random r = nt_random_start("open scans");
    model *now = calloc(1, sizeof *now), *kept = calloc(4, sizeof *kept);
    ntee_scan *scans[4];
    ntee_scan_options o[4];
    ntee *db = t_open(t_at("s"), 0);
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 150; i++) mutate(db, now, &r);
        kept[s] = *now;
        o[s] = (ntee_scan_options){.size = sizeof o[s], .flags = s & 1 ? NTEE_VALUES : 0u};
        o[s].flags |= s & 2 ? NTEE_REVERSE : 0u;
        assert_int_equal(ntee_scan_open(db, &o[s], &scans[s]), NTEE_OK);
    }
    for (int i = 0; i < 3000; i++) mutate(db, now, &r);
    for (int s = 0; s < 4; s++) {
        int turn = (s * 3 + 1) % 4;
        check_scan(scans[turn], &kept[turn], &o[turn], 700);
        ntee_scan_close(scans[turn]);
        for (int i = 0; i < 200; i++) mutate(db, now, &r);
    }
    ntee_scan *scan;
    ntee_scan_options all = {.size = sizeof all, .flags = NTEE_VALUES};
    assert_int_equal(ntee_scan_open(db, &all, &scan), NTEE_OK);
    check_scan(scan, now, &all, 8192);
    ntee_scan_close(scan);
    free(now);
    free(kept);
    t_close(db);
}

/* ---- Arguments ------------------------------------------------------------------------------------ */

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    ntee *db = t_open(t_at("s"), 0);
    ntee_scan *scan = (ntee_scan *)1;
    ntee_scan_options o = {.size = sizeof o};
    static char big[70000];
    uint64_t count;
    assert_int_equal(ntee_scan_open(db, NULL, NULL), NTEE_INVALID);
    o.size = 8;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
    assert_null(scan);
    o.size = sizeof o;
    for (int bit = 3; bit < 32; bit++) {
        o.flags = 1u << bit;
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
        o.flags = 0;
        o.range.flags = 1u << bit;
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
        assert_int_equal(ntee_count(db, &o.range, &count), NTEE_INVALID);
        o.range.flags = 0;
    }
    o.reserved32 = 1;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
    o.reserved32 = 0;
    o.range.reserved = 1;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
    assert_int_equal(ntee_count(db, &o.range, &count), NTEE_INVALID);
    o.range.reserved = 0;
    for (int i = 0; i < 4; i++) {
        o.reserved[i] = 1;
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
        o.reserved[i] = 0;
    }
    ntee_range wrong[] = {{.lower_len = 1},
                          {.upper_len = 1},
                          {.lower = "a", .lower_len = 1, .upper = "b", .upper_len = 1, .flags = NTEE_PREFIX},
                          {.lower = "a", .lower_len = 1, .flags = NTEE_PREFIX | NTEE_LOWER_GT},
                          {.lower = "a", .lower_len = 1, .flags = NTEE_PREFIX | NTEE_UPPER_LTE}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.range = wrong[i];
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
        assert_int_equal(ntee_count(db, &wrong[i], &count), NTEE_INVALID);
    }
    ntee_range large[] = {{.lower = big, .lower_len = 65536},
                          {.upper = big, .upper_len = 65536},
                          {.lower = big, .lower_len = 65536, .flags = NTEE_PREFIX}};
    for (size_t i = 0; i < 3; i++) {
        o.range = large[i];
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_TOO_LARGE);
        assert_int_equal(ntee_count(db, &large[i], &count), NTEE_TOO_LARGE);
    }
    o.range = (ntee_range){0};
    o.after_len = 1;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_INVALID);
    o.after = big;
    o.after_len = 65536;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_TOO_LARGE);
    o.after_len = 65535;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_OK);
    ntee_page page;
    _Alignas(8) char room[64];
    assert_int_equal(ntee_scan_page(NULL, room, 64, &page), NTEE_INVALID);
    assert_int_equal(ntee_scan_page(scan, room, 64, NULL), NTEE_INVALID);
    assert_int_equal(ntee_scan_page(scan, NULL, 64, &page), NTEE_INVALID);
    assert_int_equal(ntee_scan_page(scan, room + 4, 32, &page), NTEE_INVALID);
    assert_int_equal(ntee_scan_page(scan, NULL, 0, &page), NTEE_OK);
    ntee_scan_close(scan);
    ntee_scan_close(NULL);
    t_close(db);
}

static void the_longest_keys_fit_the_page_that_was_asked_for(void **state) {
    (void)state;
    static uint8_t key[65535];
    static _Alignas(8) uint8_t room[1 << 18];
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 3; i++) {
        key[65534] = (uint8_t)i;
        assert_int_equal(ntee_put(db, key, sizeof key, "value", 5, NULL), NTEE_OK);
    }
    for (int i = 0; i < 4; i++) {
        ntee_scan *scan;
        ntee_page page;
        ntee_entry entry = {0};
        ntee_scan_options o = {.size = sizeof o, .flags = (i & 1 ? NTEE_VALUES : 0u) | (i & 2 ? NTEE_REVERSE : 0u)};
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_OK);
        for (int n = 0; n < 3; n++) {
            assert_int_equal(ntee_scan_page(scan, room, 65535, &page), NTEE_SHORT_BUFFER);
            assert_int_equal(ntee_scan_page(scan, room, 65535, &page), NTEE_SHORT_BUFFER);
            memset(room, 0xAA, sizeof room);
            assert_int_equal(ntee_scan_page(scan, room, page.needed, &page), NTEE_OK);
            assert_int_equal(page.count, 1);
            assert_int_equal(room[page.capacity], 0xAA);
            assert_true(ntee_page_next(&page, &entry));
            assert_int_equal(entry.key_len, 65535);
            assert_int_equal(((const uint8_t *)entry.key)[65534], i & 2 ? 2 - n : n);
        }
        ntee_scan_close(scan);
    }
    t_close(db);
}

/* ---- Damage and failures -------------------------------------------------------------------------- */

/* Twelve records of which number 0, 5, 6 and 11 are damaged. */
static ntee *open_damaged(void) {
    static const int bad[] = {0, 5, 6, 11};
    size_t len;
    ntee *db = t_open(t_at("s"), 0);
    for (int i = 0; i < 12; i++) {
        char key[16], value[32];
        snprintf(key, sizeof key, "key%02d", i);
        snprintf(value, sizeof value, "the value %02d", i);
        assert_int_equal(t_put(db, key, value), NTEE_OK);
    }
    t_close(db);
    uint8_t *bytes = t_read(t_at("s/" LOG_NAME), &len);
    for (int i = 0; i < 4; i++) {
        char value[32];
        snprintf(value, sizeof value, "the value %02d", bad[i]);
        uint8_t *found = memmem(bytes, len, value, strlen(value));
        assert_non_null(found);
        found[2] ^= 1;
    }
    t_write(t_at("s/" LOG_NAME), bytes, len);
    free(bytes);
    return t_open(t_at("s"), 0);
}

static void damaged_records_are_errors_that_a_scan_goes_on_behind(void **state) {
    (void)state;
    ntee *db = open_damaged();
    static const size_t caps[] = {64, 100, 4096};
    for (int i = 0; i < 6; i++) {
        _Alignas(8) uint8_t room[4096];
        ntee_scan_options o = {.size = sizeof o, .flags = NTEE_VALUES | (i & 1 ? NTEE_REVERSE : 0u)};
        ntee_scan *scan;
        char seen[64] = "";
        assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_OK);
        for (;;) {
            ntee_page page;
            ntee_entry entry = {0};
            ntee_status status = ntee_scan_page(scan, room, caps[i / 2], &page);
            if (status == NTEE_CORRUPT) {
                assert_true(ntee_last_error()->offset > 0);
                assert_non_null(strstr(ntee_last_error()->message, "key key"));
                assert_null(strstr(ntee_last_error()->message, "the value"));
                strcat(seen, "!");
                continue;
            }
            assert_int_equal(status, NTEE_OK);
            while (ntee_page_next(&page, &entry))
                sprintf(seen + strlen(seen), "%c", 'a' + atoi((const char *)entry.key + 3) % 100);
            if (!page.more) break;
        }
        assert_string_equal(seen, i & 1 ? "!kjih!!edcb!" : "!bcde!!hijk!");
        ntee_scan_close(scan);
    }
    t_close(db);
}

static void damaged_records_can_be_left_out_and_keys_are_listed_all_the_same(void **state) {
    (void)state;
    ntee *db = open_damaged();
    _Alignas(8) uint8_t room[4096];
    ntee_scan_options o = {.size = sizeof o, .flags = NTEE_VALUES | NTEE_SKIP_CORRUPT};
    ntee_scan *scan;
    ntee_page page;
    uint64_t count;
    assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_OK);
    assert_int_equal(ntee_scan_page(scan, room, sizeof room, &page), NTEE_OK);
    assert_int_equal(page.count, 8);
    assert_int_equal(page.flags, NTEE_PAGE_KEYS_ASCII | NTEE_PAGE_VALUES);
    assert_int_equal(page.more, 0);
    ntee_scan_close(scan);
    assert_int_equal(ntee_scan_open(db, NULL, &scan), NTEE_OK);
    assert_int_equal(ntee_scan_page(scan, room, sizeof room, &page), NTEE_OK);
    assert_int_equal(page.count, 12);
    assert_int_equal(page.flags, NTEE_PAGE_KEYS_ASCII);
    ntee_scan_close(scan);
    assert_int_equal(ntee_count(db, NULL, &count), NTEE_OK);
    assert_int_equal(count, 12);
    t_close(db);
}

static void a_page_that_fails_loses_no_entry(void **state) {
    (void)state;
    _Alignas(8) uint8_t room[2048];
    t_use_table();
    ntee *db = t_open(t_at("s"), NTEE_NO_MMAP);
    static char value[600];
    for (int i = 10; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(ntee_put(db, key, 2, value, (size_t)(i * 12), NULL), NTEE_OK);
    }
    for (int kind = 0; kind < 2; kind++) {
        for (long nth = 1; nth < 12; nth++) {
            ntee_scan_options o = {.size = sizeof o, .flags = NTEE_VALUES};
            ntee_scan *scan;
            ntee_page page = {.more = 1};
            int next = 10;
            assert_int_equal(ntee_scan_open(db, &o, &scan), NTEE_OK);
            while (page.more) {
                ntee_entry entry = {0};
                t_fail(kind ? T_ALLOC : T_READ, nth, EIO, 0);
                ntee_status status = ntee_scan_page(scan, room, sizeof room, &page);
                t_heal();
                if (status != NTEE_OK) {
                    assert_int_equal(status, kind ? NTEE_NOMEM : NTEE_IO);
                    assert_int_equal(ntee_scan_page(scan, room, sizeof room, &page), NTEE_OK);
                }
                while (ntee_page_next(&page, &entry)) {
                    assert_int_equal(atoi((const char[3]){((const char *)entry.key)[0],
                                                          ((const char *)entry.key)[1], 0}),
                                     next);
                    next++;
                }
            }
            assert_int_equal(next, 50);
            ntee_scan_close(scan);
        }
    }
    t_close(db);
}

static void short_memory_opens_no_scan_and_leaks_nothing(void **state) {
    (void)state;
    t_use_table();
    ntee *db = t_open(t_at("s"), 0);
    assert_int_equal(t_put(db, "k", "v"), NTEE_OK);
    long memory = atomic_load(&t_memory);
    for (long nth = 1;; nth++) {
        ntee_scan *scan = (ntee_scan *)1;
        t_fail(T_ALLOC, nth, ENOMEM, 0);
        ntee_status status = ntee_scan_open(db, NULL, &scan);
        int fired = atomic_load(&t_fail_at[T_ALLOC]) == 0;
        t_heal();
        assert_int_equal(status, fired ? NTEE_NOMEM : NTEE_OK);
        if (!fired) {
            ntee_scan_close(scan);
            break;
        }
        assert_null(scan);
        assert_int_equal(atomic_load(&t_memory), memory);
    }
    assert_int_equal(atomic_load(&t_memory), memory);
    t_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(scans_and_counts_agree_with_a_model),
        T_TEST(an_open_scan_keeps_its_state),
        T_TEST(wrong_arguments_are_refused),
        T_TEST(the_longest_keys_fit_the_page_that_was_asked_for),
        T_TEST(damaged_records_are_errors_that_a_scan_goes_on_behind),
        T_TEST(damaged_records_can_be_left_out_and_keys_are_listed_all_the_same),
        T_TEST(a_page_that_fails_loses_no_entry),
        T_TEST(short_memory_opens_no_scan_and_leaks_nothing),
    };
    return T_RUN_BOTH(tests);
}
