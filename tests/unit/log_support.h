/* log_support: sample ops for the tests of the log's bytes. */
#ifndef NT_TESTS_LOG_SUPPORT_H
#define NT_TESTS_LOG_SUPPORT_H

#include "base/bytes.h"
#include "base/hash.h"
#include "format/record.h"
#include "support.h"

#define SEED UINT64_C(0x0123456789abcdef)
#define SALT UINT64_C(0x1111222233334444)

static const nt_log_header HEADER = {
    .version = NT_FORMAT_VERSION,
    .store_id = {16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
    .generation = 3,
    .base = 1u << 20,
    .salt = SALT,
    .durable = 8192,
    .blob_oldest = 2,
};

/* Where keys, values and terms of sample ops come from. */
static uint8_t pool[1 << 17];

static inline void fill_pool(nt_random *r) { nt_random_fill(r, pool, sizeof pool); }

/* An op of a kind with the options that the low bits of `shape` choose. */
static inline nt_op make_op(uint8_t kind, unsigned shape, uint16_t key_len, uint32_t value_len,
                            uint32_t terms_len) {
    nt_op op = {.kind = kind, .key_len = key_len, .key = pool + 7};
    if (kind == NT_OP_PUT) {
        op.value_kind = (uint8_t)(shape >> 3) % 3;
        op.in_blob = (shape & 4) != 0;
        op.value_len = value_len;
        if (op.in_blob) op.blob = (nt_blob_ref){UINT64_C(0xA1A2A3A4A5A6A7A8), UINT64_C(1) << 50, 12345};
        else op.value = pool + 1001;
        if ((shape & 2) && terms_len > 0) {
            op.terms = pool + 333;
            op.terms_len = terms_len;
        }
    }
    if (kind == NT_OP_EXPIRE || ((kind == NT_OP_PUT || kind == NT_OP_COUNTER) && (shape & 1))) {
        op.expires = 1;
        op.deadline = (shape & 8) ? INT64_MIN + 5 : INT64_C(1700000000123);
    }
    if (kind == NT_OP_COUNTER) {
        op.value_len = 16;
        op.cell = UINT64_C(0xC0FFEE0000000001);
        op.first = INT64_MIN;
    }
    return op;
}

#endif
