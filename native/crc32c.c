/* CRC-32C of some bytes, by the instruction of the processor where there is one: for loops over batches that are in C
 * already. Python uses the crc32c package. */

#include "speed.h"

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size) {
    uint64_t state = crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        state = __builtin_ia32_crc32di(state, word);
    }
    for (; size; at++, size--) state = __builtin_ia32_crc32qi((uint32_t)state, *at);
    return (uint32_t)state;
}

static int has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

#include <arm_acle.h>

static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size) {
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = __crc32cd(crc, word);
    }
    for (; size; at++, size--) crc = __crc32cb(crc, *at);
    return crc;
}

static int has_instruction(void) { return 1; }

#else

static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size) { return crc; }

static int has_instruction(void) { return 0; }

#endif

static uint32_t table[4][256];

/* Before anything else of the module runs, so that threads need not agree on it. */
__attribute__((constructor)) static void fill_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
        table[0][byte] = value;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int row = 1; row < 4; row++)
            table[row][byte] = table[row - 1][byte] >> 8 ^ table[0][table[row - 1][byte] & 0xff];
}

static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t size) {
    for (; size >= 4; at += 4, size -= 4) {
        crc ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = table[3][crc & 0xff] ^ table[2][crc >> 8 & 0xff] ^ table[1][crc >> 16 & 0xff] ^ table[0][crc >> 24];
    }
    for (; size; at++, size--) crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    return crc;
}

uint32_t ottla_crc32c(const uint8_t *at, size_t size) {
    return ~(has_instruction() ? by_instruction(~0u, at, size) : by_table(~0u, at, size));
}

/* crc32c(data, by_table): the checksum, of the table if asked for, so that a test can compare all ways. */
static PyObject *crc32c(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "crc32c takes 2 arguments");
        return NULL;
    }
    int asked = PyObject_IsTrue(args[1]);
    Py_buffer view;
    if (asked < 0 || PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    uint32_t found;
    Py_BEGIN_ALLOW_THREADS
    found = asked ? ~by_table(~0u, view.buf, (size_t)view.len) : ottla_crc32c(view.buf, (size_t)view.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(found);
}

PyMethodDef ottla_crc32c_methods[] = {
    {"crc32c", (PyCFunction)(void (*)(void))crc32c, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
