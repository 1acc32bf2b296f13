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
/* A usual sequence takes and makes no more than this, and one with some more literals three times that. */
#define STEP_BYTES 32
#define UNUSUAL_STEPS 3
#define ANY_STEPS (1 << 20) /* more than there are in any block: they are counted anew */
#define SPARE_BYTES 128 /* for one unusual sequence more than was counted on */
#define USUAL_MATCH 12  /* and SHORTEST_MATCH: 16 bytes, which are copied at once */
#define FEW_LITERALS 64
#define TOGETHER 3

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

/* A block that is being unpacked: what is left of it, the room that is left, and the oldest byte that a match may copy. */
typedef struct {
    const uint8_t *at, *end;
    uint8_t *out, *limit;
    const uint8_t *lowest;
} Block;

/* How many usual sequences fit into what is left on both sides, whatever they are. */
static inline Py_ssize_t steps_left(const Block *block) {
    Py_ssize_t in = block->end - block->at, out = block->limit - block->out;
    return ((in < out ? in : out) - SPARE_BYTES) / STEP_BYTES;
}

/* Unpack a few literals and a short match, which is the usual. More than needed is copied, but no more than a little: a
 * match that reads what has just been written twice waits for it. False at anything else; it is still to be unpacked then. */
static inline __attribute__((always_inline)) bool take_usual(Block *block) {
    const uint8_t *at = block->at;
    uint8_t *out = block->out;
    size_t token = *at, match = token & 15;
    memcpy(out, at + 1, 16);
    if (__builtin_expect(token >= 15 << 4, 0)) return false;
    if (__builtin_expect(match > USUAL_MATCH, 0)) return false;
    size_t literals = token >> 4, distance = read_le16(at + 1 + literals);
    out += literals;
    if (__builtin_expect(distance < 16, 0)) return false;
    if (__builtin_expect(distance > (size_t)(out - block->lowest), 0)) return false;
    memcpy(out, out - distance, 16);
    block->out = out + match + SHORTEST_MATCH;
    block->at = at + literals + 3;
    return true;
}

typedef enum { WRONG, LAST, MORE } Sequence;

/* Unpack any sequence, with every check. */
static __attribute__((noinline)) Sequence take_any(Block *block) {
    const uint8_t *at = block->at, *end = block->end;
    uint8_t *out = block->out;
    if (at >= end) return WRONG; /* a block ends with literals */
    uint8_t token = *at++;
    size_t length = token >> 4, room = (size_t)(block->limit - out);
    if (length == 15 && !read_more(&at, end, &length)) return WRONG;
    if (length > (size_t)(end - at) || length > room) return WRONG;
    bool is_last = room < length + MATCH_FIND_LIMIT || (size_t)(end - at) < length + 2 + 1 + LAST_LITERALS;
    memcpy(out, at, length);
    out += length;
    at += length;
    room -= length;
    if (is_last) {
        block->out = out;
        return at == end ? LAST : WRONG;
    }
    size_t distance = read_le16(at);
    at += 2;
    length = token & 15;
    if (distance == 0 || distance > (size_t)(out - block->lowest)) return WRONG;
    if (length == 15 && !read_more(&at, end - LAST_LITERALS + 1, &length)) return WRONG;
    length += SHORTEST_MATCH;
    if (length + LAST_LITERALS > room) return WRONG;
    copy_match(out, out - distance, length, room);
    block->out = out + length;
    block->at = at;
    return MORE;
}

/* Unpack a sequence that is not usual. Returns for how many that counts, 0 where the block ends. */
static __attribute__((noinline)) Py_ssize_t take_unusual(Block *block) {
    const uint8_t *at = block->at;
    uint8_t *out = block->out;
    size_t match = *at & 15, literals = *at >> 4;
    if (literals == 15 && at[1] < FEW_LITERALS - 15 && match <= USUAL_MATCH) {
        literals += at[1];
        memcpy(out, at + 2, FEW_LITERALS);
        size_t distance = read_le16(at + 2 + literals);
        out += literals;
        if (distance >= 16 && distance <= (size_t)(out - block->lowest)) {
            memcpy(out, out - distance, 16);
            block->out = out + match + SHORTEST_MATCH;
            block->at = at + literals + 4;
            return UNUSUAL_STEPS;
        }
    }
    return take_any(block) == MORE ? ANY_STEPS : 0;
}

/* Unpack the next sequence, and take it from those that are `left`. A block that is the caller's own is kept in
 * registers; `slow` is where others find it. False where it ends. */
static inline __attribute__((always_inline)) bool take_next(Block *block, Block *slow, Py_ssize_t *left) {
    if (__builtin_expect(take_usual(block), 1)) return true;
    *slow = *block;
    Py_ssize_t steps = take_unusual(slow);
    *left -= steps;
    if (steps) *block = *slow;
    return steps;
}

/* Unpack the most of a block. */
static void unpack_most(Block *block) {
    Block a = *block, slow;
    for (Py_ssize_t left; (left = steps_left(&a)) > 0;) {
        do
            if (!take_next(&a, &slow, &left)) goto end;
        while (--left > 0);
    }
end:
    *block = a;
}

/* Unpack the most of blocks that have nothing to do with each other, a sequence of each in turn: where a sequence
 * begins is known only when the one before it was read, and a processor has time for others meanwhile. */
static void unpack_most_of_all(Block *blocks) {
    Block a = blocks[0], b = blocks[1], c = blocks[2], slow;
    for (;;) {
        Py_ssize_t left = steps_left(&a), left_b = steps_left(&b), left_c = steps_left(&c);
        if (left_b < left) left = left_b;
        if (left_c < left) left = left_c;
        if (left <= 0) break;
        do {
            if (!take_next(&a, &slow, &left)) goto end;
            if (!take_next(&b, &slow, &left)) goto end;
            if (!take_next(&c, &slow, &left)) goto end;
        } while (--left > 0);
    }
end:
    blocks[0] = a;
    blocks[1] = b;
    blocks[2] = c;
}

/* Unpack what is left of a block. Returns where it ends, or NULL. */
static uint8_t *unpack_rest(Block *block) {
    unpack_most(block);
    Sequence sequence;
    do sequence = take_any(block);
    while (sequence == MORE);
    return sequence == LAST ? block->out : NULL;
}

/* Unpack several blocks that do not copy from each other, if so many follow here and all fit in. Returns what is behind
 * them and moves `out`, or returns `at` if they are to be unpacked one by one, or NULL if one is wrong. */
static const uint8_t *unpack_together(const uint8_t *at, const uint8_t *end, uint8_t **out, const uint8_t *stop,
                                      Py_ssize_t greatest) {
    Block blocks[TOGETHER];
    uint8_t *begin = *out;
    const uint8_t *next = at;
    if (stop - begin < TOGETHER * greatest) return at;
    for (int each = 0; each < TOGETHER; each++) {
        if (end - next < 4) return at;
        uint32_t size = read_le32(next);
        next += 4;
        if (size == 0 || size > end - next || size > greatest) return at;
        blocks[each] = (Block){next, next + size, begin, begin + greatest, begin};
        next += size;
        begin += greatest;
    }
    unpack_most_of_all(blocks);
    for (int each = 0; each < TOGETHER; each++) {
        const uint8_t *first = blocks[each].lowest, *last = unpack_rest(&blocks[each]);
        if (last == NULL) return NULL;
        /* All but the last one of a frame are as large as they may be, mostly. */
        if (first != *out) memmove(*out, first, (size_t)(last - first));
        *out += last - first;
    }
    return next;
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
    for (;;) {
        while (!is_linked) {
            const uint8_t *behind = unpack_together(at, end, &out, stop, greatest);
            if (behind == NULL) return -1;
            if (behind == at) break;
            at = behind;
        }
        if (end - at < 4) return -1;
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
            Block block = {at, at + size, out, limit, is_linked ? room : out};
            out = unpack_rest(&block);
            if (out == NULL) return -1;
        }
        at += size;
    }
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
