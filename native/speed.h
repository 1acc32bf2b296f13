/* What the C files of this room share. A function here never reads outside the bytes that it was given: `end` is the
 * first byte that is not theirs, and every length is compared with what is left before it is followed. */

#ifndef OTTLA_SPEED_H
#define OTTLA_SPEED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Each file has a table of its functions, which the module adds. */
extern PyMethodDef ottla_record_methods[];
extern PyMethodDef ottla_lz4_methods[];
extern PyMethodDef ottla_produce_methods[];
extern PyMethodDef ottla_list_offsets_methods[];
extern PyMethodDef ottla_fetch_methods[];
extern PyMethodDef ottla_crc32c_methods[];
extern PyMethodDef ottla_compaction_methods[];
extern PyMethodDef ottla_index_methods[];
extern PyMethodDef ottla_room_methods[];
extern PyMethodDef ottla_page_cache_methods[];

/* The CRC-32C of some bytes. */
uint32_t ottla_crc32c(const uint8_t *at, size_t size);

/* What the records of a batch have in common. */
typedef struct {
    int64_t least, greatest, first; /* timestamp deltas */
    Py_ssize_t keyless;
    bool is_numbered;
    const uint8_t *record; /* where a scan that fails has stopped: at this record, which has the number `index` */
    Py_ssize_t index;
} scan_t;

/* Read `count` records that must fill the bytes from `at` to `end`. */
bool ottla_scan_records(const uint8_t *at, const uint8_t *end, Py_ssize_t count, scan_t *found);

/* How many bytes a whole LZ4 frame unpacks to, into the room for them; -1 for what is not known here. */
Py_ssize_t ottla_unpack_lz4(const uint8_t *at, const uint8_t *end, uint8_t *room, Py_ssize_t room_bytes);

static inline uint16_t read_u16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline uint32_t read_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

static inline uint64_t read_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return __builtin_bswap64(value);
}

static inline void write_u32(uint8_t *at, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(at, &value, 4);
}

static inline void write_u64(uint8_t *at, uint64_t value) {
    value = __builtin_bswap64(value);
    memcpy(at, &value, 8);
}

/* An unsigned varint of at most 32 bits. Returns the byte behind it, or NULL if it does not end in time or has
 * more bits. */
static inline const uint8_t *read_uvarint(const uint8_t *at, const uint8_t *end, uint32_t *value) {
    uint32_t result = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (at >= end) return NULL;
        uint8_t byte = *at++;
        if (shift == 28 && byte > 0x0f) return NULL;
        result |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return at;
        }
    }
    return NULL;
}

/* A zigzag varint of at most 32 bits, as in records. */
static inline const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, int32_t *value) {
    uint32_t raw;
    at = read_uvarint(at, end, &raw);
    if (at != NULL) *value = (int32_t)(raw >> 1) ^ -(int32_t)(raw & 1);
    return at;
}

/* A zigzag varint of at most 64 bits. */
static inline const uint8_t *read_varlong(const uint8_t *at, const uint8_t *end, int64_t *value) {
    uint64_t raw = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (at >= end) return NULL;
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) return NULL;
        raw |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return at;
        }
    }
    return NULL;
}

#endif
