/* The module `ottla.native._speed`: the functions of the other files under one name. */

#include "speed.h"

static PyMethodDef *const method_tables[] = {
    ottla_record_methods,
    ottla_produce_methods,
    ottla_list_offsets_methods,
    ottla_fetch_methods,
    ottla_crc32c_methods,
    ottla_compaction_methods,
    ottla_index_methods,
    ottla_lz4_methods,
    ottla_room_methods,
    ottla_page_cache_methods,
};

static int add_functions(PyObject *module) {
    for (size_t index = 0; index < sizeof method_tables / sizeof *method_tables; index++)
        if (PyModule_AddFunctions(module, method_tables[index]) < 0) return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_functions},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_speed",
    .m_doc = "Compiled twins of functions in Python; see ottla.native.",
    .m_size = 0,
    .m_slots = slots,
};

__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__speed(void) { return PyModuleDef_Init(&definition); }
