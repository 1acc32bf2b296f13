/* Blocks of the disk that are set aside for a file before it grows. Without it (log_store/file_room.py) the file system
 * finds them when it writes the file out: nothing depends on it but how long an append may wait. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "speed.h"

#include <errno.h>
#include <fcntl.h>

/* reserve(fd, begin, length) -> int: zero, or why the system did not do it, as in errno. The length of the file stays. */
static PyObject *reserve(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "reserve takes a descriptor, a position and a length");
        return NULL;
    }
    int fd = (int)PyLong_AsLong(arguments[0]);
    long long begin = PyLong_AsLongLong(arguments[1]);
    long long length = PyLong_AsLongLong(arguments[2]);
    if (PyErr_Occurred()) return NULL;
    int reason = ENOTSUP;
#ifdef FALLOC_FL_KEEP_SIZE
    Py_BEGIN_ALLOW_THREADS
    do {
        reason = fallocate(fd, FALLOC_FL_KEEP_SIZE, begin, length) == 0 ? 0 : errno;
    } while (reason == EINTR);
    Py_END_ALLOW_THREADS
#else
    (void)fd, (void)begin, (void)length;
#endif
    return PyLong_FromLong(reason);
}

PyMethodDef ottla_room_methods[] = {
    {"reserve", (PyCFunction)(void (*)(void))reserve, METH_FASTCALL, "Set blocks aside for a file."},
    {NULL, NULL, 0, NULL},
};
