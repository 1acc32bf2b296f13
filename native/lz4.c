/* LZ4 frames: the twin of Scratch._unpack_lz4 in ottla.wire.records.unpacking, which decompresses into memory that is
 * there already. It knows the frames that clients write: no checksums of contents, no dictionary. Everything else,
 * whatever is broken among it, is left to the library. */

#include "speed.h"

#define MAGIC 0x184D2204u
#define STORED 0x80000000u
#define HELD_BYTES 65536 /* from which on other threads may run */
/* Of the format: what a match needs behind it, in the room for its block and in the block. */
#define LAST_LITERALS 5
#define MATCH_FIND_LIMIT 12
#define SHORTEST_MATCH 4
/* How far from both ends it must be that so many literals, a short match and what the format asks for fit in. */
#define FEW_LITERALS 64
#define FAR_IN (1 + FEW_LITERALS + 2 + 1 + LAST_LITERALS)
#define FAR_OUT (FEW_LITERALS + 18 + MATCH_FIND_LIMIT)

static inline uint32_t read_le32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline size_t read_le16(const uint8_t *at) { return (size_t)(at[0] | at[1] << 8); }

static inline uint32_t rotate(uint32_t value, int by) { return value << by | value >> (32 - by); }

/* The second byte of XXH32 of less than 16 bytes, which is what the header of a frame ends with. */
static uint8_t header_checksum(const uint8_t *at, Py_ssize_t size) {
    const uint8_t *end = at + size;
    uint32_t hash = 374761393u + (uint32_t)size;
    for (; end - at >= 4; at += 4) hash = rotate(hash + read_le32(at) * 3266489917u, 17) * 668265263u;
    for (; at < end; at++) hash = rotate(hash + *at * 374761393u, 11) * 2654435761u;
    hash = (hash ^ hash >> 15) * 2246822519u;
    hash = (hash ^ hash >> 13) * 3266489917u;
    return (uint8_t)((hash ^ hash >> 16) >> 8);
}

/* A length that goes on in further bytes. False if they end, or it is longer than any block. */
static inline bool read_more(const uint8_t **at, const uint8_t *end, size_t *length) {
    uint8_t byte;
    do {
        if (*at >= end || *length > (1u << 23)) return false;
        byte = *(*at)++;
        *length += byte;
    } while (byte == 255);
    return true;
}

/* Copy a match that may overlap what it makes; it is within the room. */
static inline void copy_match(uint8_t *to, const uint8_t *from, size_t length, size_t room) {
    size_t distance = (size_t)(to - from);
    if (distance >= 16 && length + 16 <= room) {
        for (uint8_t *stop = to + length; to < stop; to += 16, from += 16) memcpy(to, from, 16);
    } else {
        for (; length > distance; distance *= 2) { /* what is there then repeats itself as often again */
            memcpy(to, from, distance);
            to += distance;
            length -= distance;
        }
        memcpy(to, from, length);
    }
}

/* Decompress one block behind what is in `out` already, up to `limit`. Returns where it ends, or NULL. `lowest` is
 * where the oldest byte is that a match may copy. */
static uint8_t *unpack_block(const uint8_t *at, const uint8_t *end, uint8_t *out, uint8_t *limit,
                             const uint8_t *lowest) {
    const uint8_t *near_end = end - at > FAR_IN ? end - FAR_IN : at;
    uint8_t *near_limit = limit - out > FAR_OUT ? limit - FAR_OUT : out;
    for (;;) {
        uint8_t token;
        size_t length, distance;
        while (at < near_end && out < near_limit) {
            /* The usual: some literals and a short match. More than needed is copied, but no more than a little: a
             * match that reads what has just been written twice waits for it. */
            token = *at++;
            length = token >> 4;
            memcpy(out, at, 16);
            if (__builtin_expect(length == 15, 0)) {
                if (*at >= FEW_LITERALS - 15) goto literals;
                length += *at++;
                memcpy(out, at, 32);
                if (length > 32) memcpy(out + 32, at + 32, 32);
            }
            out += length;
            at += length;
            distance = read_le16(at);
            at += 2;
            length = token & 15;
            if (__builtin_expect(length == 15 || distance < 16 || distance > (size_t)(out - lowest), 0)) goto match;
            memcpy(out, out - distance, 16);
            memcpy(out + 16, out - distance + 16, 2);
            out += length + SHORTEST_MATCH;
        }
        if (at >= end) return NULL; /* a block ends with literals */
        token = *at++;
        length = token >> 4;
    literals:
        if (length == 15 && !read_more(&at, end, &length)) return NULL;
        if (length > (size_t)(end - at) || length > (size_t)(limit - out)) return NULL;
        bool is_last = (size_t)(limit - out) < length + MATCH_FIND_LIMIT ||
                       (size_t)(end - at) < length + 2 + 1 + LAST_LITERALS;
        memcpy(out, at, length);
        out += length;
        at += length;
        if (is_last) return at == end ? out : NULL;
        distance = read_le16(at);
        at += 2;
        length = token & 15;
    match:
        if (distance == 0 || distance > (size_t)(out - lowest)) return NULL;
        if (length == 15 && !read_more(&at, end, &length)) return NULL;
        length += SHORTEST_MATCH;
        size_t room = (size_t)(limit - out);
        if (length + LAST_LITERALS > room) return NULL;
        copy_match(out, out - distance, length, room);
        out += length;
    }
}

Py_ssize_t ottla_unpack_lz4(const uint8_t *at, const uint8_t *end, uint8_t *room, Py_ssize_t room_bytes) {
    if (end - at < 7 || read_le32(at) != MAGIC) return -1;
    const uint8_t *header = at + 4;
    uint8_t flags = header[0], block_kind = header[1];
    /* Version 1, blocks of their own or linked, with or without the size of the contents. */
    if ((flags & 0xd7) != 0x40 || (block_kind & 0x8f) != 0 || block_kind < 0x40) return -1;
    bool has_size = flags & 0x08, is_linked = !(flags & 0x20);
    Py_ssize_t header_bytes = has_size ? 10 : 2;
    if (end - header < header_bytes + 1 || header[header_bytes] != header_checksum(header, header_bytes)) return -1;
    uint64_t promised = has_size ? (uint64_t)read_le32(header + 2) | (uint64_t)read_le32(header + 6) << 32 : 0;
    Py_ssize_t greatest = (Py_ssize_t)1 << (8 + 2 * (block_kind >> 4)); /* 64 KB, 256 KB, 1 MB or 4 MB */
    at = header + header_bytes + 1;
    uint8_t *out = room, *stop = room + room_bytes;
    while (end - at >= 4) {
        uint32_t word = read_le32(at);
        at += 4;
        if (word == 0) {
            if (at != end || (promised != 0 && promised != (uint64_t)(out - room))) return -1;
            return out - room;
        }
        Py_ssize_t size = (Py_ssize_t)(word & ~STORED);
        if (size == 0 || size > end - at || size > greatest) return -1;
        if (word & STORED) {
            if (size > stop - out) return -1;
            memcpy(out, at, (size_t)size);
            out += size;
        } else {
            /* A block that ends within the last bytes of the room may be left to the library for nothing. */
            uint8_t *limit = stop - out < greatest ? stop : out + greatest;
            out = unpack_block(at, at + size, out, limit, is_linked ? room : out);
            if (out == NULL) return -1;
        }
        at += size;
    }
    return -1;
}

/* unpack_lz4(data, room): decompress one whole frame into `room`. Returns how many bytes there are then, or None if it
 * has to be done otherwise; what is in `room` then means nothing. */
static PyObject *unpack_lz4(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "unpack_lz4 takes 2 arguments");
        return NULL;
    }
    Py_buffer data, room;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) return NULL;
    if (PyObject_GetBuffer(args[1], &room, PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    const uint8_t *begin = data.buf;
    Py_ssize_t size;
    if (data.len < HELD_BYTES) {
        size = ottla_unpack_lz4(begin, begin + data.len, room.buf, room.len);
    } else {
        Py_BEGIN_ALLOW_THREADS
        size = ottla_unpack_lz4(begin, begin + data.len, room.buf, room.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&room);
    PyBuffer_Release(&data);
    if (size < 0) Py_RETURN_NONE;
    return PyLong_FromSsize_t(size);
}

PyMethodDef ottla_lz4_methods[] = {
    {"unpack_lz4", (PyCFunction)(void (*)(void))unpack_lz4, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
