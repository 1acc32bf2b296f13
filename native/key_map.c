/* The map of keys (see key_map.h): open tables of digests that grow with the keys, up to the memory allowed.
 *
 * Keys are spread over 64 parts, so that while one grows only a 64th of the map is there twice. A part that grows takes
 * fresh memory from the system and gives the old one back. The digest is SipHash-1-3 of 128 bits under a random key, so
 * that nobody can make up keys that meet (Kafka: MD5). */

#define _DEFAULT_SOURCE /* for MAP_ANONYMOUS */

#include "key_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPED_BYTES 65536 /* from here on memory comes from the system, not from the heap */
#define SMALL_MAP_BYTES (1u << 20)
#define MOST_RECORDS 0xfffffff0u

void key_map_init(struct key_map *map, uint64_t max_bytes, const uint8_t seed[16]) {
    memset(map, 0, sizeof *map);
    memcpy(map->seed, seed, 16);
    map->max_bytes = max_bytes;
    map->part_count = max_bytes < SMALL_MAP_BYTES ? 1 : MOST_PARTS;
}

static struct key_entry *new_entries(uint32_t size) {
    size_t bytes = (size_t)size * sizeof(struct key_entry);
    if (bytes < MAPPED_BYTES) return calloc(size, sizeof(struct key_entry));
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

static void free_entries(struct key_entry *entries, uint32_t size) {
    size_t bytes = (size_t)size * sizeof(struct key_entry);
    if (bytes < MAPPED_BYTES)
        free(entries);
    else
        munmap(entries, bytes);
}

void key_map_free(struct key_map *map) {
    for (uint32_t part = 0; part < map->part_count; part++)
        if (map->parts[part].entries != NULL) free_entries(map->parts[part].entries, map->parts[part].size);
    free(map->superseded);
    free(map->batches);
}

uint64_t key_map_charged(const struct key_map *map) {
    return map->table_bytes + map->records / 8 + map->batch_count * sizeof(struct mapped_batch);
}

int key_map_has_room(const struct key_map *map, uint32_t count) {
    if (map->records == 0) return 1;
    return !map->is_full && key_map_charged(map) < map->max_bytes && map->records + count <= MOST_RECORDS;
}

/* ---- batches */

int key_map_add_batch(struct key_map *map, int64_t base_offset, uint32_t count, uint32_t *first) {
    size_t needed = (size_t)((map->records + count) / 8 + 1);
    if (needed > map->superseded_room) {
        size_t room = needed + needed / 2 + 4096;
        uint8_t *more = realloc(map->superseded, room);
        if (more == NULL) return -1;
        memset(more + map->superseded_room, 0, room - map->superseded_room);
        map->superseded = more;
        map->superseded_room = room;
    }
    if (map->batch_count == map->batch_room) {
        size_t room = map->batch_room + map->batch_room / 2 + 256;
        struct mapped_batch *more = realloc(map->batches, room * sizeof *more);
        if (more == NULL) return -1;
        map->batches = more;
        map->batch_room = room;
    }
    *first = (uint32_t)map->records;
    map->batches[map->batch_count++] = (struct mapped_batch){base_offset, *first, 0};
    map->records += count;
    return 0;
}

const struct mapped_batch *key_map_find_batch(struct key_map *map, int64_t base_offset) {
    const struct mapped_batch *batches = map->batches;
    size_t at = map->cursor;
    if (at >= map->batch_count || batches[at].base_offset != base_offset) {
        size_t low = 0, high = map->batch_count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (batches[middle].base_offset < base_offset)
                low = middle + 1;
            else
                high = middle;
        }
        at = low;
        if (at >= map->batch_count || batches[at].base_offset != base_offset) return NULL;
    }
    map->cursor = at + 1;
    return batches + at;
}

uint32_t key_map_batch_records(const struct key_map *map, const struct mapped_batch *batch) {
    const struct mapped_batch *next = batch + 1;
    return (next < map->batches + map->batch_count ? next->first : (uint32_t)map->records) - batch->first;
}

/* ---- digests */

#define ROTATED(word, bits) ((word) << (bits) | (word) >> (64 - (bits)))

static inline void mix(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = ROTATED(v[1], 13) ^ v[0];
    v[0] = ROTATED(v[0], 32);
    v[2] += v[3];
    v[3] = ROTATED(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTATED(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTATED(v[1], 17) ^ v[2];
    v[2] = ROTATED(v[2], 32);
}

struct key_digest key_map_digest(const struct key_map *map, const uint8_t *key, size_t size) {
    uint64_t v[4] = {map->seed[0] ^ 0x736f6d6570736575u, map->seed[1] ^ 0x646f72616e646f6du ^ 0xee,
                     map->seed[0] ^ 0x6c7967656e657261u, map->seed[1] ^ 0x7465646279746573u};
    uint64_t word, last = (uint64_t)size << 56;
    size_t left = size;
    for (; left >= 8; key += 8, left -= 8) {
        memcpy(&word, key, 8);
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    for (size_t index = 0; index < left; index++) last |= (uint64_t)key[index] << (8 * index);
    v[3] ^= last;
    mix(v);
    v[0] ^= last;
    v[2] ^= 0xee;
    mix(v);
    mix(v);
    mix(v);
    struct key_digest found = {.high = v[0] ^ v[1] ^ v[2] ^ v[3]};
    v[1] ^= 0xdd;
    mix(v);
    mix(v);
    mix(v);
    word = v[0] ^ v[1] ^ v[2] ^ v[3];
    found.low = (uint32_t)word;
    found.part = map->part_count == 1 ? 0 : (uint32_t)(word >> 58);
    return found;
}

/* ---- tables */

static inline uint32_t slot_of(const struct key_part *part, uint64_t high) {
    return (uint32_t)((high >> 32) * part->size >> 32);
}

/* The entry of a digest, or the free one where it belongs. A part is never full. */
static inline struct key_entry *find_entry(const struct key_part *part, uint64_t high, uint32_t low) {
    uint32_t at = slot_of(part, high);
    struct key_entry *entry = part->entries + at;
    while (entry->number && (entry->high != high || entry->low != low)) {
        if (++at == part->size) at = 0;
        entry = part->entries + at;
    }
    return entry;
}

static uint32_t next_size(const struct key_map *map, const struct key_part *part) {
    if (part->size < 8) return 8;
    return map->table_bytes < map->max_bytes / 4 ? part->size * 2 : part->size + part->size / 4;
}

static int grow(struct key_map *map, struct key_part *part, uint32_t size) {
    struct key_part larger = {new_entries(size), size, part->used};
    if (larger.entries == NULL) return -1;
    for (uint32_t at = 0; at < part->size; at++) {
        const struct key_entry *entry = part->entries + at;
        if (entry->number) *find_entry(&larger, entry->high, entry->low) = *entry;
    }
    if (part->entries != NULL) free_entries(part->entries, part->size);
    map->table_bytes += (uint64_t)(size - part->size) * sizeof(struct key_entry);
    *part = larger;
    return 0;
}

/* Room for one more key. If memory is at its end the batch that is being read is still taken, and the map is full. */
static int make_room(struct key_map *map, struct key_part *part) {
    uint64_t wanted = ((uint64_t)part->used + 1) * 10;
    if (wanted <= (uint64_t)part->size * 8) return 0;
    uint32_t size = next_size(map, part);
    if (key_map_charged(map) + (uint64_t)(size - part->size) * sizeof(struct key_entry) > map->max_bytes) {
        if (wanted <= (uint64_t)part->size * 9) return 0;
        map->is_full = 1;
    }
    return grow(map, part, size);
}

void key_map_prefetch(const struct key_map *map, const struct key_digest *digest) {
    const struct key_part *part = map->parts + digest->part;
    if (part->size) __builtin_prefetch(part->entries + slot_of(part, digest->high));
}

int key_map_put(struct key_map *map, const struct key_digest *digest, uint32_t number) {
    struct key_part *part = map->parts + digest->part;
    struct key_entry *entry = part->size ? find_entry(part, digest->high, digest->low) : NULL;
    if (entry != NULL && entry->number) {
        key_map_supersede(map, entry->number - 1);
        entry->number = number + 1;
        return 0;
    }
    uint32_t size = part->size;
    if (make_room(map, part) < 0) return -1;
    if (part->size != size) entry = find_entry(part, digest->high, digest->low);
    *entry = (struct key_entry){digest->high, digest->low, number + 1};
    part->used++;
    map->keys++;
    return 0;
}

int key_map_has(const struct key_map *map, const struct key_digest *digest) {
    const struct key_part *part = map->parts + digest->part;
    return part->size && find_entry(part, digest->high, digest->low)->number;
}
