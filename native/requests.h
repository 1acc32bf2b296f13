/* Reading requests that come most often, in their most ordinary shape, and writing their answers.
 *
 * Anything out of the ordinary, malformed bytes among it, is left to the codecs and handlers in Python, so that there is
 * one opinion of what is right and one wording of errors. */

#ifndef OTTLA_REQUESTS_H
#define OTTLA_REQUESTS_H

#include "speed.h"

enum { UUID_BYTES = 16, LONGEST_TOPIC = 249 };

/* What is left of a request. A reader that finds something else than it knows leaves `at` NULL, and so do all after. */
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} Reader;

static inline const uint8_t *take(Reader *reader, Py_ssize_t size) {
    const uint8_t *at = reader->at;
    if (at == NULL || size < 0 || reader->end - at < size) {
        reader->at = NULL;
        return NULL;
    }
    reader->at = at + size;
    return at;
}

static inline int32_t take_i16(Reader *reader) {
    const uint8_t *at = take(reader, 2);
    return at == NULL ? 0 : (int16_t)read_u16(at);
}

static inline int32_t take_i32(Reader *reader) {
    const uint8_t *at = take(reader, 4);
    return at == NULL ? 0 : (int32_t)read_u32(at);
}

static inline int64_t take_i64(Reader *reader) {
    const uint8_t *at = take(reader, 8);
    return at == NULL ? 0 : (int64_t)read_u64(at);
}

/* The length of a string, of bytes or of an array; -1 for null. */
static inline int64_t take_length(Reader *reader, int flexible, int width) {
    if (!flexible) return width == 2 ? take_i16(reader) : take_i32(reader);
    uint32_t raw = 0;
    if (reader->at != NULL) reader->at = read_uvarint(reader->at, reader->end, &raw);
    return reader->at == NULL ? 0 : (int64_t)raw - 1;
}

/* There must be no tagged fields. */
static inline void take_no_tags(Reader *reader, int flexible) {
    if (!flexible) return;
    const uint8_t *at = take(reader, 1);
    if (at != NULL && *at != 0) reader->at = NULL;
}

static inline void require(Reader *reader, int condition) {
    if (!condition) reader->at = NULL;
}

/* Text of so many bytes. What is no ASCII may be no UTF-8 either. */
static inline const uint8_t *take_ascii(Reader *reader, int64_t size) {
    const uint8_t *text = take(reader, size);
    for (int64_t index = 0; text != NULL && index < size; index++) require(reader, text[index] < 0x80);
    return text;
}

/* The header of a request: api key, version, correlation id, client id. */
typedef struct {
    int32_t version;
    int32_t correlation_id;
} Header;

static inline Header take_header(Reader *reader, int api_key, int first, int last, int flexible_since) {
    Header header = {0, 0};
    require(reader, take_i16(reader) == api_key);
    header.version = take_i16(reader);
    require(reader, header.version >= first && header.version <= last);
    header.correlation_id = take_i32(reader);
    int32_t length = take_i16(reader); /* never compact, so that every broker can read it */
    require(reader, length >= -1);
    take_ascii(reader, length > 0 ? length : 0);
    take_no_tags(reader, header.version >= flexible_since);
    return header;
}

/* The name or the id of a topic; where it lies is kept, too, for the answer. */
typedef struct {
    const uint8_t *at;
    Py_ssize_t size;
    int is_id;
} Topic;

static inline Topic take_topic(Reader *reader, int flexible, int is_id) {
    Topic topic = {NULL, UUID_BYTES, is_id};
    if (!is_id) {
        topic.size = (Py_ssize_t)take_length(reader, flexible, 2);
        require(reader, topic.size > 0 && topic.size <= LONGEST_TOPIC);
    }
    topic.at = is_id ? take(reader, topic.size) : take_ascii(reader, topic.size);
    return topic;
}

static inline PyObject *topic_object(const Topic *topic) {
    if (topic->is_id) return PyBytes_FromStringAndSize((const char *)topic->at, topic->size);
    return PyUnicode_DecodeASCII((const char *)topic->at, topic->size, NULL);
}

/* An answer under construction, its length in front; always large enough for what is put into it. */
typedef struct {
    uint8_t bytes[512];
    uint8_t *at;
} Answer;

static inline void put_i16(Answer *answer, int32_t value) {
    *answer->at++ = (uint8_t)(value >> 8);
    *answer->at++ = (uint8_t)value;
}

static inline void put_i32(Answer *answer, int32_t value) {
    write_u32(answer->at, (uint32_t)value);
    answer->at += 4;
}

static inline void put_i64(Answer *answer, int64_t value) {
    write_u64(answer->at, (uint64_t)value);
    answer->at += 8;
}

static inline void put_byte(Answer *answer, uint8_t value) { *answer->at++ = value; }

/* The length of a string or an array. */
static inline void put_length(Answer *answer, int flexible, int width, uint32_t length) {
    if (!flexible && width == 2) {
        put_i16(answer, (int32_t)length);
    } else if (!flexible) {
        put_i32(answer, (int32_t)length);
    } else {
        uint32_t left = length + 1;
        for (; left >= 0x80; left >>= 7) put_byte(answer, (uint8_t)(left | 0x80));
        put_byte(answer, (uint8_t)left);
    }
}

/* The topic, as a request named it. Returns 0 with an exception set if that is no topic's name or id. */
static inline int put_topic(Answer *answer, int flexible, PyObject *topic) {
    const char *name;
    Py_ssize_t size;
    if (PyBytes_Check(topic)) {
        name = PyBytes_AS_STRING(topic);
        size = PyBytes_GET_SIZE(topic);
        if (size != UUID_BYTES) {
            PyErr_SetString(PyExc_ValueError, "the id of a topic has 16 bytes");
            return 0;
        }
    } else {
        name = PyUnicode_AsUTF8AndSize(topic, &size);
        if (name == NULL) return 0;
        if (size > LONGEST_TOPIC) {
            PyErr_SetString(PyExc_ValueError, "the name of a topic has at most 249 bytes");
            return 0;
        }
        put_length(answer, flexible, 2, (uint32_t)size);
    }
    memcpy(answer->at, name, (size_t)size);
    answer->at += size;
    return 1;
}

static inline void begin_answer(Answer *answer, int32_t correlation_id, int flexible) {
    answer->at = answer->bytes + 4;
    put_i32(answer, correlation_id);
    if (flexible) put_byte(answer, 0);
}

static inline PyObject *end_answer(Answer *answer) {
    Py_ssize_t size = answer->at - answer->bytes;
    write_u32(answer->bytes, (uint32_t)(size - 4));
    return PyBytes_FromStringAndSize((const char *)answer->bytes, size);
}

#endif
