#include "store/log_map.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/os.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define FIRST_READER ((uint64_t)1 << 30)

/* Blocks taken ahead: as many as the file has, between these; a fast writer gets up to AHEAD_MOST. */
#define AHEAD_LEAST (256 * KIB)
#define AHEAD_USUAL (4 * MIB)
#define AHEAD_MOST (16 * MIB)
/* Allocations begin on this grid, so that a hole in the tail's block gets its block as well. */
#define PAGE_LEAST 4096u
#define BLOCK_GRID (64 * KIB)
/* Page faults are taken ahead only for a writer this fast: a page that is populated and not written is a
 * page of zeros more in the next sync. */
#define POPULATE_RATE (256 * KIB)
/* Bytes in SPEED_MS: a writer is fast, and gets large pages, from the one on, and slow below the other. With
 * a sync every SPEED_MS at FAST_FROM there are as many zeros ahead as bytes, and the rest of a large page. */
#define FAST_FROM (2 * MIB)
#define SLOW_BELOW (512 * KIB)
#define LARGE_PAGE (2 * MIB)

enum {
    WINDOW_LEN = 2 * NT_LOG_WINDOW,
    SPEED_MS = 100,
    LOOK_EVERY_MS = 100, /* residence: so often, so many regions */
    LOOK_REGIONS = 256,
    PREPARE_STEP = 512 << 10
};

static uint64_t clamp(uint64_t n, uint64_t least, uint64_t most) {
    return n < least ? least : n > most ? most : n;
}

static uint64_t round_down(uint64_t n, uint64_t grid) { return n - n % grid; }

/* ---- Blocks -------------------------------------------------------------------------------------- */

/* Where an allocation for a file that is to hold `end` bytes should end. A large page has to lie in the
 * file whole. */
static uint64_t allocation_goal(uint64_t end, uint64_t rate, int fast) {
    uint64_t ahead = clamp(end, AHEAD_LEAST, AHEAD_USUAL);
    if (fast) return round_down(end + AHEAD_MOST, LARGE_PAGE);
    if (rate > ahead / 4) ahead = clamp(rate * 4, ahead, AHEAD_MOST);
    return round_down(end + ahead, AHEAD_LEAST);
}

static void raise_to(_Atomic uint64_t *figure, uint64_t to) {
    uint64_t seen = atomic_load_explicit(figure, memory_order_relaxed);
    while (seen < to && !atomic_compare_exchange_weak_explicit(figure, &seen, to, memory_order_acq_rel,
                                                               memory_order_relaxed)) {
    }
}

/* Allocates up to `goal`; where that does not fit the disk up to less, but not less than `least`. The
 * writer and the background may be in here together: allocating twice does no harm. */
static int allocate(nt_log *log, uint64_t least, uint64_t goal) {
    for (;;) {
        uint64_t from = round_down(atomic_load(&log->allocated), BLOCK_GRID);
        if (from >= goal) return 0;
        int error = NT_OS->allocate(log->fd, from, goal - from);
        if (error == 0) raise_to(&log->allocated, goal);
        if (error == EOPNOTSUPP) atomic_store(&log->no_allocate, 1);
        int full = error == ENOSPC || error == EDQUOT || error == EFBIG;
        if (!full || goal == least) return error;
        uint64_t less = round_down(least + (goal - least) / 2, BLOCK_GRID);
        goal = less > least && less < goal ? less : least;
    }
}

ntee_status nt_log_map_blocks(nt_log *log, uint64_t end, ntee_error *err) {
    atomic_store_explicit(&log->started, 1, memory_order_relaxed);
    if (end <= atomic_load_explicit(&log->allocated, memory_order_acquire)) return NTEE_OK;
    if (atomic_load_explicit(&log->no_allocate, memory_order_relaxed)) {
        log->map_write = 0; /* a sparse file must not be written through a mapping */
        return NTEE_OK;
    }
    int fast = atomic_load_explicit(&log->fast, memory_order_relaxed);
    int error = allocate(log, end, allocation_goal(end, 0, fast));
    if (error == EOPNOTSUPP) {
        log->map_write = 0;
        return NTEE_OK;
    }
    if (error != 0) return nt_fail_os(err, error, "allocate space for", log->name);
    return NTEE_OK;
}

void nt_log_map_spare(nt_log *log, uint64_t end) {
    uint64_t allocated = atomic_load(&log->allocated);
    uint64_t step = end > allocated ? end - allocated : 0;
    for (; step >= PAGE_LEAST; step /= 2) { /* until what is left is less than a page */
        uint64_t to = atomic_load(&log->allocated) + step;
        if (to <= end) (void)allocate(log, to, to);
    }
}

/* ---- Reading ------------------------------------------------------------------------------------- */

static _Atomic unsigned char *make_marks(const nt_log_reader *before, size_t len) {
    size_t count = len / NT_LOG_REGION;
    _Atomic unsigned char *marks = nt_alloc(count);
    if (marks == NULL) return NULL;
    size_t known = before != NULL && before->marks != NULL ? before->len / NT_LOG_REGION : 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char mark = 0;
        if (i < known) mark = atomic_load_explicit(&before->marks[i], memory_order_relaxed);
        atomic_init(&marks[i], mark);
    }
    return marks;
}

/* Address space is cheap: the mapping reaches far beyond the end of the file, and only what lies below
 * the tail is touched. Where so much is not to be had, half of it may be. */
void nt_log_map_reader(nt_log *log, uint64_t end) {
    nt_log_reader *before = atomic_load_explicit(&log->reader, memory_order_relaxed);
    if (!log->map_read || (before != NULL && end <= before->len)) return;
    if (log->reader_count == NT_LOG_READERS || end > SIZE_MAX / 2) {
        log->map_read = 0;
        return;
    }
    uint64_t len = FIRST_READER;
    while (len < end) len *= 2;
    void *at = NULL;
    int error = NT_OS->map(log->fd, 0, (size_t)len, NT_OS_FOR_READING, &at);
    while (error != 0 && len / 2 >= end && len / 2 >= AHEAD_LEAST) {
        len /= 2;
        error = NT_OS->map(log->fd, 0, (size_t)len, NT_OS_FOR_READING, &at);
    }
    if (error != 0) {
        log->map_read = 0; /* what is mapped stays in use, what comes after is read with pread */
        return;
    }
    nt_log_reader *reader = &log->readers[log->reader_count++];
    reader->at = at;
    reader->len = (size_t)len;
    reader->marks = make_marks(before, (size_t)len);
    atomic_store_explicit(&log->reader, reader, memory_order_release);
}

void nt_log_map_mark(nt_log *log, uint64_t offset, size_t len) {
    nt_log_reader *reader = atomic_load_explicit(&log->reader, memory_order_acquire);
    if (reader == NULL || reader->marks == NULL || len == 0) return;
    if (offset > reader->len || len > reader->len - offset) return;
    uint64_t last = (offset + len - 1) / NT_LOG_REGION;
    for (uint64_t i = offset / NT_LOG_REGION; i <= last; i++) {
        if (atomic_load_explicit(&reader->marks[i], memory_order_relaxed) == 0) {
            atomic_store_explicit(&reader->marks[i], 1, memory_order_relaxed);
        }
    }
}

const uint8_t *nt_log_view(const nt_log *log, uint64_t offset, size_t len) {
    const nt_log_reader *reader = atomic_load_explicit(&log->reader, memory_order_acquire);
    if (reader == NULL || offset > reader->len || len > reader->len - offset) return NULL;
    return reader->at + offset;
}

int nt_log_at_hand(const nt_log *log, uint64_t offset, size_t len) {
    const nt_log_reader *reader = atomic_load_explicit(&log->reader, memory_order_acquire);
    if (reader == NULL || reader->marks == NULL) return 0;
    if (offset > reader->len || len > reader->len - offset) return 0;
    uint64_t end = offset + len;
    for (uint64_t i = offset / NT_LOG_REGION; i * NT_LOG_REGION < end; i++) {
        if (atomic_load_explicit(&reader->marks[i], memory_order_relaxed) == 0) return 0;
    }
    return 1;
}

void nt_log_touched(nt_log *log, uint64_t offset, size_t len) { nt_log_map_mark(log, offset, len); }

/* ---- Windows ------------------------------------------------------------------------------------- */

static int try_prepare(nt_log *log) {
    int free = 0;
    return atomic_compare_exchange_strong_explicit(&log->preparing, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void end_prepare(nt_log *log) {
    atomic_store_explicit(&log->preparing, 0, memory_order_release);
}

static void retire(nt_log_window *window) {
    if (window == NULL) return;
    atomic_store_explicit(&window->state, NT_LOG_WINDOW_RETIRED, memory_order_release);
}

/* By the holder of `preparing` (M1). */
static void unmap_retired(nt_log *log) {
    for (int i = 0; i < NT_LOG_WINDOWS; i++) {
        nt_log_window *window = &log->windows[i];
        if (atomic_load_explicit(&window->state, memory_order_acquire) != NT_LOG_WINDOW_RETIRED) continue;
        (void)NT_OS->unmap(window->at, WINDOW_LEN);
        atomic_store_explicit(&window->state, NT_LOG_WINDOW_FREE, memory_order_release);
    }
}

static nt_log_window *take_free(nt_log *log) {
    for (int i = 0; i < NT_LOG_WINDOWS; i++) {
        int free = NT_LOG_WINDOW_FREE;
        if (atomic_compare_exchange_strong_explicit(&log->windows[i].state, &free, NT_LOG_WINDOW_USED,
                                                    memory_order_acquire, memory_order_relaxed)) {
            return &log->windows[i];
        }
    }
    return NULL;
}

static nt_log_window *map_window(nt_log *log, uint64_t from) {
    nt_log_window *window = take_free(log);
    if (window == NULL) return NULL;
    void *at = NULL;
    int fast = atomic_load_explicit(&log->fast, memory_order_relaxed);
    nt_os_use use = fast ? NT_OS_FOR_FILLING : NT_OS_FOR_WRITING;
    if (NT_OS->map(log->fd, from, WINDOW_LEN, use, &at) != 0) {
        atomic_store_explicit(&window->state, NT_LOG_WINDOW_FREE, memory_order_release);
        return NULL;
    }
    if (fast) raise_to(&log->large_end, from + WINDOW_LEN);
    window->from = from;
    window->at = at;
    return window;
}

static int holds(const nt_log_window *window, uint64_t begin, uint64_t end) {
    return window != NULL && begin >= window->from && end - window->from <= WINDOW_LEN;
}

/* The writer's way to a window that holds [begin, end): the one that waits for it, or a new one. The
 * background unmaps what was retired; without it the writer does so when all windows are in use. */
static nt_log_window *get_window(nt_log *log, uint64_t begin, uint64_t end) {
    uint64_t from = round_down(begin, NT_LOG_WINDOW);
    nt_log_window *window = atomic_exchange_explicit(&log->next, NULL, memory_order_acq_rel);
    if (holds(window, begin, end)) return window;
    retire(window);
    window = map_window(log, from);
    if (window == NULL && try_prepare(log)) {
        unmap_retired(log);
        end_prepare(log);
        window = map_window(log, from);
    }
    return window;
}

/* Whether a slow writer has large pages before it. */
static int stays_plain(nt_log *log, uint64_t tail) {
    if (atomic_load_explicit(&log->plain, memory_order_relaxed) == 0) return 0;
    if (tail < atomic_load_explicit(&log->large_end, memory_order_relaxed)) return 1;
    atomic_store_explicit(&log->plain, 0, memory_order_relaxed);
    return 0;
}

int nt_log_map_window(nt_log *log, uint64_t end) {
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_relaxed);
    nt_log_window *window = atomic_load_explicit(&log->current, memory_order_relaxed);
    if (tail < log->no_window || stays_plain(log, tail)) return 0;
    if (!holds(window, tail, end)) {
        nt_log_window *old = window;
        window = get_window(log, tail, end);
        if (window == NULL) {
            log->no_window = round_down(tail, NT_LOG_WINDOW) + NT_LOG_WINDOW;
            return 0;
        }
        atomic_store_explicit(&log->current, window, memory_order_release);
        retire(old);
    }
    uint64_t limit = window->from + WINDOW_LEN;
    uint64_t allocated = atomic_load_explicit(&log->allocated, memory_order_acquire);
    nt_log_reader *reader = atomic_load_explicit(&log->reader, memory_order_relaxed);
    if (allocated < limit) limit = allocated;
    if (log->map_read && reader != NULL && reader->len < limit) limit = reader->len;
    log->window_at = window->at;
    log->window_from = window->from;
    log->limit = limit;
    return 1;
}

void nt_log_map_close(nt_log *log) {
    retire(atomic_exchange(&log->current, NULL));
    retire(atomic_exchange(&log->next, NULL));
    unmap_retired(log);
    atomic_store(&log->reader, NULL);
    for (int i = 0; i < log->reader_count; i++) {
        (void)NT_OS->unmap((void *)(uintptr_t)log->readers[i].at, log->readers[i].len);
        nt_free(log->readers[i].marks);
    }
    log->reader_count = 0;
}

/* ---- The background ------------------------------------------------------------------------------ */

/* Finds out whether the writer is fast. That is believed at once; that it is slow, after SPEED_MS. */
static void measure(nt_log *log, uint64_t tail) {
    int64_t now = NT_OS->now_boot(), elapsed = now - log->ahead_since;
    uint64_t grown = tail - log->ahead_from;
    int fast = atomic_load_explicit(&log->fast, memory_order_relaxed);
    if (elapsed >= SPEED_MS) {
        log->ahead_speed = grown * SPEED_MS / (uint64_t)elapsed;
        log->ahead_from = tail;
        log->ahead_since = now;
        if (log->ahead_speed < SLOW_BELOW) fast = 0;
    } else if (grown > log->ahead_speed) {
        log->ahead_speed = grown;
    }
    if (log->ahead_speed >= FAST_FROM) fast = 1;
    int plain = !fast && tail < atomic_load_explicit(&log->large_end, memory_order_relaxed);
    atomic_store_explicit(&log->fast, fast, memory_order_relaxed);
    atomic_store_explicit(&log->plain, plain, memory_order_relaxed);
}

static void allocate_ahead(nt_log *log, uint64_t tail) {
    /* A tail that is half way through the smallest allocation wants the next one. */
    int fast = atomic_load_explicit(&log->fast, memory_order_relaxed);
    uint64_t goal = allocation_goal(tail + AHEAD_LEAST / 2, log->ahead_rate, fast);
    uint64_t allocated = atomic_load(&log->allocated);
    if (atomic_load(&log->no_allocate) || goal <= allocated) return;
    if (allocated > tail && allocated - tail > (goal - tail) / 2) return;
    uint64_t least = allocated + BLOCK_GRID < goal ? allocated + BLOCK_GRID : goal;
    (void)allocate(log, least, goal); /* the writer meets what is wrong, and can report it */
}

static void map_ahead(nt_log *log) {
    nt_log_window *current = atomic_load_explicit(&log->current, memory_order_acquire);
    if (current == NULL) return;
    uint64_t from = current->from + NT_LOG_WINDOW;
    nt_log_window *next = atomic_load_explicit(&log->next, memory_order_acquire);
    if (next != NULL && next->from == from) return;
    if (next != NULL && atomic_compare_exchange_strong(&log->next, &next, NULL)) retire(next);
    nt_log_window *window = map_window(log, from);
    nt_log_window *none = NULL;
    if (window == NULL) return;
    if (!atomic_compare_exchange_strong_explicit(&log->next, &none, window, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        retire(window);
    }
}

/* Takes the faults of [from, to) as far as it lies in the window and has blocks. */
static void populate_window(nt_log *log, const nt_log_window *window, uint64_t from, uint64_t to) {
    uint64_t allocated = round_down(atomic_load(&log->allocated), BLOCK_GRID);
    uint64_t end = window->from + WINDOW_LEN;
    if (allocated < end) end = allocated;
    if (to < end) end = to;
    if (from < window->from) from = window->from;
    from = round_down(from + BLOCK_GRID - 1, BLOCK_GRID);
    if (from < end) NT_OS->populate(window->at + (from - window->from), (size_t)(end - from));
}

/* Both windows stay mapped meanwhile, even if the writer takes up and retires them (M1). */
static void populate_ahead(nt_log *log, uint64_t tail) {
    if (log->ahead_rate < POPULATE_RATE) return;
    uint64_t to = tail + clamp(2 * log->ahead_rate, POPULATE_RATE, WINDOW_LEN);
    /* The next sync may keep us for as long as the speed is measured over, and need not write more zeros than
     * are filled in that time. */
    if (atomic_load_explicit(&log->fast, memory_order_relaxed))
        to = tail + clamp(log->ahead_speed, POPULATE_RATE, 2 * WINDOW_LEN);
    nt_log_window *current = atomic_load_explicit(&log->current, memory_order_acquire);
    nt_log_window *next = atomic_load_explicit(&log->next, memory_order_acquire);
    if (current != NULL) populate_window(log, current, tail, to);
    if (next != NULL) populate_window(log, next, tail, to);
}

static void look_at_residence(nt_log *log, uint64_t tail) {
    nt_log_reader *reader = atomic_load_explicit(&log->reader, memory_order_acquire);
    unsigned char found[LOOK_REGIONS];
    int64_t now = NT_OS->now_boot();
    if (reader == NULL || reader->marks == NULL || now - log->ahead_looked < LOOK_EVERY_MS) return;
    log->ahead_looked = now;
    /* The last region, partly beyond the end of the file, is the writer's and resident anyway. */
    uint64_t regions = (tail < reader->len ? tail : reader->len) / NT_LOG_REGION;
    if (log->ahead_region >= regions) log->ahead_region = 0;
    uint64_t first = log->ahead_region;
    uint64_t count = clamp(regions - first, 0, LOOK_REGIONS);
    if (count == 0) return;
    const uint8_t *at = reader->at + first * NT_LOG_REGION;
    log->ahead_region = first + count;
    if (NT_OS->resident(at, (size_t)count * NT_LOG_REGION, found) != 0) return;
    for (uint64_t i = 0; i < count; i++) {
        atomic_store_explicit(&reader->marks[first + i], found[i], memory_order_relaxed);
    }
}

void nt_log_prepare(nt_log *log) {
    if (!try_prepare(log)) return;
    uint64_t tail = atomic_load_explicit(&log->tail, memory_order_acquire);
    if (atomic_load_explicit(&log->started, memory_order_relaxed)) {
        uint64_t grown = tail - log->ahead_tail;
        log->ahead_rate = grown > log->ahead_rate / 2 ? grown : log->ahead_rate / 2;
        log->ahead_tail = tail;
        measure(log, tail);
        allocate_ahead(log, tail);
        unmap_retired(log);
        map_ahead(log);
        populate_ahead(log, tail);
        uint64_t allocated = atomic_load(&log->allocated);
        uint64_t left = allocated > tail ? allocated - tail : 0;
        atomic_store_explicit(&log->prepare_at, tail + clamp(left / 2, NT_LOG_REGION, PREPARE_STEP),
                              memory_order_relaxed);
    }
    look_at_residence(log, tail);
    end_prepare(log);
}
