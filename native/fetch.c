/* Fetch: a consumer's request for one partition, named or known from its session, and the answer to it. */

#include "requests.h"

#include <sys/uio.h>
#include <unistd.h>

enum {
    FETCH = 1,
    FETCH_FIRST = 4,
    FETCH_LAST = 18,
    FETCH_FLEXIBLE = 12,
    FETCH_TOPIC_IDS = 13,
    FETCH_NO_REPLICA_ID = 15, /* from here on only followers have one, in a tagged field */
    CONSUMER = -1,
    NO_EPOCH = -1,
    READ_COMMITTED = 1,
    MOST_RECORDS_BYTES = 1 << 26, /* of an answer with its records in it */
};

/* read_fetch(frame): (version, correlation id, max wait ms, min bytes, max bytes, isolation level, session id, session
 * epoch, topic name or id, partition, current leader epoch, offset, max bytes of the partition) of a consumer's request
 * that names one partition, or none: its topic is None then, and the numbers behind it mean nothing. None for any other
 * request. */
static PyObject *read_fetch(PyObject *module, PyObject *frame) {
    Py_buffer view;
    if (PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *first = view.buf;
    Reader reader = {first, first + view.len};
    Header header = take_header(&reader, FETCH, FETCH_FIRST, FETCH_LAST, FETCH_FLEXIBLE);
    int32_t version = header.version;
    int flexible = version >= FETCH_FLEXIBLE;
    if (version < FETCH_NO_REPLICA_ID) require(&reader, take_i32(&reader) == CONSUMER);
    int32_t max_wait_ms = take_i32(&reader), min_bytes = take_i32(&reader), max_bytes = take_i32(&reader);
    const uint8_t *isolation = take(&reader, 1);
    int isolation_level = isolation == NULL ? 0 : *isolation;
    require(&reader, isolation_level <= READ_COMMITTED);
    int32_t session_id = version >= 7 ? take_i32(&reader) : 0;
    int32_t session_epoch = version >= 7 ? take_i32(&reader) : NO_EPOCH;
    int64_t topics = take_length(&reader, flexible, 4);
    require(&reader, topics == 0 || topics == 1);
    Topic topic = {NULL, 0, 0};
    int32_t index = 0, leader_epoch = NO_EPOCH, partition_max_bytes = 0;
    int64_t offset = 0;
    if (topics == 1) {
        topic = take_topic(&reader, flexible, version >= FETCH_TOPIC_IDS);
        require(&reader, take_length(&reader, flexible, 4) == 1);
        index = take_i32(&reader);
        if (version >= 9) leader_epoch = take_i32(&reader);
        offset = take_i64(&reader);
        if (version >= 12) require(&reader, take_i32(&reader) == NO_EPOCH); /* the last fetched epoch */
        if (version >= 5) take_i64(&reader);                               /* a follower's log start offset */
        partition_max_bytes = take_i32(&reader);
        take_no_tags(&reader, flexible);
        take_no_tags(&reader, flexible);
    }
    if (version >= 7) require(&reader, take_length(&reader, flexible, 4) == 0); /* topics to be forgotten */
    if (version >= 11) take_ascii(&reader, take_length(&reader, flexible, 2));  /* the rack */
    take_no_tags(&reader, flexible);
    PyObject *found = NULL;
    if (reader.at != NULL && reader.at == reader.end) {
        PyObject *name = topics == 1 ? topic_object(&topic) : Py_NewRef(Py_None);
        if (name != NULL)
            found = Py_BuildValue("(iiiiiiiiNiiLi)", version, header.correlation_id, max_wait_ms, min_bytes, max_bytes,
                                  isolation_level, session_id, session_epoch, name, index, leader_epoch,
                                  (long long)offset, partition_max_bytes);
    } else {
        found = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&view);
    return found;
}

/* Read bytes of a file if they are all in memory; whether they were. */
static int read_cached(int fd, uint8_t *into, Py_ssize_t size, int64_t position) {
#ifdef RWF_NOWAIT
    struct iovec piece = {into, (size_t)size};
    return preadv2(fd, &piece, 1, (off_t)position, RWF_NOWAIT) == size;
#else
    return pread(fd, into, (size_t)size, (off_t)position) == size;
#endif
}

/* fetch_answer(version, correlation id, session id, topic, partition, high watermark, last stable offset, log start
 * offset, isolation level, size of the records, file descriptor, position): the frame of the answer to such a request.
 * Without a topic nothing is told of any partition. With a descriptor the records are read from there and in it, or it
 * is None because they are not all in memory. With -1 it ends where the records begin, although its length counts them
 * and what comes behind them. */
static PyObject *fetch_answer(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 12) {
        PyErr_SetString(PyExc_TypeError, "fetch_answer takes 12 arguments");
        return NULL;
    }
    long version = PyLong_AsLong(args[0]), correlation_id = PyLong_AsLong(args[1]);
    long session_id = PyLong_AsLong(args[2]), index = PyLong_AsLong(args[4]);
    long long high_watermark = PyLong_AsLongLong(args[5]), stable_offset = PyLong_AsLongLong(args[6]);
    long long start_offset = PyLong_AsLongLong(args[7]);
    long isolation_level = PyLong_AsLong(args[8]);
    Py_ssize_t size = PyLong_AsSsize_t(args[9]);
    long fd = PyLong_AsLong(args[10]);
    long long position = PyLong_AsLongLong(args[11]);
    if (PyErr_Occurred()) return NULL;
    if (size < 0 || size > INT32_MAX - 512 || (fd >= 0 && size > MOST_RECORDS_BYTES)) {
        PyErr_SetString(PyExc_ValueError, "so many records do not fit into an answer");
        return NULL;
    }
    int flexible = version >= FETCH_FLEXIBLE;
    Answer answer;
    begin_answer(&answer, (int32_t)correlation_id, flexible);
    put_i32(&answer, 0); /* the throttle time */
    if (version >= 7) {
        put_i16(&answer, 0);
        put_i32(&answer, (int32_t)session_id);
    }
    int has_topic = args[3] != Py_None;
    put_length(&answer, flexible, 4, (uint32_t)has_topic);
    if (has_topic) {
        if (!put_topic(&answer, flexible, args[3])) return NULL;
        put_length(&answer, flexible, 4, 1);
        put_i32(&answer, (int32_t)index);
        put_i16(&answer, 0);
        put_i64(&answer, high_watermark);
        put_i64(&answer, stable_offset);
        if (version >= 5) put_i64(&answer, start_offset);
        /* No aborted transactions; none are looked for where all records are read. */
        put_length(&answer, flexible, 4, isolation_level == READ_COMMITTED ? 0 : -1u);
        if (version >= 11) put_i32(&answer, -1); /* no better replica */
        put_length(&answer, flexible, 4, (uint32_t)size);
    }
    /* Tagged fields: none, of the partition, of the topic and of the answer. */
    Py_ssize_t behind = !flexible ? 0 : has_topic ? 3 : 1;
    Py_ssize_t head = answer.at - answer.bytes;
    if (!has_topic) size = 0;
    write_u32(answer.bytes, (uint32_t)(head + size + behind - 4));
    int is_whole = fd >= 0 || size == 0;
    PyObject *frame = PyBytes_FromStringAndSize(NULL, is_whole ? head + size + behind : head);
    if (frame == NULL) return NULL;
    uint8_t *at = (uint8_t *)PyBytes_AS_STRING(frame);
    memcpy(at, answer.bytes, (size_t)head);
    if (!is_whole) return frame;
    if (size > 0 && !read_cached((int)fd, at + head, size, position)) {
        Py_DECREF(frame);
        return Py_NewRef(Py_None);
    }
    memset(at + head + size, 0, (size_t)behind);
    return frame;
}

PyMethodDef ottla_fetch_methods[] = {
    {"read_fetch", read_fetch, METH_O, NULL},
    {"fetch_answer", (PyCFunction)(void (*)(void))fetch_answer, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
