/* Which pages of a file are in memory, without having any of them read: the twin of `probe` in
 * ottla.log_store.page_cache. A read that must not block begins to read what is missing, and may wait in that for the
 * disk to say where it is; this one only looks. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "speed.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES_AT_ONCE = 2048 };

static bool are_in_memory(uint8_t *at, size_t size, size_t page_bytes) {
    unsigned char pages[PAGES_AT_ONCE];
    while (size) {
        size_t step = size < PAGES_AT_ONCE * page_bytes ? size : PAGES_AT_ONCE * page_bytes;
        if (mincore(at, step, (void *)pages) != 0) return true;
        for (size_t page = 0; page < (step + page_bytes - 1) / page_bytes; page++)
            if (!(pages[page] & 1)) return false;
        at += step;
        size -= step;
    }
    return true;
}

/* is_in_memory(fd, position, length) -> bool: whether all of the stretch is. What cannot be told is taken to be. */
static PyObject *is_in_memory(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "is_in_memory takes a descriptor, a position and a length");
        return NULL;
    }
    int fd = (int)PyLong_AsLong(arguments[0]);
    long long position = PyLong_AsLongLong(arguments[1]);
    long long length = PyLong_AsLongLong(arguments[2]);
    if (PyErr_Occurred()) return NULL;
    if (position < 0 || length <= 0) Py_RETURN_TRUE;
    long page_bytes = sysconf(_SC_PAGESIZE);
    long long begin = position - position % page_bytes;
    size_t size = (size_t)(position - begin + length);
    void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)begin);
    if (at == MAP_FAILED) Py_RETURN_TRUE;
    bool found = are_in_memory(at, size, (size_t)page_bytes);
    munmap(at, size);
    return PyBool_FromLong(found);
}

PyMethodDef ottla_page_cache_methods[] = {
    {"is_in_memory", (PyCFunction)(void (*)(void))is_in_memory, METH_FASTCALL, "Whether a stretch of a file is in memory."},
    {NULL, NULL, 0, NULL},
};
