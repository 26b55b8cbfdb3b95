/*
 * golden: reads tests/golden/<name>.json for the unit tests: a tree of values over the file's text. Strings
 * have no escapes. Include it behind cmocka.h; it fails the test where the file is not what it should be.
 */
#ifndef NT_TESTS_GOLDEN_H
#define NT_TESTS_GOLDEN_H

#include "support.h"

typedef struct golden golden;
struct golden {
    char type;        /* the value's first character: { [ " n, or 0 for a number */
    const char *name; /* of a member, else NULL; both texts end in a NUL */
    const char *text; /* of a string or number */
    golden *first;    /* of the values inside */
    golden *next;
};

static inline char *golden_skip(char *at) { return at + strspn(at, " \n,:"); }

static inline golden *golden_new(char type, const char *name) {
    golden *node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->type = type;
    node->name = name;
    return node;
}

/* A string without its quotes, ended by a NUL. */
static inline char *golden_string(char **at) {
    char *start = *at + 1, *end = strchr(start, '"');
    assert_non_null(end);
    *end = 0;
    *at = end + 1;
    return start;
}

/* One value; the text is cut into pieces in place. */
static inline golden *golden_value(char **at, const char *name) {
    golden *node = golden_new(**at, name), **last = &node->first;
    if (**at == '"') {
        node->text = golden_string(at);
    } else if (**at == '{' || **at == '[') {
        char close = **at == '{' ? '}' : ']';
        for (*at = golden_skip(*at + 1); **at != close; *at = golden_skip(*at)) {
            const char *member = NULL;
            assert_int_not_equal(**at, 0);
            if (close == '}') {
                member = golden_string(at);
                *at = golden_skip(*at);
            }
            *last = golden_value(at, member);
            last = &(*last)->next;
        }
        ++*at;
    } else {
        if (**at != 'n') node->type = 0;
        node->text = *at;
        *at += strspn(*at, "0123456789nul");
    }
    return node;
}

static inline void golden_free(golden *node) {
    while (node) {
        golden *next = node->next;
        golden_free(node->first);
        free(node);
        node = next;
    }
}

/* Reads a file of the project; `file` is the test's own __FILE__. NULL where there is none. */
static inline golden *golden_open(const char *file, const char *name) {
    char *text = nt_read_project_file(file, name, NULL), *at = text;
    if (text == NULL) return NULL;
    golden *root = golden_value(&at, NULL);
    root->text = text;
    return root;
}

static inline void golden_close(golden *root) {
    char *text = (char *)(uintptr_t)root->text;
    golden_free(root);
    free(text);
}

static inline golden *golden_get(const golden *in, const char *name) {
    for (golden *node = in->first; node; node = node->next) {
        if (node->name && strcmp(node->name, name) == 0) return node;
    }
    fail_msg("no member %s", name);
    return NULL;
}

static inline const char *golden_text(const golden *in, const char *name) {
    return golden_get(in, name)->text;
}

static inline uint64_t golden_number(const golden *in, const char *name) {
    return strtoull(golden_text(in, name), NULL, 10);
}

static inline unsigned golden_digit(char c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

/* Bytes from hexadecimal, in exactly the memory that they need; the caller frees them. */
static inline uint8_t *golden_bytes(const char *text, size_t *len) {
    *len = strlen(text) / 2;
    uint8_t *bytes = malloc(*len ? *len : 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < *len; i++) {
        bytes[i] = (uint8_t)(golden_digit(text[2 * i]) << 4 | golden_digit(text[2 * i + 1]));
    }
    return bytes;
}

/* Whether bytes are what hexadecimal text says. */
static inline int golden_same(const char *text, const void *bytes, size_t len) {
    size_t want_len;
    uint8_t *want = golden_bytes(text, &want_len);
    int same = want_len == len && (len == 0 || memcmp(want, bytes, len) == 0);
    free(want);
    return same;
}

#endif
