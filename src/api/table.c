#include <pthread.h>

#include "api/handle.h"
#include "engine/open.h"

static struct {
    pthread_mutex_t mutex;
    pthread_once_t once;
    struct ntee *first;
} table = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, NULL};

static void before_fork(void) { pthread_mutex_lock(&table.mutex); }

static void in_parent(void) { pthread_mutex_unlock(&table.mutex); }

/* The child closes its copies of the lock descriptors: kept, they would hold the parent's locks alive;
 * unlocked, they would free them under the parent. Only async-signal-safe calls here. */
static void in_child(void) {
    for (struct ntee *db = table.first; db; db = db->next) {
        atomic_store(&db->forked, 1);
        nt_db_forget_lock(&db->db);
    }
    pthread_mutex_unlock(&table.mutex);
}

static void install(void) { pthread_atfork(before_fork, in_parent, in_child); }

void nt_table_add(struct ntee *db) {
    pthread_once(&table.once, install);
    pthread_mutex_lock(&table.mutex);
    db->previous = NULL;
    db->next = table.first;
    if (table.first) table.first->previous = db;
    table.first = db;
    pthread_mutex_unlock(&table.mutex);
}

void nt_table_remove(struct ntee *db) {
    pthread_mutex_lock(&table.mutex);
    if (db->previous)
        db->previous->next = db->next;
    else
        table.first = db->next;
    if (db->next) db->next->previous = db->previous;
    pthread_mutex_unlock(&table.mutex);
}
