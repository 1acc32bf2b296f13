/* A round of compaction over one log: its keys into the map, then what stays of its batches, many batches in a call.
 * The twin of ottla.log_store.compaction's chunk_keys, key_map and batch_filter; ottla.log_store.compaction.compiled
 * calls it. Markers, what is in transactions, and the opening of compressed batches are left to Python, and so is what
 * does not make sense: a loop ends there and says why. */

#include "compaction.h"

#include <stdlib.h>

#define ROUND_NAME "ottla.native.compaction"
#define DIGESTS_AHEAD 16

static struct compaction *round_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, ROUND_NAME); }

static int has_arguments(const char *name, Py_ssize_t nargs, Py_ssize_t wanted) {
    if (nargs == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments", name, wanted);
    return 0;
}

static void free_round(PyObject *capsule) {
    struct compaction *round = round_of(capsule);
    if (round == NULL) return;
    key_map_free(&round->map);
    free(round->producers);
    free(round->out);
    free(round->marks);
    free(round);
}

/* new_round(max_bytes, seed, first_dirty_offset): what the other functions work on. */
static PyObject *new_round(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("new_round", nargs, 3)) return NULL;
    unsigned long long max_bytes = PyLong_AsUnsignedLongLong(args[0]);
    if (PyErr_Occurred()) return NULL;
    char *seed;
    Py_ssize_t seed_size;
    if (PyBytes_AsStringAndSize(args[1], &seed, &seed_size) < 0) return NULL;
    long long first_dirty_offset = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (seed_size != 16) {
        PyErr_SetString(PyExc_ValueError, "a seed has 16 bytes");
        return NULL;
    }
    struct compaction *round = calloc(1, sizeof *round);
    if (round == NULL) return PyErr_NoMemory();
    key_map_init(&round->map, max_bytes, (const uint8_t *)seed);
    round->first_dirty_offset = first_dirty_offset;
    round->latest_offset = first_dirty_offset - 1;
    PyObject *capsule = PyCapsule_New(round, ROUND_NAME, free_round);
    if (capsule == NULL) free(round);
    return capsule;
}

/* round_facts(round): latest offset, bytes that were indexed, keys, and bytes that the map is charged with. */
static PyObject *round_facts(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("round_facts", nargs, 1)) return NULL;
    struct compaction *round = round_of(args[0]);
    if (round == NULL) return NULL;
    return Py_BuildValue("LLKK", (long long)round->latest_offset, (long long)round->indexed_bytes,
                         (unsigned long long)round->map.keys, (unsigned long long)key_map_charged(&round->map));
}

/* round_reached(round, offset, size): the map covers all up to an offset, `size` bytes of it without keys. */
static PyObject *round_reached(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("round_reached", nargs, 3)) return NULL;
    struct compaction *round = round_of(args[0]);
    if (round == NULL) return NULL;
    long long offset = PyLong_AsLongLong(args[1]), size = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    round->latest_offset = offset;
    round->indexed_bytes += size;
    Py_RETURN_NONE;
}

/* whole_batches(data): where the last whole batch ends before data ends or stops making sense. */
static PyObject *whole_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("whole_batches", nargs, 1)) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *at = view.buf, *end = at + view.len;
    struct batch batch;
    while (read_batch(at, end, &batch) > 0) at += batch.size;
    Py_ssize_t found = at - (const uint8_t *)view.buf;
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(found);
}

/* ---- the first pass */

/* Put the keys of a batch into the map. */
static enum stop map_payload(struct compaction *round, const struct batch *batch, const uint8_t *at, size_t size) {
    struct key_map *map = &round->map;
    if (batch->count < 0 || (uint64_t)batch->count * SMALLEST_RECORD_BYTES > size) return IS_DAMAGED;
    uint32_t count = (uint32_t)batch->count, number;
    if (!key_map_has_room(map, count)) return IS_FULL;
    if (key_map_add_batch(map, batch->base_offset, count, &number) < 0) return NO_MEMORY;
    const uint8_t *end = at + size;
    while (count) {
        struct key_digest digests[DIGESTS_AHEAD]; /* so that the memory of one is fetched while others are made */
        uint32_t numbers[DIGESTS_AHEAD], ready = 0;
        for (; count && ready < DIGESTS_AHEAD; count--, number++) {
            struct record record;
            if (!read_record(at, end, &record)) return IS_DAMAGED;
            at = record.end;
            if (record.is_tombstone) map->batches[map->batch_count - 1].has_tombstones = 1;
            if (record.key == NULL) {
                key_map_supersede(map, number);
                continue;
            }
            digests[ready] = key_map_digest(map, record.key, record.key_size);
            key_map_prefetch(map, digests + ready);
            numbers[ready++] = number;
        }
        for (uint32_t index = 0; index < ready; index++)
            if (key_map_put(map, digests + index, numbers[index]) < 0) return NO_MEMORY;
    }
    return at == end ? AT_END : IS_DAMAGED;
}

/* Go over batches from *at on until one of them is not for C. `one`: exactly one, in a transaction or not. */
static enum stop map_all(struct compaction *round, const uint8_t **at, const uint8_t *end, int one) {
    struct batch batch;
    int found;
    while ((found = read_batch(*at, end, &batch)) > 0) {
        if (batch.last_offset >= round->first_dirty_offset) {
            if (!one && batch.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) return IS_SPECIAL;
            if (!checksum_is_right(&batch)) return IS_DAMAGED;
            if (batch.count < 0) return IS_DAMAGED;
            if (batch.count) {
                if (batch.attributes & CODEC_MASK) return IS_COMPRESSED;
                enum stop stop = map_payload(round, &batch, batch.at + HEADER_BYTES, batch.size - HEADER_BYTES);
                if (stop != AT_END) return stop;
            }
            round->latest_offset = batch.last_offset;
            round->indexed_bytes += (int64_t)batch.size;
        }
        *at += batch.size;
        if (one) return AT_END;
    }
    return found < 0 ? IS_DAMAGED : AT_END;
}

/* map_batches(round, data, position, one): (position of the first batch that was not taken, why). */
static PyObject *map_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("map_batches", nargs, 4)) return NULL;
    struct compaction *round = round_of(args[0]);
    if (round == NULL) return NULL;
    Py_ssize_t position = PyLong_AsSsize_t(args[2]);
    int one = PyObject_IsTrue(args[3]);
    Py_buffer view;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[1], &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *begin = view.buf, *at = begin;
    enum stop stop = IS_DAMAGED;
    if (0 <= position && position <= view.len) {
        at += position;
        Py_BEGIN_ALLOW_THREADS
        stop = map_all(round, &at, begin + view.len, one);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    if (stop == NO_MEMORY) return PyErr_NoMemory();
    return Py_BuildValue("ni", (Py_ssize_t)(at - begin), (int)stop);
}

/* A batch, which must fill its buffer, and its records from another one. 0 with an error set if they are not that. */
static int get_opened(PyObject *data, PyObject *records, Py_buffer *whole, Py_buffer *payload, struct batch *batch) {
    if (PyObject_GetBuffer(data, whole, PyBUF_SIMPLE) < 0) return 0;
    const uint8_t *at = whole->buf;
    if (read_batch(at, at + whole->len, batch) <= 0 || batch->size != (size_t)whole->len) {
        PyErr_SetString(PyExc_ValueError, "not a batch");
    } else if (PyObject_GetBuffer(records, payload, PyBUF_SIMPLE) == 0) {
        return 1;
    }
    PyBuffer_Release(whole);
    return 0;
}

/* map_opened(round, batch, records): the same for one batch whose records were decompressed; why it was not taken. */
static PyObject *map_opened(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("map_opened", nargs, 3)) return NULL;
    struct compaction *round = round_of(args[0]);
    struct batch batch;
    Py_buffer whole, payload;
    if (round == NULL || !get_opened(args[1], args[2], &whole, &payload, &batch)) return NULL;
    enum stop stop;
    Py_BEGIN_ALLOW_THREADS
    stop = map_payload(round, &batch, payload.buf, (size_t)payload.len);
    if (stop == AT_END) {
        round->latest_offset = batch.last_offset;
        round->indexed_bytes += (int64_t)batch.size;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&payload);
    PyBuffer_Release(&whole);
    if (stop == NO_MEMORY) return PyErr_NoMemory();
    return PyLong_FromLong(stop);
}

/* ---- the second pass */

/* begin_filter(round, now_ms, new_horizon_ms, end_offset, producers): before the other functions of this pass.
 * `producers` are pairs of int64, id and last offset, in the order of their ids. */
static PyObject *begin_filter(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("begin_filter", nargs, 5)) return NULL;
    struct compaction *round = round_of(args[0]);
    if (round == NULL) return NULL;
    long long now_ms = PyLong_AsLongLong(args[1]), horizon_ms = PyLong_AsLongLong(args[2]);
    long long end_offset = PyLong_AsLongLong(args[3]);
    char *producers;
    Py_ssize_t size;
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(args[4], &producers, &size) < 0) return NULL;
    size_t count = (size_t)size / sizeof(struct producer_tail);
    struct producer_tail *copy = malloc((size_t)size + 1);
    if (copy == NULL) return PyErr_NoMemory();
    memcpy(copy, producers, count * sizeof *copy);
    free(round->producers);
    round->producers = copy;
    round->producer_count = count;
    round->now_ms = now_ms;
    round->new_horizon_ms = horizon_ms;
    round->end_offset = end_offset;
    Py_RETURN_NONE;
}

/* What is to be written; never NULL, which would be None. */
static const char *written(const struct compaction *round) { return round->out_size ? (const char *)round->out : ""; }

static enum stop filter_all(struct compaction *round, const uint8_t **at, const uint8_t *end, int one) {
    struct batch batch;
    enum fate fate;
    int found;
    while ((found = read_batch(*at, end, &batch)) > 0) {
        if (!one && batch.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) return IS_SPECIAL;
        const uint8_t *payload = batch.attributes & CODEC_MASK ? NULL : batch.at + HEADER_BYTES;
        enum stop stop = filter_batch(round, &batch, payload, batch.size - HEADER_BYTES, 0, &fate);
        if (stop != AT_END) return stop;
        *at += batch.size;
        if (one) return AT_END;
    }
    return found < 0 ? IS_DAMAGED : AT_END;
}

/* filter_batches(round, data, position, one): (what is to be written, position of the first batch that is not in that,
 * why). */
static PyObject *filter_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("filter_batches", nargs, 4)) return NULL;
    struct compaction *round = round_of(args[0]);
    if (round == NULL) return NULL;
    Py_ssize_t position = PyLong_AsSsize_t(args[2]);
    int one = PyObject_IsTrue(args[3]);
    Py_buffer view;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[1], &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *begin = view.buf, *at = begin;
    enum stop stop = IS_DAMAGED;
    round->out_size = 0;
    if (0 <= position && position <= view.len) {
        at += position;
        Py_BEGIN_ALLOW_THREADS
        stop = filter_all(round, &at, begin + view.len, one);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    if (stop == NO_MEMORY) return PyErr_NoMemory();
    return Py_BuildValue("y#ni", written(round), (Py_ssize_t)round->out_size, (Py_ssize_t)(at - begin), (int)stop);
}

/* filter_opened(round, batch, records): the same for one batch whose checksum is right and whose records were
 * decompressed: (bytes, what they are, why not). A batch with fewer records has them uncompressed. */
static PyObject *filter_opened(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (!has_arguments("filter_opened", nargs, 3)) return NULL;
    struct compaction *round = round_of(args[0]);
    struct batch batch;
    Py_buffer whole, payload;
    if (round == NULL || !get_opened(args[1], args[2], &whole, &payload, &batch)) return NULL;
    enum stop stop;
    enum fate fate;
    round->out_size = 0;
    Py_BEGIN_ALLOW_THREADS
    stop = filter_batch(round, &batch, payload.buf, (size_t)payload.len, 1, &fate);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&payload);
    PyBuffer_Release(&whole);
    if (stop == NO_MEMORY) return PyErr_NoMemory();
    return Py_BuildValue("y#ii", written(round), (Py_ssize_t)round->out_size, (int)fate, (int)stop);
}

PyMethodDef ottla_compaction_methods[] = {
    {"new_round", (PyCFunction)(void (*)(void))new_round, METH_FASTCALL, NULL},
    {"round_facts", (PyCFunction)(void (*)(void))round_facts, METH_FASTCALL, NULL},
    {"round_reached", (PyCFunction)(void (*)(void))round_reached, METH_FASTCALL, NULL},
    {"whole_batches", (PyCFunction)(void (*)(void))whole_batches, METH_FASTCALL, NULL},
    {"map_batches", (PyCFunction)(void (*)(void))map_batches, METH_FASTCALL, NULL},
    {"map_opened", (PyCFunction)(void (*)(void))map_opened, METH_FASTCALL, NULL},
    {"begin_filter", (PyCFunction)(void (*)(void))begin_filter, METH_FASTCALL, NULL},
    {"filter_batches", (PyCFunction)(void (*)(void))filter_batches, METH_FASTCALL, NULL},
    {"filter_opened", (PyCFunction)(void (*)(void))filter_opened, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
