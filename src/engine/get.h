/* get: one key, or several of one version. */
#ifndef NT_ENGINE_GET_H
#define NT_ENGINE_GET_H

#include "engine/db.h"
#include "format/wire.h"

/* Answers at hand are at most this large. */
#define NT_AT_HAND_BYTES (64u * 1024u)
#define NT_AT_HAND_KEYS 1000u
/* and so are their records at most. */
#define NT_AT_HAND_RECORD (NT_AT_HAND_BYTES + NTEE_KEY_MAX + 32u)

/* Checks a key's length: NTEE_INVALID, NTEE_TOO_LARGE. */
ntee_status nt_check_key(const void *key, size_t key_len, ntee_error *err);

/* As ntee_get. With `at_hand`, NTEE_WOULD_BLOCK instead of waiting. */
ntee_status nt_get(nt_db *db, const void *key, size_t key_len, void *buf, size_t cap, size_t *len,
                   ntee_kind *kind, int at_hand, ntee_error *err);

/* As ntee_has. */
ntee_status nt_has(nt_db *db, const void *key, size_t key_len, ntee_error *err);

/* Values of a framed list of keys, all from one version, as a page (without keys). NTEE_SHORT_BUFFER:
 * *needed says what will do. err->item names the key that failed. */
ntee_status nt_get_many(nt_db *db, const void *keys, size_t len, nt_page_plan *page, int at_hand,
                        uint64_t *needed, ntee_error *err);

#endif
