#include "store/tree_path.h"

/* A walk over a whole tree, in key order, that compares each key and separator with the one before. */
typedef struct check {
    const nt_arena *arena;
    int depth;
    uint32_t ids[NT_PATH_MAX + 1];
    int at[NT_PATH_MAX + 1];         /* the next child */
    uint64_t below[NT_PATH_MAX + 1]; /* keys seen so far */
    nt_entry last;                   /* the key or separator before; at NULL: none */
    int last_separates;
    int turn; /* which room the next entry's bytes go to */
    uint8_t room[2][NT_NODE_INLINE + 8];
} check;

static uint64_t birth_of(const nt_arena *arena, uint32_t id) {
    return ((const nt_node *)nt_arena_node(arena, id))->birth;
}

static const char *check_chain(const nt_arena *arena, const nt_entry *entry, uint64_t birth) {
    uint32_t want = nt_chain_nodes(entry->len), have = 0;
    for (uint32_t id = entry->more; id != 0; id = nt_chain_next(arena, id)) {
        if (!nt_arena_is_used(arena, id)) return "chain: a free node is reached";
        if (birth_of(arena, id) > birth) return "chain: younger than its node";
        if (++have > want) return "chain: too long";
    }
    return have == want ? NULL : "chain: too short";
}

/* Takes the next key or separator in order. */
static const char *take(check *c, const nt_tnode *node, int inner, int i, uint64_t birth) {
    nt_entry entry;
    nt_node_entry(node, inner, i, &entry, c->room[c->turn]);
    const char *wrong = check_chain(c->arena, &entry, birth);
    if (wrong) return wrong;
    if (c->last.at) {
        int order = nt_entry_compare(c->arena, &c->last, &entry);
        if (order > 0 || (order == 0 && (inner || !c->last_separates))) {
            return inner ? "separator: not greater than what is before" : "keys: out of order";
        }
    }
    c->last = entry;
    c->last_separates = inner;
    c->turn ^= 1;
    return NULL;
}

static const char *check_leaf(check *c, const nt_tnode *leaf, uint64_t birth) {
    int n = nt_node_count(leaf);
    if (n == 0) return "leaf: empty";
    for (int i = 0; i < n; i++) {
        const char *wrong = take(c, leaf, 0, i, birth);
        if (wrong) return wrong;
    }
    c->below[c->depth] = (uint64_t)n;
    return NULL;
}

/* What can be said of a node when it is reached first. */
static const char *check_node(const check *c, int level, int inner) {
    uint32_t id = c->ids[level];
    if (!nt_arena_is_used(c->arena, id)) return "tree: a free node is reached";
    uint64_t birth = birth_of(c->arena, id);
    if (birth == 0 || birth > nt_arena_turn(c->arena)) return "tree: a birth in the future";
    if (level > 0 && birth > birth_of(c->arena, c->ids[level - 1])) return "tree: child younger than parent";
    const nt_tnode *node = nt_node_at(c->arena, id);
    if (level == 0 && inner && nt_node_count(node) == 0) return "tree: root with one child";
    return nt_node_check(node, inner);
}

/* Goes on in an inner node: into its next child, or up. */
static const char *check_inner(check *c, int *level) {
    const nt_tnode *node = nt_node_at(c->arena, c->ids[*level]);
    int at = c->at[*level], n = nt_node_count(node);
    if (at == 0) {
        const char *wrong = check_node(c, *level, 1);
        if (wrong) return wrong;
        c->below[*level] = 0;
    } else {
        uint64_t below = c->below[*level + 1];
        if (nt_inner_count(node, at - 1) != below) return "tree: count of a child is wrong";
        c->below[*level] += below;
        if (at <= n) {
            const char *wrong = take(c, node, 1, at - 1, birth_of(c->arena, c->ids[*level]));
            if (wrong) return wrong;
        }
    }
    if (at > n) {
        (*level)--;
        return NULL;
    }
    c->at[*level] = at + 1;
    c->ids[*level + 1] = nt_inner_child(node, at);
    c->at[++*level] = 0;
    return NULL;
}

const char *nt_tree_check(const nt_arena *arena, nt_root root) {
    check c = {.arena = arena, .depth = nt_root_height(root)};
    const char *wrong = NULL;
    int level = 0;
    if (root == 0) return NULL;
    if (c.depth > NT_PATH_MAX) return "root: too high";
    c.ids[0] = nt_root_id(root);
    while (!wrong && level >= 0) {
        if (level < c.depth) {
            wrong = check_inner(&c, &level);
            continue;
        }
        wrong = check_node(&c, level, 0);
        if (!wrong) wrong = check_leaf(&c, nt_node_at(arena, c.ids[level]), birth_of(arena, c.ids[level]));
        level--;
    }
    return wrong;
}

static uint64_t chain_nodes(const nt_tnode *node, int inner) {
    nt_entry entry;
    uint8_t room[NT_NODE_INLINE + 8];
    uint64_t nodes = 0;
    for (int i = 0; i < nt_node_count(node); i++) {
        nt_node_entry(node, inner, i, &entry, room);
        nodes += nt_chain_nodes(entry.len);
    }
    return nodes;
}

uint64_t nt_tree_nodes(const nt_arena *arena, nt_root root) {
    nt_path path;
    uint64_t nodes = 0;
    if (root == 0) return 0;
    int level = 0, depth = nt_root_height(root);
    path.ids[0] = nt_root_id(root);
    path.at[0] = 0;
    while (level >= 0) {
        const nt_tnode *node = nt_node_at(arena, path.ids[level]);
        if (level < depth && path.at[level] <= nt_node_count(node)) {
            path.ids[level + 1] = nt_inner_child(node, path.at[level]++);
            path.at[++level] = 0;
            continue;
        }
        nodes += 1 + chain_nodes(node, level < depth);
        level--;
    }
    return nodes;
}
