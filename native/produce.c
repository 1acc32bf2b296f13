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
    CODEC = 0x07,
    UNCOMPRESSED = 0,
    LZ4 = 3,
    TRANSACTIONAL = 0x10,
    /* What keeps the interpreter's lock for less than a millisecond, as in validation.py. */
    MOST_UNPACKED_BYTES = 1024 * 1024,
    MOST_RECORDS = 200000,
    MOST_SMALL_BYTES = 4096,
    DAMAGED = 0,
    SMALL = 1,
    UNCHECKED = 2,
    COMPRESSED = 3,
    LONGEST_TRANSACTIONAL_ID = 255, /* of those that are read here */
};

/* The numbers of a batch that its topic's rules and its producer's state are held against. */
typedef struct {
    int32_t keyless;
    int64_t least_timestamp;
    int32_t count;
    int64_t greatest_timestamp;
    int64_t producer_id;
    int32_t producer_epoch;
    int32_t base_sequence;
} Batch;

/* The records of a batch as they are or unpacked, which is in memory that is used for the next batch again. NULL if they
 * are many, or not known here. */
static const uint8_t *open_records(const uint8_t *at, int64_t *size, int codec) {
    static uint8_t *room; /* of whoever holds the interpreter's lock */
    if (codec == UNCOMPRESSED) return at;
    if (codec != LZ4 || *size > MOST_UNPACKED_BYTES) return NULL;
    if (room == NULL && (room = malloc(MOST_UNPACKED_BYTES)) == NULL) return NULL;
    *size = ottla_unpack_lz4(at, at + *size, room, MOST_UNPACKED_BYTES);
    return *size < 0 ? NULL : room;
}

/* One whole batch that a client may send, in a transaction or not, whose records are as its header says. Its checksum
 * is not looked at. */
static bool read_batch(const uint8_t *at, int64_t size, Batch *batch, int is_transactional) {
    if (size < BATCH_HEADER_BYTES) return false;
    int attributes = read_u16(at + 21), codec = attributes & CODEC;
    int64_t base_timestamp = (int64_t)read_u64(at + 27), max_timestamp = (int64_t)read_u64(at + 35);
    int64_t producer_id = (int64_t)read_u64(at + 43);
    int32_t base_sequence = (int32_t)read_u32(at + 53), count = (int32_t)read_u32(at + 57);
    if (read_u64(at) != 0 || (int32_t)read_u32(at + 8) != size - LOG_OVERHEAD || at[16] != MAGIC) return false;
    if (attributes != (codec | (is_transactional ? TRANSACTIONAL : 0))) return false;
    if (count <= 0 || count > MOST_RECORDS || (int32_t)read_u32(at + 23) != count - 1) return false;
    if (producer_id >= 0 && base_sequence < 0) return false;
    int64_t unpacked = size - BATCH_HEADER_BYTES;
    const uint8_t *records = open_records(at + BATCH_HEADER_BYTES, &unpacked, codec);
    scan_t found;
    if (records == NULL || !ottla_scan_records(records, records + unpacked, count, &found)) return false;
    batch->count = count;
    batch->producer_id = producer_id;
    batch->producer_epoch = (int16_t)read_u16(at + 51);
    batch->base_sequence = base_sequence;
    batch->keyless = (int32_t)found.keyless;
    return found.is_numbered && !__builtin_add_overflow(base_timestamp, found.least, &batch->least_timestamp) &&
           !__builtin_add_overflow(base_timestamp, found.greatest, &batch->greatest_timestamp) &&
           batch->greatest_timestamp == max_timestamp && max_timestamp >= -1;
}

/* What is left to be looked at of a batch that was read: of a small one that is not compressed, and not of a transaction,
 * nothing, since its checksum was, too; of any other the checksum. */
static int kind_of(const uint8_t *at, int64_t size) {
    int attributes = read_u16(at + 21);
    if (attributes & CODEC) return COMPRESSED;
    if (attributes || size > MOST_SMALL_BYTES) return UNCHECKED;
    return read_u32(at + 17) == ottla_crc32c(at + 21, (size_t)size - 21) ? SMALL : DAMAGED;
}

/* read_produce(frame): the numbers of a Produce request for one partition with acks 1 or -1 and one ordinary batch, as it
 * is or compressed with LZ4, which belongs to a transaction if the request does: (version, correlation id, topic name or
 * id, partition, where the batch begins and ends, whether it is of a transaction, its kind (see kind_of), how many records
 * have no key, their least timestamp, (how many records there are, their greatest timestamp, producer id, producer epoch,
 * first sequence)). None for any other request. */
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
    Batch batch = {0};
    if (reader.at != NULL && reader.at == reader.end && read_batch(records, size, &batch, is_transactional)) {
        PyObject *name = topic_object(&topic);
        if (name != NULL)
            found = Py_BuildValue("(iiNinnNiiL(iLLii))", header.version, header.correlation_id, name, index,
                                  (Py_ssize_t)(records - first), (Py_ssize_t)(records - first + size),
                                  PyBool_FromLong(is_transactional), kind_of(records, size), batch.keyless,
                                  (long long)batch.least_timestamp, batch.count, (long long)batch.greatest_timestamp,
                                  (long long)batch.producer_id, batch.producer_epoch, batch.base_sequence);
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
