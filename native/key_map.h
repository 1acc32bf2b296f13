/* The map of keys of a round of compaction: the last record of each key of the dirty part of a log, and a bit for each
 * record of it that says whether another one supersedes it. Used with the interpreter's lock released: nothing here
 * knows of Python. */

#ifndef OTTLA_KEY_MAP_H
#define OTTLA_KEY_MAP_H

#include <stddef.h>
#include <stdint.h>

#define MOST_PARTS 64

struct key_digest {
    uint64_t high;
    uint32_t low, part;
};

/* 16 bytes for a key: 96 bits of its digest (six more choose the part), and the number of its last record plus one. */
struct key_entry {
    uint64_t high;
    uint32_t low, number;
};

struct key_part {
    struct key_entry *entries;
    uint32_t size, used;
};

/* A batch of the dirty part and the number of its first record. */
struct mapped_batch {
    int64_t base_offset;
    uint32_t first;
    uint32_t has_tombstones;
};

struct key_map {
    uint64_t seed[2];
    uint64_t max_bytes, table_bytes;
    struct key_part parts[MOST_PARTS];
    uint32_t part_count;
    int is_full;
    uint64_t keys, records;
    uint8_t *superseded; /* a bit for each record */
    size_t superseded_room;
    struct mapped_batch *batches;
    size_t batch_count, batch_room, cursor;
};

void key_map_init(struct key_map *map, uint64_t max_bytes, const uint8_t seed[16]);
void key_map_free(struct key_map *map);

/* What is in use, of max_bytes. */
uint64_t key_map_charged(const struct key_map *map);

/* Whether the records of another batch may come; one always fits into an empty map. */
int key_map_has_room(const struct key_map *map, uint32_t count);

/* Note a batch of `count` records, for which numbers are given from *first on. -1 if there is no memory. */
int key_map_add_batch(struct key_map *map, int64_t base_offset, uint32_t count, uint32_t *first);

/* The batch that begins at an offset, or NULL. Quickest for one after the other. */
const struct mapped_batch *key_map_find_batch(struct key_map *map, int64_t base_offset);

/* How many records a batch has that the map returned. */
uint32_t key_map_batch_records(const struct key_map *map, const struct mapped_batch *batch);

struct key_digest key_map_digest(const struct key_map *map, const uint8_t *key, size_t size);
void key_map_prefetch(const struct key_map *map, const struct key_digest *digest);

/* The record with this number is the last of its key so far. -1 if there is no memory. */
int key_map_put(struct key_map *map, const struct key_digest *digest, uint32_t number);
int key_map_has(const struct key_map *map, const struct key_digest *digest);

static inline void key_map_supersede(struct key_map *map, uint32_t number) {
    map->superseded[number >> 3] |= (uint8_t)(1 << (number & 7));
}

static inline int key_map_is_superseded(const struct key_map *map, uint32_t number) {
    return map->superseded[number >> 3] >> (number & 7) & 1;
}

#endif
