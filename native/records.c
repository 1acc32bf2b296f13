/* The records of a batch: the twins of ottla.wire.records.scan. */

#include "speed.h"

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
        const uint8_t *first = view.buf, *at = first + begin, *end = first + stop;
        while (count > 0) {
            const uint8_t *record = at;
            int32_t length;
            at = read_varint(at, end, &length);
            if (at == NULL || length < 0 || length > end - at) break;
            at += length;
            if (--count == 0 && at == end) found = record - first;
        }
    }
    PyBuffer_Release(&view);
    if (found < 0) Py_RETURN_NONE;
    return PyLong_FromSsize_t(found);
}

PyMethodDef ottla_record_methods[] = {
    {"follow_lengths", (PyCFunction)(void (*)(void))follow_lengths, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
