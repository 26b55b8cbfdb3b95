/* From an entry to bytes that can be trusted: every damage is seen, in a mapped log and in one that is not. */
#include "unit/store.h"

#include "keydir/keydir.h"
#include "keydir/value.h"

#define SEED 77u

static int log_flags;
static int dir;

/* A log whose bytes from 128 on are one record, and what to fetch it with. */
static nt_source open_log(const uint8_t *record, size_t len) {
    uint8_t *bytes = calloc(1, 128 + len);
    nt_source source = {.base = 0, .seed = SEED};
    ntee_error err;
    memcpy(bytes + 128, record, len);
    assert_int_equal(NT_OS->open_dir(t_root, &dir), 0);
    assert_int_equal(nt_log_create(dir, LOG_NAME, bytes, 128 + len, &err), NTEE_OK);
    assert_int_equal(nt_log_open(&source.log, dir, LOG_NAME, log_flags | NT_LOG_READ_ONLY, &err), NTEE_OK);
    free(bytes);
    return source;
}

static void close_log(nt_source *source) {
    ntee_error err;
    assert_int_equal(nt_log_close(source->log, &err), NTEE_OK);
    NT_OS->close(dir);
}

static uint8_t *make_record(const char *key, size_t value_len, size_t *size) {
    static uint8_t value[300000];
    for (size_t i = 0; i < value_len; i++) value[i] = (uint8_t)(i * 31 + 7);
    nt_op op = {.kind = NT_OP_PUT, .key = (const uint8_t *)key, .key_len = (uint16_t)strlen(key),
                .value = value, .value_len = (uint32_t)value_len};
    *size = nt_record_size(&op);
    uint8_t *record = malloc(*size);
    nt_record_encode(record, &op, SEED);
    nt_record_number(record, 1);
    return record;
}

static ntee_status fetch(const nt_source *source, uint64_t entry, uint64_t end, const char *key, ntee_error *err) {
    nt_wanted wanted = {key, key ? strlen(key) : 0};
    nt_fetch f;
    ntee_status status = nt_fetch_begin(&f, source, entry, end, key ? &wanted : NULL, err);
    if (status == NTEE_OK) nt_fetch_end(&f);
    return status;
}

static void a_record_comes_back_whole(void **state) {
    (void)state;
    static const size_t lens[] = {0, 1, 7, 8, 400, 470, 471, 480, 481, 1000, 70000, 300000};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        size_t size;
        uint8_t *record = make_record("the key", lens[i], &size);
        nt_source source = open_log(record, size);
        nt_wanted wanted = {"the key", 7};
        for (int again = 0; again < 2; again++) {
            nt_fetch f;
            ntee_error err;
            ntee_status status = again ? nt_fetch_again(&f, &source, 128, 128 + size, &err)
                                       : nt_fetch_begin(&f, &source, 128, 128 + size, &wanted, &err);
            assert_int_equal(status, NTEE_OK);
            assert_int_equal(f.op.value_len, lens[i]);
            assert_int_equal(f.op.key_len, 7);
            for (size_t b = 0; b < lens[i]; b++) assert_int_equal(f.op.value[b], (uint8_t)(b * 31 + 7));
            nt_fetch_ahead(&source, 128);
            nt_fetch_end(&f);
        }
        close_log(&source);
        free(record);
    }
}

static void every_flipped_bit_is_seen(void **state) {
    (void)state;
    static const size_t lens[] = {0, 5, 600};
    for (int i = 0; i < 3; i++) {
        size_t size;
        uint8_t *record = make_record("key", lens[i], &size);
        for (size_t bit = 0; bit < size * 8; bit += i == 2 ? 5 : 1) {
            ntee_error err;
            record[bit / 8] ^= (uint8_t)(1u << bit % 8);
            nt_source source = open_log(record, size);
            record[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(fetch(&source, 128, 128 + size, NULL, &err), NTEE_CORRUPT);
            assert_int_equal(err.offset, 128);
            assert_non_null(strstr(err.message, LOG_NAME));
            assert_int_equal(fetch(&source, 128, 128 + size, "key", &err), NTEE_CORRUPT);
            assert_non_null(strstr(err.message, "key key"));
            close_log(&source);
        }
        free(record);
    }
}

static void another_keys_record_is_no_answer(void **state) {
    (void)state;
    size_t size;
    uint8_t *record = make_record("one", 10, &size);
    nt_source source = open_log(record, size);
    ntee_error err;
    assert_int_equal(fetch(&source, 128, 128 + size, "one", &err), NTEE_OK);
    static const char *const others[] = {"two", "on", "onee", "", "One"};
    for (int i = 0; i < 5; i++) assert_int_equal(fetch(&source, 128, 128 + size, others[i], &err), NTEE_CORRUPT);
    close_log(&source);
    free(record);
}

static void entries_that_lead_nowhere_are_corrupt(void **state) {
    (void)state;
    size_t size;
    uint8_t *record = make_record("key", 20, &size);
    nt_source source = open_log(record, size);
    uint64_t end = 128 + size;
    ntee_error err;
    assert_int_equal(fetch(&source, 128 | NT_ENTRY_DAMAGED, end, "key", &err), NTEE_CORRUPT);
    assert_int_equal(fetch(&source, end, end, "key", &err), NTEE_CORRUPT);
    assert_int_equal(fetch(&source, end + 8, end, "key", &err), NTEE_CORRUPT);
    assert_int_equal(fetch(&source, (1ull << 48) - 8, end, "key", &err), NTEE_CORRUPT);
    assert_int_equal(fetch(&source, 136, end, "key", &err), NTEE_CORRUPT);
    assert_int_equal(fetch(&source, 0, end, "key", &err), NTEE_CORRUPT);
    for (uint64_t cut = 128; cut < end; cut += 8) assert_int_equal(fetch(&source, 128, cut, "key", &err), NTEE_CORRUPT);
    source.base = 1000;
    assert_int_equal(fetch(&source, 128, end, "key", &err), NTEE_CORRUPT);
    assert_int_equal(fetch(&source, 1128, 1000 + end, "key", &err), NTEE_OK);
    close_log(&source);
    free(record);
}

static void a_length_that_lies_takes_no_memory(void **state) {
    (void)state;
    size_t size;
    uint8_t *record = make_record("key", 20, &size);
    ntee_error err;
    nt_store32(record + 20, 0xFFFFFFF0u);
    nt_source source = open_log(record, size);
    t_use_table();
    long before = t_calls(T_ALLOC);
    assert_int_equal(fetch(&source, 128, 128 + size, "key", &err), NTEE_CORRUPT);
    assert_int_equal(t_calls(T_ALLOC), before);
    nt_os_now = &nt_os_posix;
    close_log(&source);
    free(record);
}

static void failures_of_memory_and_disk_are_told(void **state) {
    (void)state;
    size_t size;
    uint8_t *record = make_record("key", 5000, &size);
    t_use_table();
    nt_source source = open_log(record, size);
    ntee_error err;
    long memory = atomic_load(&t_memory);
    if (log_flags & NT_LOG_NO_MAP_READ) {
        t_fail(T_ALLOC, 1, ENOMEM, 0);
        assert_int_equal(fetch(&source, 128, 128 + size, "key", &err), NTEE_NOMEM);
        for (long nth = 1; nth <= 2; nth++) {
            t_fail(T_READ, nth, EIO, 0);
            assert_int_equal(fetch(&source, 128, 128 + size, "key", &err), NTEE_IO);
            assert_int_equal(err.os_errno, EIO);
        }
    }
    t_heal();
    assert_int_equal(fetch(&source, 128, 128 + size, "key", &err), NTEE_OK);
    assert_int_equal(atomic_load(&t_memory), memory);
    close_log(&source);
    free(record);
}

static void only_what_is_known_to_be_in_memory_is_at_hand(void **state) {
    (void)state;
    size_t size;
    uint8_t *record = make_record("key", 200000, &size);
    nt_source source = open_log(record, size);
    assert_int_equal(nt_fetch_at_hand(&source, 128, 1 << 30), 0);
    nt_log_touched(source.log, 128, 24);
    assert_int_equal(nt_fetch_at_hand(&source, 128, 1 << 30), 0); /* its end is not known */
    nt_log_touched(source.log, 128, size);
    int mapped = !(log_flags & NT_LOG_NO_MAP_READ);
    assert_int_equal(nt_fetch_at_hand(&source, 128, 1 << 30), mapped ? size : 0);
    assert_int_equal(nt_fetch_at_hand(&source, 128, size), mapped ? size : 0);
    assert_int_equal(nt_fetch_at_hand(&source, 128, size - 1), 0);
    close_log(&source);
    free(record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T_TEST(a_record_comes_back_whole),
        T_TEST(every_flipped_bit_is_seen),
        T_TEST(another_keys_record_is_no_answer),
        T_TEST(entries_that_lead_nowhere_are_corrupt),
        T_TEST(a_length_that_lies_takes_no_memory),
        T_TEST(failures_of_memory_and_disk_are_told),
        T_TEST(only_what_is_known_to_be_in_memory_is_at_hand),
    };
    int failed = T_RUN(tests);
    log_flags = NT_LOG_NO_MAP_READ;
    return failed + T_RUN(tests);
}
