#include "api/handle.h"

#include "engine/verify.h"
#include "store/arena.h"

ntee_status nt_handle_details(struct ntee *db, ntee_details_t *details, ntee_error *err) {
    const nt_recovery *found = &db->db.recovery;
    nt_arena_usage usage;
    nt_writer_figures figures;
    nt_arena_measure(nt_keydir_arena(db->db.keydir), &usage);
    nt_writer_measure(&db->writer, &figures);
    *details = (ntee_details_t){
        .size = sizeof *details,
        .main_bytes = nt_log_tail(db->db.log),
        .sequence = figures.sequence,
        .durable_sequence = figures.durable_sequence,
        .sync_lag_ms = (uint64_t)figures.lag_ms,
        .state = db->db.read_only ? NTEE_STATE_READ_ONLY : figures.failed ? NTEE_STATE_FAILED : 0,
        .open_scans = usage.holds,
        .was_clean = (uint64_t)found->clean,
        .replayed = found->records,
        .cut_bytes = found->cut,
        .salvaged_bytes = found->salvage,
        .damaged = found->damage.len / sizeof(nt_damage),
        .suspect_bytes = found->suspect ? found->suspect - db->db.source.base : 0,
        .log_generation = db->db.header.generation,
    };
    return nt_count_all(&db->db, &details->records, err);
}

size_t nt_handle_damage(const struct ntee *db, ntee_place *places, size_t cap) {
    const nt_damage *damage = (const nt_damage *)(const void *)db->db.recovery.damage.data;
    size_t count = db->db.recovery.damage.len / sizeof *damage;
    for (size_t i = 0; i < count && i < cap; i++)
        places[i] = (ntee_place){damage[i].offset, damage[i].length};
    return count;
}

ntee_status ntee_details(ntee *db, ntee_details_t *details) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!details || details->size != sizeof *details)
        return nt_fail(err, NTEE_INVALID, "the details are NULL or their size is wrong");
    return nt_handle_details(db, details, err);
}

ntee_status ntee_damage(ntee *db, ntee_place *places, size_t cap, size_t *count) {
    ntee_error *err = nt_last_error();
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!count || (!places && cap)) return nt_fail(err, NTEE_INVALID, "the places or their count are NULL");
    *count = nt_handle_damage(db, places, cap);
    return NTEE_OK;
}

ntee_status ntee_verify(ntee *db, ntee_error *found, size_t cap, size_t *count) {
    ntee_error *err = nt_last_error();
    nt_findings findings = {.found = found, .cap = cap};
    ntee_status status = nt_handle_check(db, err);
    if (status != NTEE_OK) return status;
    if (!count || (!found && cap)) return nt_fail(err, NTEE_INVALID, "the findings or their count are NULL");
    status = nt_verify(&db->db, &findings, err);
    *count = (size_t)findings.count;
    return status;
}
