/* The index entries of batches that are written to a segment: the twin of the loop in
 * ottla.log_store.compaction.cleaned_segment. */

#include "compaction.h"

#include <stdlib.h>

#define OFFSET_ENTRY_BYTES 8
#define TIME_ENTRY_BYTES 12

/* index_entries(data, base_offset, position, interval_bytes, since, greatest, greatest_offset, indexed): the entries
 * for both indexes as bytes, and the new values of the last four: (offset entries, time entries, bytes since the last
 * entry, greatest timestamp, last offset of the batch that has it, greatest timestamp in an entry). */
static PyObject *index_entries(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 8) {
        PyErr_SetString(PyExc_TypeError, "index_entries takes 8 arguments");
        return NULL;
    }
    long long numbers[7];
    for (int index = 0; index < 7; index++) numbers[index] = PyLong_AsLongLong(args[index + 1]);
    if (PyErr_Occurred()) return NULL;
    int64_t base_offset = numbers[0], position = numbers[1], interval = numbers[2], since = numbers[3];
    int64_t greatest = numbers[4], greatest_offset = numbers[5], indexed = numbers[6];
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    size_t most = (size_t)view.len / HEADER_BYTES + 1;
    uint8_t *offsets = malloc(most * OFFSET_ENTRY_BYTES), *times = malloc(most * TIME_ENTRY_BYTES);
    PyObject *result = NULL;
    if (offsets == NULL || times == NULL) {
        PyErr_NoMemory();
    } else {
        const uint8_t *at = view.buf, *end = at + view.len;
        uint8_t *offset_end = offsets, *time_end = times;
        struct batch batch;
        while (read_batch(at, end, &batch) > 0) {
            int64_t max_timestamp = max_timestamp_of(&batch);
            if (max_timestamp > greatest) {
                greatest = max_timestamp;
                greatest_offset = batch.last_offset;
            }
            if (since > interval) {
                write_u32(offset_end, (uint32_t)(batch.last_offset - base_offset));
                write_u32(offset_end + 4, (uint32_t)position);
                offset_end += OFFSET_ENTRY_BYTES;
                if (greatest > indexed) {
                    write_u64(time_end, (uint64_t)greatest);
                    write_u32(time_end + 8, (uint32_t)(greatest_offset - base_offset));
                    time_end += TIME_ENTRY_BYTES;
                    indexed = greatest;
                }
                since = 0;
            }
            since += (int64_t)batch.size;
            position += (int64_t)batch.size;
            at += batch.size;
        }
        if (at != end)
            PyErr_SetString(PyExc_ValueError, "no whole batches");
        else
            result = Py_BuildValue("y#y#LLLL", (char *)offsets, (Py_ssize_t)(offset_end - offsets), (char *)times,
                                   (Py_ssize_t)(time_end - times), (long long)since, (long long)greatest,
                                   (long long)greatest_offset, (long long)indexed);
    }
    free(offsets);
    free(times);
    PyBuffer_Release(&view);
    return result;
}

PyMethodDef ottla_index_methods[] = {
    {"index_entries", (PyCFunction)(void (*)(void))index_entries, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
