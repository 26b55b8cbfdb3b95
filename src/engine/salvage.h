/*
 * salvage: keeping what an opening cuts off although frames that verify are in it.
 *
 * A file has 32 bytes in front of what it keeps: its magic, the generation of the log, the offset and the
 * number of the bytes, 8 each.
 */
#ifndef NT_ENGINE_SALVAGE_H
#define NT_ENGINE_SALVAGE_H

#include "store/log.h"

#define NT_SALVAGE_MAGIC "NTEESALV"
#define NT_SALVAGE_MOST (16u << 20) /* bytes of a store's salvage files together */

/* Copies `len` bytes at `offset` of the log of a generation, or as many as the limit leaves, into a new file
 * `salvage-<n>` of the directory. An opening does not fail over it: where that is not possible, nothing is
 * saved. */
void nt_salvage(int dir, const nt_log *log, uint64_t generation, uint64_t offset, uint64_t len);
/* The number n of a name `salvage-<n>`, or 0. */
uint32_t nt_salvage_number(const char *name);

#endif
