/* Memory that was freed, given back to the system. The twin in Python (server/garbage.py) does without: nothing depends
 * on it but the size of the process. */

#include "speed.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* give_back() -> bool: whether anything was given back. The buffers of connections that came and went are holes between
 * what is still in use; the C library keeps them for the next who asks. */
static PyObject *give_back(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    (void)arguments;
    if (count != 0) {
        PyErr_SetString(PyExc_TypeError, "give_back takes no arguments");
        return NULL;
    }
    int given = 0;
#ifdef __GLIBC__
    Py_BEGIN_ALLOW_THREADS
    given = malloc_trim(0);
    Py_END_ALLOW_THREADS
#endif
    return PyBool_FromLong(given);
}

PyMethodDef ottla_memory_methods[] = {
    {"give_back", (PyCFunction)(void (*)(void))give_back, METH_FASTCALL, "Give freed memory back to the system."},
    {NULL, NULL, 0, NULL},
};
