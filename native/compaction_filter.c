/* What cleaning makes of a batch without transactions: the same bytes, fewer records, an empty header, or nothing. The
 * twin of ottla.log_store.compaction.batch_filter and rewriting, which say why. */

#include "compaction.h"

#include <stdlib.h>

#define GOES 1
#define TOMBSTONE 2
#define LONGEST_VARINT_BYTES 10

static int make_out_room(struct compaction *round, size_t more) {
    size_t needed = round->out_size + more;
    if (needed <= round->out_room) return 0;
    size_t room = needed + needed / 2;
    uint8_t *larger = realloc(round->out, room);
    if (larger == NULL) return -1;
    round->out = larger;
    round->out_room = room;
    return 0;
}

static enum stop keep_as_it_is(struct compaction *round, const struct batch *batch, enum fate *fate) {
    if (make_out_room(round, batch->size) < 0) return NO_MEMORY;
    memcpy(round->out + round->out_size, batch->at, batch->size);
    round->out_size += batch->size;
    *fate = AS_IT_IS;
    return AT_END;
}

/* Whether something would be lost with a batch without records: the end of the log, or a producer's last sequence. */
static int must_stay(const struct compaction *round, const struct batch *batch) {
    if (batch->last_offset == round->end_offset - 1) return 1;
    int64_t producer_id = producer_id_of(batch);
    size_t low = 0, high = round->producer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (round->producers[middle].producer_id < producer_id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= round->producer_count || round->producers[low].producer_id != producer_id) return 0;
    int64_t last_offset = round->producers[low].last_offset;
    return last_offset >= 0 && batch->last_offset == last_offset;
}

/* ---- batches made anew */

/* The header of what lies behind `start` in `out`, with the fields that a batch made anew does not keep. */
static void finish_batch(struct compaction *round, const struct batch *batch, size_t start, uint16_t attributes,
                         int64_t base_timestamp, int64_t max_timestamp, uint32_t count) {
    uint8_t *at = round->out + start;
    size_t size = round->out_size - start;
    memcpy(at, batch->at, HEADER_BYTES);
    write_u32(at + 8, (uint32_t)(size - LOG_OVERHEAD));
    at[21] = (uint8_t)(attributes >> 8);
    at[22] = (uint8_t)attributes;
    write_u64(at + 27, (uint64_t)base_timestamp);
    write_u64(at + 35, (uint64_t)max_timestamp);
    write_u32(at + 57, count);
    if (!(attributes & CODEC_MASK)) write_u32(at + 17, ottla_crc32c(at + CHECKED_FROM, size - CHECKED_FROM));
}

static enum stop empty(struct compaction *round, const struct batch *batch, int is_checked, enum fate *fate) {
    *fate = DROPPED;
    if (!must_stay(round, batch)) return AT_END;
    if (!is_checked && !checksum_is_right(batch)) return IS_DAMAGED;
    if (make_out_room(round, HEADER_BYTES) < 0) return NO_MEMORY;
    size_t start = round->out_size;
    round->out_size += HEADER_BYTES;
    finish_batch(round, batch, start, batch->attributes & (uint16_t) ~(CODEC_MASK | DELETE_HORIZON_BIT), NO_TIMESTAMP,
                 max_timestamp_of(batch), 0);
    *fate = EMPTIED;
    return AT_END;
}

static uint8_t *write_varlong(uint8_t *at, int64_t value) {
    uint64_t raw = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
    for (; raw >= 0x80; raw >>= 7) *at++ = (uint8_t)(raw | 0x80);
    *at++ = (uint8_t)raw;
    return at;
}

/* A record whose timestamp counts from another time; NULL if that cannot be told in 64 bits. */
static uint8_t *write_shifted(uint8_t *at, const struct record *record, int64_t shift) {
    int64_t delta;
    const uint8_t *rest = read_field(record->body + 1, record->end, LONGEST_VARINT_BYTES, &delta);
    if (rest == NULL || __builtin_add_overflow(delta, shift, &delta)) return NULL;
    uint8_t timestamp[LONGEST_VARINT_BYTES];
    size_t timestamp_size = (size_t)(write_varlong(timestamp, delta) - timestamp);
    size_t rest_size = (size_t)(record->end - rest);
    at = write_varlong(at, (int64_t)(1 + timestamp_size + rest_size));
    *at++ = *record->body;
    memcpy(at, timestamp, timestamp_size);
    memcpy(at + timestamp_size, rest, rest_size);
    return at + timestamp_size + rest_size;
}

/* Without the records that go, of which there is one at least unless the batch gets a delete horizon. */
static enum stop reduce(struct compaction *round, const struct batch *batch, const uint8_t *payload,
                        size_t payload_size, uint32_t going, int gets_horizon, enum fate *fate) {
    uint32_t count = (uint32_t)batch->count;
    size_t growth = gets_horizon ? (size_t)(count - going) * 2 * LONGEST_VARINT_BYTES : 0;
    if (make_out_room(round, HEADER_BYTES + payload_size + growth) < 0) return NO_MEMORY;
    int64_t base_timestamp = base_timestamp_of(batch), max_timestamp = max_timestamp_of(batch), shift = 0;
    if (gets_horizon && __builtin_sub_overflow(base_timestamp, round->new_horizon_ms, &shift)) return IS_DAMAGED;
    uint8_t *to = round->out + round->out_size + HEADER_BYTES;
    const uint8_t *at = payload, *end = payload + payload_size, *run = NULL; /* records that stay, not copied yet */
    int64_t greatest = INT64_MIN;
    for (uint32_t index = 0; index < count; index++) {
        struct record record;
        if (!read_record(at, end, &record)) return IS_DAMAGED;
        at = record.end;
        if (round->marks[index] & GOES) {
            if (run != NULL) {
                memcpy(to, run, (size_t)(record.begin - run));
                to += record.begin - run;
                run = NULL;
            }
            continue;
        }
        int64_t delta;
        if (read_field(record.body + 1, record.end, LONGEST_VARINT_BYTES, &delta) == NULL) return IS_DAMAGED;
        if (delta > greatest) greatest = delta;
        if (gets_horizon) {
            to = write_shifted(to, &record, shift);
            if (to == NULL) return IS_DAMAGED;
        } else if (run == NULL) {
            run = record.begin;
        }
    }
    if (at != end) return IS_DAMAGED;
    if (run != NULL) {
        memcpy(to, run, (size_t)(end - run));
        to += end - run;
    }
    if (going && !(batch->attributes & TIMESTAMP_TYPE_BIT)) {
        __int128 found = (__int128)base_timestamp + greatest;
        if (found < max_timestamp) max_timestamp = found < NO_TIMESTAMP ? NO_TIMESTAMP : (int64_t)found;
    }
    size_t start = round->out_size;
    round->out_size = (size_t)(to - round->out);
    finish_batch(round, batch, start, gets_horizon ? batch->attributes | DELETE_HORIZON_BIT : batch->attributes,
                 gets_horizon ? round->new_horizon_ms : base_timestamp, max_timestamp, count - going);
    *fate = REDUCED;
    return AT_END;
}

/* ---- which records go */

static int make_marks_room(struct compaction *round, uint32_t count) {
    if (count <= round->marks_room) return 0;
    size_t room = (size_t)count + count / 2;
    uint8_t *larger = realloc(round->marks, room);
    if (larger == NULL) return -1;
    round->marks = larger;
    round->marks_room = room;
    return 0;
}

/* Mark the tombstones of a batch, and in the clean part what the map supersedes; -1 if records do not make sense. */
static int mark_records(struct compaction *round, const struct batch *batch, const uint8_t *payload,
                        size_t payload_size, int is_clean, int *has_tombstones) {
    const uint8_t *at = payload, *end = payload + payload_size;
    uint32_t count = (uint32_t)batch->count;
    for (uint32_t index = 0; index < count; index++) {
        struct record record;
        if (!read_record(at, end, &record)) return -1;
        at = record.end;
        if (is_clean) {
            uint8_t goes = GOES;
            if (record.key != NULL) {
                struct key_digest digest = key_map_digest(&round->map, record.key, record.key_size);
                goes = key_map_has(&round->map, &digest) ? GOES : 0;
            }
            round->marks[index] = goes;
        }
        if (record.is_tombstone) {
            round->marks[index] |= TOMBSTONE;
            *has_tombstones = 1;
        }
    }
    return at == end ? 0 : -1;
}

static uint32_t count_going(const struct compaction *round, uint32_t count) {
    uint32_t going = 0;
    for (uint32_t index = 0; index < count; index++) going += round->marks[index] & GOES;
    return going;
}

/* With tombstones: let those go whose time has come; 1 if the batch must get a delete horizon. */
static int settle_tombstones(struct compaction *round, const struct batch *batch) {
    uint32_t count = (uint32_t)batch->count;
    if (!(batch->attributes & DELETE_HORIZON_BIT)) {
        for (uint32_t index = 0; index < count; index++)
            if ((round->marks[index] & (GOES | TOMBSTONE)) == TOMBSTONE) return 1;
        return 0;
    }
    if (round->now_ms >= base_timestamp_of(batch))
        for (uint32_t index = 0; index < count; index++)
            if (round->marks[index] & TOMBSTONE) round->marks[index] |= GOES;
    return 0;
}

enum stop filter_batch(struct compaction *round, const struct batch *batch, const uint8_t *payload,
                       size_t payload_size, int is_checked, enum fate *fate) {
    *fate = DROPPED;
    if (batch->count == 0 || batch->base_offset > round->latest_offset)
        return batch->count || must_stay(round, batch) ? keep_as_it_is(round, batch, fate) : AT_END;
    if (batch->count < 0) return IS_DAMAGED;
    uint32_t count = (uint32_t)batch->count, going = 0;
    const struct mapped_batch *mapped = key_map_find_batch(&round->map, batch->base_offset);
    if (mapped == NULL && payload == NULL) return IS_COMPRESSED;
    if (mapped == NULL && (uint64_t)count * SMALLEST_RECORD_BYTES > payload_size) return IS_DAMAGED;
    if (mapped != NULL && key_map_batch_records(&round->map, mapped) != count) return IS_DAMAGED;
    if (make_marks_room(round, count) < 0) return NO_MEMORY;
    int has_tombstones = 0;
    if (mapped != NULL) {
        for (uint32_t index = 0; index < count; index++)
            going += round->marks[index] = (uint8_t)key_map_is_superseded(&round->map, mapped->first + index);
        has_tombstones = (int)mapped->has_tombstones;
        if (!has_tombstones && going == 0) return keep_as_it_is(round, batch, fate);
        if (!has_tombstones && going == count) return empty(round, batch, is_checked, fate);
        if (payload == NULL) return IS_COMPRESSED;
    }
    if (!is_checked && !checksum_is_right(batch)) return IS_DAMAGED;
    if (mapped == NULL || has_tombstones) {
        if (mark_records(round, batch, payload, payload_size, mapped == NULL, &has_tombstones) < 0) return IS_DAMAGED;
        if (has_tombstones && settle_tombstones(round, batch))
            return reduce(round, batch, payload, payload_size, count_going(round, count), 1, fate);
        going = count_going(round, count);
        if (going == 0) return keep_as_it_is(round, batch, fate);
        if (going == count) return empty(round, batch, 1, fate);
    }
    return reduce(round, batch, payload, payload_size, going, 0, fate);
}
