/* The records of a batch: the twins of ottla.wire.records.lengths and ottla.wire.records.scan, and of the rules of
 * ottla.log_store.validation for the usual batch.
 *
 * What is wrong with a batch is not said here: the twin in Python then looks for itself. */

#include "speed.h"

#define SMALLEST_BODY_BYTES 6 /* of a record, behind its length: one byte for each of its fields */
#define SMALLEST_RECORD_BYTES 7
#define MANY_RECORDS 10000 /* for which other threads may run */
#define HEADER_BYTES 61
#define LOG_OVERHEAD 12
#define MAX_USUAL_RECORDS 250000 /* MAX_OPENED_RECORDS in validation.py */
#define TRANSACTIONAL 0x10

/* Most varints are of one or two bytes. */
static inline const uint8_t *next_varint(const uint8_t *at, const uint8_t *end, int32_t *value) {
    if (end - at >= 2) {
        uint32_t raw = at[0];
        if (raw < 0x80) {
            *value = (int32_t)(raw >> 1) ^ -(int32_t)(raw & 1);
            return at + 1;
        }
        if (at[1] < 0x80) {
            raw = (raw & 0x7f) | (uint32_t)at[1] << 7;
            *value = (int32_t)(raw >> 1) ^ -(int32_t)(raw & 1);
            return at + 2;
        }
    }
    return read_varint(at, end, value);
}

/* The byte behind a key or value; any negative length means null. */
static inline const uint8_t *pass_nullable(const uint8_t *at, const uint8_t *stop, bool *is_null) {
    int32_t length;
    at = next_varint(at, stop, &length);
    if (at == NULL) return NULL;
    *is_null = length < 0;
    if (length <= 0) return at;
    return length > stop - at ? NULL : at + length;
}

/* Whether the headers that begin here end where the record does. */
static bool headers_fill(const uint8_t *at, const uint8_t *stop) {
    int32_t count;
    bool is_null;
    at = read_varint(at, stop, &count);
    if (at == NULL || count < 0 || (int64_t)count * 2 > stop - at) return false;
    while (count-- > 0) {
        at = pass_nullable(at, stop, &is_null);
        if (at == NULL || is_null) return false;
        at = pass_nullable(at, stop, &is_null);
        if (at == NULL) return false;
    }
    return at == stop;
}

bool ottla_scan_records(const uint8_t *at, const uint8_t *end, Py_ssize_t count, scan_t *found) {
    int64_t least = 0, greatest = 0, first = 0;
    Py_ssize_t keyless = 0, index = 0;
    bool is_numbered = true;
    const uint8_t *record = at;
    for (; index < count; index++) {
        int32_t length, number;
        int64_t delta;
        bool is_null;
        record = at;
        at = next_varint(at, end, &length);
        if (at == NULL || length < SMALLEST_BODY_BYTES || length > end - at) goto wrong;
        const uint8_t *stop = at + length;
        at = read_varlong(at + 1, stop, &delta); /* behind the attributes, which nothing uses */
        if (at == NULL) goto wrong;
        if (index == 0) {
            first = least = greatest = delta;
        } else if (delta > greatest) {
            greatest = delta;
        } else if (delta < least) {
            least = delta;
        }
        at = next_varint(at, stop, &number);
        if (at == NULL) goto wrong;
        is_numbered &= number == index;
        at = pass_nullable(at, stop, &is_null);
        if (at == NULL) goto wrong;
        keyless += is_null;
        at = pass_nullable(at, stop, &is_null);
        if (at == NULL) goto wrong;
        if (!(stop - at == 1 && *at == 0) && !headers_fill(at, stop)) goto wrong;
        at = stop;
    }
    record = at;
    if (at != end) goto wrong;
    *found = (scan_t){least, greatest, first, keyless, is_numbered, at, index};
    return true;
wrong:
    found->record = record;
    found->index = index;
    return false;
}

static bool scan_letting_others_run(const uint8_t *at, const uint8_t *end, Py_ssize_t count, scan_t *found) {
    bool is_right;
    if (count < MANY_RECORDS) return ottla_scan_records(at, end, count, found);
    Py_BEGIN_ALLOW_THREADS
    is_right = ottla_scan_records(at, end, count, found);
    Py_END_ALLOW_THREADS
    return is_right;
}

/* scan_records(buf, end, count): the fields of a RecordScan if `count` records fill `buf` up to `end` as they should;
 * if not, where the first one begins that does not, or where all have ended before the end, and its number. */
static PyObject *scan_records(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "scan_records takes 3 arguments");
        return NULL;
    }
    Py_ssize_t stop = PyLong_AsSsize_t(args[1]), count = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred()) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *begin = view.buf;
    if (stop < 0 || stop > view.len) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "the records end behind the buffer");
        return NULL;
    }
    scan_t found;
    bool is_right = scan_letting_others_run(begin, begin + stop, count, &found);
    PyBuffer_Release(&view);
    if (!is_right) return Py_BuildValue("(nn)", (Py_ssize_t)(found.record - begin), found.index);
    return Py_BuildValue("(LLLOn)", (long long)found.least, (long long)found.greatest, (long long)found.first,
                         found.is_numbered ? Py_True : Py_False, found.keyless);
}

/* follow_lengths(buf, begin, end, count): where the last of `count` records begins that fill `buf` from `begin` to
 * `end`, going by their lengths; None if they do not. */
static PyObject *follow_lengths(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "follow_lengths takes 4 arguments");
        return NULL;
    }
    Py_ssize_t begin = PyLong_AsSsize_t(args[1]), stop = PyLong_AsSsize_t(args[2]), count = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred()) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    Py_ssize_t found = -1;
    if (0 <= begin && begin <= stop && stop <= view.len) {
        const uint8_t *first = view.buf, *at = first + begin, *end = first + stop, *last = at;
        for (; count > 0; count--) {
            int32_t length;
            last = at;
            at = next_varint(at, end, &length);
            if (at == NULL || length < SMALLEST_BODY_BYTES || length > end - at) break;
            at += length;
        }
        if (count == 0 && at == end) found = last - first;
    }
    PyBuffer_Release(&view);
    if (found < 0) Py_RETURN_NONE;
    return PyLong_FromSsize_t(found);
}

/* What a batch must be so that it can be appended as it is; the rules of its topic are in numbers. */
static bool is_usual(const uint8_t *batch, Py_ssize_t size, int64_t max_bytes, int64_t least_time,
                     int64_t greatest_time, bool needs_keys) {
    if (size < HEADER_BYTES || size > max_bytes) return false;
    if ((int64_t)(int32_t)read_u32(batch + 8) + LOG_OVERHEAD != size) return false;
    uint16_t attributes = read_u16(batch + 21);
    int32_t last_delta = (int32_t)read_u32(batch + 23), count = (int32_t)read_u32(batch + 57);
    int64_t base_time = (int64_t)read_u64(batch + 27), max_time = (int64_t)read_u64(batch + 35);
    int64_t producer_id = (int64_t)read_u64(batch + 43);
    int32_t sequence = (int32_t)read_u32(batch + 53);
    if (read_u64(batch) != 0 || batch[16] != 2 || (attributes & ~TRANSACTIONAL) != 0) return false;
    if (count <= 0 || count > MAX_USUAL_RECORDS || count - 1 != last_delta ||
        (producer_id >= 0 && sequence < 0)) return false;
    scan_t found;
    if (!scan_letting_others_run(batch + HEADER_BYTES, batch + size, count, &found)) return false;
    int64_t least, greatest;
    if (__builtin_add_overflow(base_time, found.least, &least)) return false;
    if (__builtin_add_overflow(base_time, found.greatest, &greatest)) return false;
    return least >= least_time && greatest <= greatest_time && greatest == max_time && greatest >= -1 &&
           !(needs_keys && found.keyless);
}

/* is_usual_batch(records, max_bytes, least_time, greatest_time, needs_keys): whether `records` are exactly one batch,
 * not compressed, that breaks no rule and that nothing has to be changed in. Its checksum is not looked at. */
static PyObject *is_usual_batch(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "is_usual_batch takes 5 arguments");
        return NULL;
    }
    int64_t max_bytes = PyLong_AsLongLong(args[1]);
    int64_t least_time = PyLong_AsLongLong(args[2]), greatest_time = PyLong_AsLongLong(args[3]);
    int needs_keys = PyObject_IsTrue(args[4]);
    if (PyErr_Occurred()) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    bool answer = is_usual(view.buf, view.len, max_bytes, least_time, greatest_time, needs_keys);
    PyBuffer_Release(&view);
    return PyBool_FromLong(answer);
}

PyMethodDef ottla_record_methods[] = {
    {"follow_lengths", (PyCFunction)(void (*)(void))follow_lengths, METH_FASTCALL, NULL},
    {"is_usual_batch", (PyCFunction)(void (*)(void))is_usual_batch, METH_FASTCALL, NULL},
    {"scan_records", (PyCFunction)(void (*)(void))scan_records, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
