/* Pages: the golden vectors, and random ones against a list of what was put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "format/json.h"
#include "format/wire.h"
#include "golden.h"

/* One entry of a page: what was planned, and copied into it. */
typedef struct item {
    uint8_t key[40];
    uint8_t value[120];
    size_t key_len;
    size_t value_len;
    ntee_kind kind;
} item;

static void fill_next(nt_page_plan *page, const item *it) {
    uint8_t *key, *value;
    nt_page_fill(page, &key, &value);
    memcpy(key, it->key, it->key_len);
    nt_page_seen(page, key, it->key_len);
    if (it->kind != NTEE_MISSING) memcpy(value, it->value, it->value_len);
}

/* A finished page as the public struct. */
static ntee_page published(const nt_page_plan *page, uint64_t capacity) {
    uint32_t flags = NTEE_PAGE_VALUES | (page->seen < 128 ? NTEE_PAGE_KEYS_ASCII : 0u) |
                     (page->all_json ? NTEE_PAGE_ALL_JSON : 0u);
    return (ntee_page){.data = page->data,
                       .capacity = capacity,
                       .count = page->count,
                       .keys_len = page->keys_len,
                       .values_len = page->values_len,
                       .flags = flags};
}

static void reads_back(ntee_page page, const item *items, size_t count) {
    ntee_entry entry = {0};
    assert_int_equal(page.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ntee_page_next(&page, &entry), 1);
        assert_int_equal(entry.kind, items[i].kind);
        assert_int_equal(entry.key_len, items[i].key_len);
        assert_int_equal(entry.value_len, items[i].value_len);
        if (entry.key_len > 0) assert_memory_equal(entry.key, items[i].key, entry.key_len);
        if (entry.value_len > 0) assert_memory_equal(entry.value, items[i].value, entry.value_len);
    }
    assert_int_equal(ntee_page_next(&page, &entry), 0);
    assert_int_equal(ntee_page_next(&page, &entry), 0);
}

/* ---- Golden vectors ------------------------------------------------------------------------------ */

static golden *vectors;

static int read_vectors(void **state) {
    (void)state;
    vectors = golden_open(__FILE__, "tests/golden/wire.json");
    return vectors ? 0 : -1;
}

static int free_vectors(void **state) {
    (void)state;
    golden_close(vectors);
    return 0;
}

static item item_of(const golden *entry) {
    item it = {.kind = (ntee_kind)golden_number(entry, "kind")};
    uint8_t *key = golden_bytes(golden_text(entry, "key"), &it.key_len);
    uint8_t *value = golden_bytes(golden_text(entry, "value"), &it.value_len);
    assert_true(it.key_len <= sizeof it.key && it.value_len <= sizeof it.value);
    memcpy(it.key, key, it.key_len);
    memcpy(it.value, value, it.value_len);
    free(key);
    free(value);
    return it;
}

static void golden_pages_are_what_the_code_writes(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "record_pages")->first; v; v = v->next) {
        item items[8];
        size_t count = 0;
        uint64_t capacity = golden_number(v, "capacity");
        uint8_t *data = calloc(1, capacity);
        nt_page_plan page;
        print_message("%s\n", golden_text(v, "what"));
        nt_page_begin(&page, data, capacity);
        for (golden *e = golden_get(v, "entries")->first; e; e = e->next) {
            items[count] = item_of(e);
            const item *it = &items[count++];
            assert_int_equal(nt_page_add(&page, it->key_len, it->value_len, it->kind), 1);
        }
        for (size_t i = 0; i < count; i++) fill_next(&page, &items[i]);
        nt_page_end(&page);
        ntee_page out = published(&page, capacity);
        if (out.count > 0 && out.keys_len == 0) out.flags &= ~(uint32_t)NTEE_PAGE_KEYS_ASCII; /* get-many */
        assert_true(golden_same(golden_text(v, "hex"), data, page.capacity));
        assert_int_equal(out.count, golden_number(v, "count"));
        assert_int_equal(out.keys_len, golden_number(v, "keys_len"));
        assert_int_equal(out.values_len, golden_number(v, "values_len"));
        assert_int_equal(out.flags, golden_number(v, "flags"));
        reads_back(out, items, count);
        free(data);
    }
}

static void golden_pages_of_keys_read(void **state) {
    (void)state;
    for (golden *v = golden_get(vectors, "key_pages")->first; v; v = v->next) {
        size_t len;
        uint8_t *data = golden_bytes(golden_text(v, "hex"), &len);
        ntee_page page = {.data = data,
                          .capacity = golden_number(v, "capacity"),
                          .count = golden_number(v, "count"),
                          .keys_len = golden_number(v, "keys_len"),
                          .flags = (uint32_t)golden_number(v, "flags")};
        ntee_entry entry = {0};
        print_message("%s\n", golden_text(v, "what"));
        assert_int_equal(page.capacity / 8 * 8, len);
        for (golden *e = golden_get(v, "entries")->first; e; e = e->next) {
            assert_int_equal(ntee_page_next(&page, &entry), 1);
            assert_true(golden_same(golden_text(e, "key"), entry.key, entry.key_len));
            assert_null(entry.value);
            assert_int_equal(entry.value_len, 0);
        }
        assert_int_equal(ntee_page_next(&page, &entry), 0);
        free(data);
    }
}

/* ---- Random pages -------------------------------------------------------------------------------- */

static item random_item(nt_random *r, int json_only) {
    static const char *const texts[] = {"1", "[1,2]", "\"a\"", "null", "true"};
    item it = {.kind = (ntee_kind)nt_random_below(r, 5)};
    it.key_len = (size_t)nt_random_below(r, sizeof it.key);
    nt_random_fill(r, it.key, it.key_len);
    if (json_only && (it.kind == NTEE_BINARY || it.kind == NTEE_COUNTER)) it.kind = NTEE_JSON;
    if (json_only) {
        for (size_t i = 0; i < it.key_len; i++) it.key[i] &= 0x7F;
    }
    if (it.kind == NTEE_JSON || it.kind == NTEE_OBJECT || it.kind == NTEE_MISSING) {
        const char *text = it.kind == NTEE_JSON ? texts[nt_random_below(r, 5)] : "null";
        if (it.kind == NTEE_OBJECT) text = "{\"a\":{}}";
        it.value_len = strlen(text);
        memcpy(it.value, text, it.value_len);
    } else {
        it.value_len = (size_t)nt_random_below(r, sizeof it.value);
        nt_random_fill(r, it.value, it.value_len);
    }
    return it;
}

/* Plans random entries until one does not fit or `most` are there; returns how many. */
static size_t plan_some(nt_random *r, nt_page_plan *page, item *items, size_t most) {
    int json_only = nt_random_below(r, 2) == 0;
    size_t count = 0;
    while (count < most) {
        items[count] = random_item(r, json_only);
        const item *it = &items[count];
        nt_page_plan before = *page;
        uint64_t used = page->keys_len + page->values_len + 8 * page->count;
        uint64_t size = 8 + it->key_len + it->value_len + (count > 0);
        int fits = page->capacity > 0 && used + size <= page->capacity;
        uint64_t told = it->kind == NTEE_MISSING ? 99999 : it->value_len;
        assert_int_equal(nt_page_add(page, it->key_len, told, it->kind), fits);
        if (!fits) {
            assert_memory_equal(page, &before, sizeof before);
            break;
        }
        count++;
    }
    return count;
}

static void check_flags(const nt_page_plan *page, const item *items, size_t count) {
    uint8_t seen = 0;
    int all_json = 1;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < items[i].key_len; k++) seen |= items[i].key[k];
        if (items[i].kind == NTEE_BINARY || items[i].kind == NTEE_COUNTER) all_json = 0;
    }
    assert_int_equal(page->all_json, all_json);
    assert_int_equal(page->seen, seen);
    if (!all_json || page->capacity == 0) return;
    assert_int_equal(nt_json_check(page->data + page->keys_len, page->values_len), NT_JSON_OTHER);
}

static void random_pages_read_back(void **state) {
    (void)state;
    nt_random r = nt_random_start("random pages");
    for (int round = 0; round < 20000; round++) {
        item items[40];
        size_t capacity = (size_t)nt_random_below(&r, round % 2 ? 120 : 3000);
        uint8_t *data = malloc(capacity ? capacity : 1);
        nt_page_plan page;
        nt_page_begin(&page, data, capacity);
        size_t count = plan_some(&r, &page, items, (size_t)nt_random_below(&r, 40));
        for (size_t i = 0; i < count; i++) fill_next(&page, &items[i]);
        nt_page_end(&page);
        check_flags(&page, items, count);
        reads_back(published(&page, capacity), items, count);
        free(data);
    }
}

/* Entries are forgotten at any moment: while planning (and others planned instead), or after some were
 * filled. */
static void forgotten_entries_leave_no_trace(void **state) {
    (void)state;
    nt_random r = nt_random_start("forgotten entries");
    for (int round = 0; round < 20000; round++) {
        item items[40];
        uint8_t data[2000];
        nt_page_plan page;
        nt_page_begin(&page, data, sizeof data);
        size_t count = plan_some(&r, &page, items, 20);
        if (nt_random_below(&r, 2)) {
            count = (size_t)nt_random_below(&r, count + 1);
            nt_page_truncate(&page, count);
            item more = random_item(&r, 0);
            if (nt_page_add(&page, more.key_len, more.value_len, more.kind)) items[count++] = more;
        }
        size_t filled = (size_t)nt_random_below(&r, count + 1);
        for (size_t i = 0; i < filled; i++) fill_next(&page, &items[i]);
        count = (size_t)nt_random_below(&r, count + 1);
        nt_page_truncate(&page, count);
        nt_page_truncate(&page, count + 5);
        assert_int_equal(page.filled, filled < count ? filled : count);
        for (size_t i = (size_t)page.filled; i < count; i++) fill_next(&page, &items[i]);
        nt_page_end(&page);
        page.seen = 0;
        for (size_t i = 0; i < count; i++) nt_page_seen(&page, items[i].key, items[i].key_len);
        check_flags(&page, items, count);
        reads_back(published(&page, sizeof data), items, count);
    }
}

static void what_is_needed_is_enough_and_no_less(void **state) {
    (void)state;
    uint8_t *data = malloc(200000);
    for (size_t key_len = 0; key_len <= 65535; key_len += 1 + key_len * 3) {
        for (uint64_t value_len = 0; value_len < 100000; value_len += 1 + value_len * 2) {
            nt_page_plan page;
            uint64_t needed = nt_page_needed(key_len, value_len);
            nt_page_begin(&page, data, needed);
            assert_int_equal(nt_page_add(&page, key_len, value_len, NTEE_BINARY), 1);
            nt_page_begin(&page, data, needed - 1);
            assert_int_equal(nt_page_add(&page, key_len, value_len, NTEE_BINARY), 0);
        }
    }
    assert_true(nt_page_needed(65535, UINT32_MAX) == (8 + 2 + 65535 + UINT64_C(0xFFFFFFFF) + 7) / 8 * 8);
    free(data);
}

static void huge_values_do_not_fit_by_wrapping(void **state) {
    (void)state;
    uint8_t data[64];
    nt_page_plan page;
    nt_page_begin(&page, data, sizeof data);
    for (unsigned shift = 6; shift < 64; shift++) {
        assert_int_equal(nt_page_add(&page, 1, UINT64_C(1) << shift, NTEE_BINARY), 0);
        assert_int_equal(nt_page_add(&page, 1, UINT64_MAX - shift, NTEE_BINARY), 0);
    }
    assert_int_equal(nt_page_add(&page, 65535, 0, NTEE_BINARY), 0);
}

static void seen_is_the_or_of_all_bytes(void **state) {
    (void)state;
    for (size_t len = 0; len < 40; len++) {
        for (size_t at = 0; at < len; at++) {
            uint8_t key[40] = {0};
            nt_page_plan page = {.seen = 1};
            key[at] = 0xC2;
            nt_page_seen(&page, key, len);
            assert_int_equal(page.seen, 0xC3);
        }
    }
}

/* A page struct with anything in it: nothing outside the buffer is read or given out. */
static void a_page_that_is_wrong_gives_nothing_outside(void **state) {
    (void)state;
    nt_random r = nt_random_start("wrong pages");
    for (int round = 0; round < 100000; round++) {
        size_t capacity = (size_t)nt_random_below(&r, 100);
        uint64_t near[] = {0, 1, capacity / 2, capacity, capacity + 1, UINT64_MAX, nt_random_next(&r), 3};
        uint8_t *data = malloc(capacity ? capacity : 1);
        for (size_t i = 0; i < capacity; i++) {
            data[i] = (uint8_t)(nt_random_below(&r, 4) ? 0 : nt_random_next(&r));
        }
        ntee_page page = {.data = data,
                          .capacity = capacity,
                          .count = near[nt_random_below(&r, 8)],
                          .keys_len = near[nt_random_below(&r, 8)],
                          .values_len = near[nt_random_below(&r, 8)],
                          .flags = (uint32_t)nt_random_below(&r, 8),
                          .next = near[nt_random_below(&r, 8)],
                          .key_at = near[nt_random_below(&r, 8)],
                          .value_at = near[nt_random_below(&r, 8)]};
        ntee_entry e = {0};
        while (ntee_page_next(&page, &e)) {
            const uint8_t *key = e.key, *value = e.value;
            assert_true(key >= data && e.key_len <= (size_t)(data + capacity - key));
            if (page.flags & NTEE_PAGE_VALUES) {
                assert_true(value >= data && e.value_len <= (size_t)(data + capacity - value));
            }
        }
        free(data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_pages_are_what_the_code_writes),
        cmocka_unit_test(golden_pages_of_keys_read),
        cmocka_unit_test(random_pages_read_back),
        cmocka_unit_test(forgotten_entries_leave_no_trace),
        cmocka_unit_test(what_is_needed_is_enough_and_no_less),
        cmocka_unit_test(huge_values_do_not_fit_by_wrapping),
        cmocka_unit_test(seen_is_the_or_of_all_bytes),
        cmocka_unit_test(a_page_that_is_wrong_gives_nothing_outside),
    };
    return cmocka_run_group_tests(tests, read_vectors, free_vectors);
}
