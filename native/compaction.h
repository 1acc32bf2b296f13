/* What the files of compaction share: a round over one log, a batch as it lies in memory, and the way from record to
 * record. */

#ifndef OTTLA_COMPACTION_H
#define OTTLA_COMPACTION_H

#include "key_map.h"
#include "speed.h"

#define HEADER_BYTES 61
#define LOG_OVERHEAD 12 /* base offset and length, which the length does not count */
#define CHECKED_FROM 21 /* the checksum covers everything from here on */
#define SMALLEST_RECORD_BYTES 7

#define CODEC_MASK 0x07
#define TIMESTAMP_TYPE_BIT 0x08
#define TRANSACTIONAL_BIT 0x10
#define CONTROL_BIT 0x20
#define DELETE_HORIZON_BIT 0x40
#define NO_TIMESTAMP (-1)

/* Why a loop over batches ended: the names are those of ottla.log_store.compaction.compiled. */
enum stop { AT_END, IS_FULL, IS_SPECIAL, IS_COMPRESSED, IS_DAMAGED, NO_MEMORY };

/* What became of a batch. */
enum fate { DROPPED, AS_IT_IS, REDUCED, EMPTIED };

struct producer_tail {
    int64_t producer_id, last_offset;
};

struct compaction {
    struct key_map map;
    int64_t first_dirty_offset, latest_offset, indexed_bytes;
    int64_t now_ms, new_horizon_ms, end_offset;
    struct producer_tail *producers; /* in the order of their ids */
    size_t producer_count;
    uint8_t *out; /* what is to be written of the batches of a call */
    size_t out_size, out_room;
    uint8_t *marks; /* of each record of a batch */
    size_t marks_room;
};

struct batch {
    const uint8_t *at;
    size_t size;
    int64_t base_offset, last_offset;
    uint16_t attributes;
    int32_t count;
};

/* The batch at `at`; 0 if it is cut off, -1 if it is none. */
static inline int read_batch(const uint8_t *at, const uint8_t *end, struct batch *batch) {
    if (end - at < HEADER_BYTES) return 0;
    int32_t length = (int32_t)read_u32(at + 8);
    if (at[16] != 2 || length < HEADER_BYTES - LOG_OVERHEAD) return -1;
    if (length > end - at - LOG_OVERHEAD) return 0;
    batch->at = at;
    batch->size = (size_t)length + LOG_OVERHEAD;
    batch->base_offset = (int64_t)read_u64(at);
    batch->attributes = read_u16(at + 21);
    batch->last_offset = (int64_t)((uint64_t)batch->base_offset + (uint64_t)(int64_t)(int32_t)read_u32(at + 23));
    batch->count = (int32_t)read_u32(at + 57);
    return 1;
}

static inline int64_t base_timestamp_of(const struct batch *batch) { return (int64_t)read_u64(batch->at + 27); }
static inline int64_t max_timestamp_of(const struct batch *batch) { return (int64_t)read_u64(batch->at + 35); }
static inline int64_t producer_id_of(const struct batch *batch) { return (int64_t)read_u64(batch->at + 43); }

static inline int checksum_is_right(const struct batch *batch) {
    return ottla_crc32c(batch->at + CHECKED_FROM, batch->size - CHECKED_FROM) == read_u32(batch->at + 17);
}

/* A zigzag varint in a record, of any bits that follow the 32 or 64 of it rid, as Python and Java read it: what is in a
 * log is taken as they take it. NULL if it does not end in time or is too long. */
static inline const uint8_t *read_field(const uint8_t *at, const uint8_t *end, int most_bytes, int64_t *value) {
    uint64_t raw = 0;
    for (int index = 0; index < most_bytes && at < end; index++) {
        uint8_t byte = *at++;
        raw |= (uint64_t)(byte & 0x7f) << (7 * index);
        if (byte < 0x80) {
            if (most_bytes == 5) raw = (uint32_t)raw;
            *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return at;
        }
    }
    return NULL;
}

/* A record: where it begins, where its attributes lie, its key (NULL if it has none), and where it ends. */
struct record {
    const uint8_t *begin, *body, *key, *end;
    size_t key_size;
    int is_tombstone;
};

/* The record at `at`; 0 if it does not make sense. Headers and the value are not looked at, but for whether there is
 * a value. */
static inline int read_record(const uint8_t *at, const uint8_t *end, struct record *record) {
    int64_t length, key_size;
    record->begin = at;
    at = read_field(at, end, 5, &length);
    if (at == NULL || length < 0 || length > end - at) return 0;
    end = at + length;
    record->body = at;
    record->end = end;
    at++;
    while (at < end && *at >= 0x80) at++; /* the timestamp */
    at++;
    while (at < end && *at >= 0x80) at++; /* the offset */
    at++;
    if (at >= end) return 0;
    at = read_field(at, end, 5, &key_size);
    if (at == NULL) return 0;
    record->key = key_size < 0 ? NULL : at;
    record->key_size = key_size < 0 ? 0 : (size_t)key_size;
    if (record->key_size >= (size_t)(end - at)) return 0; /* the length of the value must follow */
    record->is_tombstone = at[record->key_size] & 1;
    return 1;
}

/* compaction_filter.c: what is to be written for a batch goes to `out`. `payload` are its records, NULL if those are
 * compressed and nobody has opened them yet; IS_COMPRESSED if they are needed. */
enum stop filter_batch(struct compaction *round, const struct batch *batch, const uint8_t *payload,
                       size_t payload_size, int is_checked, enum fate *fate);

#endif
