/* ListOffsets: a request for an end of one partition, as consumers that go by their position send all the time, and its
 * answer. */

#include "requests.h"

enum { LIST_OFFSETS = 2, FIRST = 1, LAST = 11, FLEXIBLE = 6, LATEST = -1, EARLIEST = -2 };

/* read_list_offsets(frame): (version, correlation id, replica id, isolation level, topic, partition, current leader
 * epoch, timestamp) of a request for the earliest or the latest offset of one partition. None for any other request. */
static PyObject *read_list_offsets(PyObject *module, PyObject *frame) {
    Py_buffer view;
    if (PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE) < 0) return NULL;
    const uint8_t *first = view.buf;
    Reader reader = {first, first + view.len};
    Header header = take_header(&reader, LIST_OFFSETS, FIRST, LAST, FLEXIBLE);
    int flexible = header.version >= FLEXIBLE;
    int32_t replica_id = take_i32(&reader);
    const uint8_t *isolation = header.version >= 2 ? take(&reader, 1) : NULL;
    int isolation_level = isolation == NULL ? 0 : *isolation;
    require(&reader, isolation_level <= 1);
    require(&reader, take_length(&reader, flexible, 4) == 1);
    Topic topic = take_topic(&reader, flexible, 0);
    require(&reader, take_length(&reader, flexible, 4) == 1);
    int32_t index = take_i32(&reader);
    int32_t leader_epoch = header.version >= 4 ? take_i32(&reader) : -1;
    int64_t timestamp = take_i64(&reader);
    require(&reader, timestamp == LATEST || timestamp == EARLIEST);
    take_no_tags(&reader, flexible);
    take_no_tags(&reader, flexible);
    if (header.version >= 10) take_i32(&reader); /* the timeout, for what is stored elsewhere */
    take_no_tags(&reader, flexible);
    PyObject *found = NULL;
    if (reader.at != NULL && reader.at == reader.end) {
        PyObject *name = topic_object(&topic);
        if (name != NULL)
            found = Py_BuildValue("(iiiiNiii)", header.version, header.correlation_id, replica_id, isolation_level, name,
                                  index, leader_epoch, (int)timestamp);
    } else {
        found = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&view);
    return found;
}

/* list_offsets_answer(version, correlation id, topic, partition, offset, leader epoch): the frame of the answer. */
static PyObject *list_offsets_answer(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 6) {
        PyErr_SetString(PyExc_TypeError, "list_offsets_answer takes 6 arguments");
        return NULL;
    }
    long version = PyLong_AsLong(args[0]), correlation_id = PyLong_AsLong(args[1]), index = PyLong_AsLong(args[3]);
    long long offset = PyLong_AsLongLong(args[4]);
    long leader_epoch = PyLong_AsLong(args[5]);
    if (PyErr_Occurred()) return NULL;
    int flexible = version >= FLEXIBLE;
    Answer answer;
    begin_answer(&answer, (int32_t)correlation_id, flexible);
    if (version >= 2) put_i32(&answer, 0); /* the throttle time */
    put_length(&answer, flexible, 4, 1);
    if (!put_topic(&answer, flexible, args[2])) return NULL;
    put_length(&answer, flexible, 4, 1);
    put_i32(&answer, (int32_t)index);
    put_i16(&answer, 0);
    put_i64(&answer, -1); /* an end has no timestamp */
    put_i64(&answer, offset);
    if (version >= 4) put_i32(&answer, (int32_t)leader_epoch);
    if (flexible) {
        put_i16(&answer, 0); /* no tagged fields, of the partition and of the topic */
        put_byte(&answer, 0);
    }
    return end_answer(&answer);
}

PyMethodDef ottla_list_offsets_methods[] = {
    {"read_list_offsets", read_list_offsets, METH_O, NULL},
    {"list_offsets_answer", (PyCFunction)(void (*)(void))list_offsets_answer, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
