/* Produce: a request for one partition with one ordinary batch, and its answer. */

#include "requests.h"

enum {
    PRODUCE = 0,
    PRODUCE_FIRST = 3,
    PRODUCE_LAST = 13,
    PRODUCE_FLEXIBLE = 9,
    PRODUCE_TOPIC_IDS = 13,
    BATCH_HEADER_BYTES = 61,
    LOG_OVERHEAD = 12,
    MAGIC = 2,
    SMALLEST_RECORD_BODY = 6,
    TRANSACTIONAL = 0x10,
    LONGEST_TRANSACTIONAL_ID = 255, /* of those that are read here */
};

/* The numbers of a batch that its topic's rules are held against. */
typedef struct {
    int32_t count;
    int32_t keyless;
    int64_t least_timestamp;
    int64_t greatest_timestamp;
} Batch;

/* Pass over a key, a value, or the key of a header. NULL if it does not fit. */
static inline const uint8_t *pass_bytes(const uint8_t *at, const uint8_t *end, int *is_null) {
    int32_t length;
    at = read_varint(at, end, &length);
    if (at == NULL) return NULL;
    *is_null = length < 0;
    if (length <= 0) return at;
    return length > end - at ? NULL : at + length;
}

/* One record; returns the byte behind it, or NULL if it is not as it should be. */
static const uint8_t *read_record(const uint8_t *at, const uint8_t *end, int32_t index, Batch *batch, int64_t base) {
    int32_t length, number, headers;
    int64_t timestamp;
    int is_null;
    at = read_varint(at, end, &length);
    if (at == NULL || length < SMALLEST_RECORD_BODY || length > end - at) return NULL;
    const uint8_t *stop = at + length;
    at = read_varlong(at + 1, stop, &timestamp); /* behind the attributes, which nothing uses */
    if (at == NULL || __builtin_add_overflow(base, timestamp, &timestamp)) return NULL;
    at = read_varint(at, stop, &number);
    if (at == NULL || number != index) return NULL;
    at = pass_bytes(at, stop, &is_null);
    if (at == NULL) return NULL;
    batch->keyless += is_null;
    at = pass_bytes(at, stop, &is_null);
    if (at == NULL) return NULL;
    at = read_varint(at, stop, &headers);
    if (at == NULL || headers < 0) return NULL;
    for (; headers > 0; headers--) {
        at = pass_bytes(at, stop, &is_null);
        if (at == NULL || is_null) return NULL;
        at = pass_bytes(at, stop, &is_null);
        if (at == NULL) return NULL;
    }
    if (index == 0 || timestamp < batch->least_timestamp) batch->least_timestamp = timestamp;
    if (index == 0 || timestamp > batch->greatest_timestamp) batch->greatest_timestamp = timestamp;
    return at == stop ? stop : NULL;
}

/* One whole batch that a client may send, with these attributes, whose records are as its header says. Its checksum is
 * not looked at. */
static int read_batch(const uint8_t *at, int64_t size, Batch *batch, int attributes) {
    if (size < BATCH_HEADER_BYTES) return 0;
    int64_t base_timestamp = (int64_t)read_u64(at + 27), max_timestamp = (int64_t)read_u64(at + 35);
    int64_t producer_id = (int64_t)read_u64(at + 43);
    int32_t base_sequence = (int32_t)read_u32(at + 53);
    batch->count = (int32_t)read_u32(at + 57);
    batch->keyless = 0;
    if (read_u64(at) != 0 || (int32_t)read_u32(at + 8) != size - LOG_OVERHEAD || at[16] != MAGIC) return 0;
    if (read_u16(at + 21) != attributes || batch->count <= 0 || (int32_t)read_u32(at + 23) != batch->count - 1) return 0;
    if (producer_id >= 0 && base_sequence < 0) return 0;
    const uint8_t *record = at + BATCH_HEADER_BYTES, *end = at + size;
    for (int32_t index = 0; index < batch->count; index++) {
        record = read_record(record, end, index, batch, base_timestamp);
        if (record == NULL) return 0;
    }
    return record == end && batch->greatest_timestamp == max_timestamp && max_timestamp >= -1;
}

/* read_produce(frame): the numbers of a Produce request for one partition with acks 1 or -1 and one ordinary batch without
 * compression, which belongs to a transaction if the request does: (version, correlation id, topic name or id, partition, where the batch begins and ends, records
 * without a key, least and greatest timestamp). None for any other request. */
static PyObject *read_produce(PyObject *module, PyObject *frame) {
    Py_buffer view;
    if (PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *first = view.buf;
    Reader reader = {first, first + view.len};
    Header header = take_header(&reader, PRODUCE, PRODUCE_FIRST, PRODUCE_LAST, PRODUCE_FLEXIBLE);
    int flexible = header.version >= PRODUCE_FLEXIBLE;
    int64_t id_size = take_length(&reader, flexible, 2); /* of the transactional id */
    int is_transactional = id_size > 0 && id_size <= LONGEST_TRANSACTIONAL_ID;
    require(&reader, is_transactional || id_size == -1);
    if (is_transactional) take_ascii(&reader, id_size);
    int32_t acks = take_i16(&reader);
    require(&reader, acks == 1 || acks == -1);
    take_i32(&reader); /* the timeout */
    require(&reader, take_length(&reader, flexible, 4) == 1);
    Topic topic = take_topic(&reader, flexible, header.version >= PRODUCE_TOPIC_IDS);
    require(&reader, take_length(&reader, flexible, 4) == 1);
    int32_t index = take_i32(&reader);
    int64_t size = take_length(&reader, flexible, 4);
    const uint8_t *records = take(&reader, size);
    take_no_tags(&reader, flexible);
    take_no_tags(&reader, flexible);
    take_no_tags(&reader, flexible);
    PyObject *found = NULL;
    Batch batch = {0, 0, 0, 0};
    if (reader.at != NULL && reader.at == reader.end &&
        read_batch(records, size, &batch, is_transactional ? TRANSACTIONAL : 0)) {
        PyObject *name = topic_object(&topic);
        if (name != NULL)
            found = Py_BuildValue("(iiNinniLL)", header.version, header.correlation_id, name, index,
                                  (Py_ssize_t)(records - first), (Py_ssize_t)(records - first + size), batch.keyless,
                                  (long long)batch.least_timestamp, (long long)batch.greatest_timestamp);
    } else {
        found = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&view);
    return found;
}

/* produce_answer(version, correlation id, topic, partition, base offset, time of the append, log start offset): the
 * frame of the answer to a request of the shape above whose batch was appended. */
static PyObject *produce_answer(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 7) {
        PyErr_SetString(PyExc_TypeError, "produce_answer takes 7 arguments");
        return NULL;
    }
    long version = PyLong_AsLong(args[0]), correlation_id = PyLong_AsLong(args[1]), index = PyLong_AsLong(args[3]);
    long long base_offset = PyLong_AsLongLong(args[4]), append_time = PyLong_AsLongLong(args[5]);
    long long start_offset = PyLong_AsLongLong(args[6]);
    if (PyErr_Occurred()) return NULL;
    int flexible = version >= PRODUCE_FLEXIBLE;
    Answer answer;
    begin_answer(&answer, (int32_t)correlation_id, flexible);
    put_length(&answer, flexible, 4, 1);
    if (!put_topic(&answer, flexible, args[2])) return NULL;
    put_length(&answer, flexible, 4, 1);
    put_i32(&answer, (int32_t)index);
    put_i16(&answer, 0);
    put_i64(&answer, base_offset);
    put_i64(&answer, append_time);
    if (version >= 5) put_i64(&answer, start_offset);
    if (version >= 8) {
        put_length(&answer, flexible, 4, 0);                          /* records that failed */
        put_length(&answer, flexible, 2, flexible ? -1u : 0xffff);    /* no message */
    }
    if (flexible) put_i16(&answer, 0); /* no tagged fields, of the partition and of the topic */
    put_i32(&answer, 0);               /* the throttle time */
    if (flexible) put_byte(&answer, 0);
    return end_answer(&answer);
}

PyMethodDef ottla_produce_methods[] = {
    {"read_produce", read_produce, METH_O, NULL},
    {"produce_answer", (PyCFunction)(void (*)(void))produce_answer, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
